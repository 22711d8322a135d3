"""What all transformations do with a user's arguments: checking, flattening, tracing."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from axir import tree
from axir.dialect import dtypes
from axir.dialect.array import Array, as_array
from axir.dialect.config import config
from axir.dialect.errors import AxirError, NonArrayArgumentError, TreeError
from axir.dialect.function import Function
from axir.dialect.trace import function_name
from axir.dialect.tracer import Trace, Tracer
from axir.dialect.types import ShapedArray
from axir.leaks import check_leaks

Value = Any


def check_callable(function: Any, transformation: str) -> None:
    """Raises `TypeError` if what should be transformed is not callable."""
    if not callable(function):
        raise NonArrayArgumentError(
            f"{transformation} takes a function, not {function!r} of type "
            f"{type(function).__name__!r}.",
            f"Write {transformation}(f)(x), not {transformation}(f(x)).",
        )


def to_value(x: Any, describe: Callable[[], str]) -> Value:
    """Returns a leaf as an `Array` or `Tracer`.

    Args:
        x: The leaf.
        describe: Tells which leaf it is, for the error.
    """
    if type(x) is Array or type(x) is Tracer:
        return x
    try:
        return as_array(x)
    except (AxirError, TypeError, ValueError) as error:
        if isinstance(error, OverflowError):
            raise
        raise NonArrayArgumentError(
            f"{describe()} is {_shorten(x)} of type {type(x).__name__!r}, which is not an array.",
            "Pass arrays or Python scalars; make other arguments static with static_argnums, or "
            "close over them.",
        ) from None


def _shorten(x: Any) -> str:
    text = repr(x)
    return text if len(text) <= 60 else text[:57] + "..."


def to_values(leaves: Sequence[Any], trees: Any, name: str) -> list[Value]:
    """Returns the leaves of an argument tree as values; errors name the leaf by its path."""
    for x in leaves:
        if type(x) is not Array and type(x) is not Tracer:
            break
    else:
        return list(leaves)

    def described(index: int) -> Callable[[], str]:
        return lambda: f"Argument {tree.paths(trees)[index]} of {name!r}"

    return [to_value(x, described(index)) for index, x in enumerate(leaves)]


class FlatFunction:
    """A user's function as one of flat values, which remembers the tree of its last result.

    Attributes:
        out_tree: Structure of what the function returned.
        auxiliary: With `has_aux`, what it returned besides (flat values of the trace).
        auxiliary_tree: With `has_aux`, the structure of that.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        in_tree: tree.TreeDef,
        has_aux: bool = False,
    ):
        self.function = function
        self.in_tree = in_tree
        self.has_aux = has_aux
        self.name = function_name(function)
        self.out_tree: tree.TreeDef = None  # type: ignore[assignment]
        self.auxiliary_tree: tree.TreeDef | None = None

    def __call__(self, *leaves: Value) -> list[Value]:
        """Maps leaves of the arguments to leaves of the results, then of the auxiliary results."""
        args, kwargs = self.in_tree.unflatten(leaves)
        result = self.function(*args, **kwargs)
        auxiliary: list[Value] = []
        if self.has_aux:
            result, auxiliary = self._split(result)
        flat, self.out_tree = tree.flatten(result)
        outputs = [
            to_value(x, functools.partial(self._result, index, result))
            for index, x in enumerate(flat)
        ]
        return [*outputs, *auxiliary]

    def _result(self, index: int, result: Any) -> str:
        return f"Result {tree.paths(result)[index]} of {self.name!r}"

    def _split(self, result: Any) -> tuple[Any, list[Value]]:
        if not isinstance(result, tuple) or len(result) != 2:
            raise TreeError(
                f"With has_aux=True {self.name!r} must return a pair (output, auxiliary), but it "
                f"returned {_shorten(result)}.",
                "Return exactly two values, or drop has_aux.",
            )
        flat, self.auxiliary_tree = tree.flatten(result[1])
        what = f"An auxiliary result of {self.name!r}"
        return result[0], [to_value(x, lambda: what) for x in flat]


def trace_abstract(function: FlatFunction, types: Sequence[ShapedArray], kind: str) -> Function:
    """Traces with nothing known but the types of the arguments."""
    with Trace(function.name, kind, writes_splats=True) as trace:
        traced = trace.finish(function(*[trace.add_input(t) for t in types]))
    if config.jax_check_tracer_leaks:
        check_leaks(traced, kind)
    return traced


def trace_known(
    function: FlatFunction, values: Sequence[Value], kind: str
) -> tuple[Function, dict[Any, Any]]:
    """Traces with the values of the arguments known.

    Returns:
        The function, and the values of those of its variables which tracing had to compute.
    """
    with Trace(function.name, kind) as trace:
        inputs = [trace.add_input(x.type) for x in values]
        trace.know_inputs(values)
        outputs = function(*inputs)
        known = trace.environment
        assert known is not None
        traced = trace.finish(outputs)
    if config.jax_check_tracer_leaks:
        del inputs, outputs
        check_leaks(traced, kind, known)
    return traced, known


def type_of(x: Any) -> ShapedArray:
    """Returns the type of an array, a scalar, or anything that has a shape and a dtype."""
    if type(x) is Array or type(x) is Tracer:
        return x.type
    if hasattr(x, "shape") and hasattr(x, "dtype") and not isinstance(x, (np.ndarray, np.generic)):
        return ShapedArray(
            tuple(x.shape), dtypes.canonicalize_dtype(x.dtype), bool(getattr(x, "weak_type", False))
        )
    return to_value(x, lambda: "An argument").type

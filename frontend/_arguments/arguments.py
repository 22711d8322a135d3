"""The common treatment of users' arguments by transformations: checking, flattening, tracing."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Container, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from axir._trees import tree
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Tree, UserFunction, UserObject
from axir.dialect.core.array import ConcreteArray, as_value
from axir.dialect.core.config import config
from axir.dialect.core.errors import (
    AxirError,
    NonArrayArgumentError,
    RefScopeError,
    TransferGuardError,
    TreeError,
)
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import function_name
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Trace, Tracer

from .leaks import check_leaks


def check_callable(function: object, transformation: str) -> None:
    """Raises `TypeError` if a function to be transformed is not callable."""
    if not callable(function):
        raise NonArrayArgumentError(
            f"{transformation} takes a function, not {function!r} of type "
            f"{type(function).__name__!r}.",
            f"Write {transformation}(f)(x), not {transformation}(f(x)).",
        )
    if inspect.isgeneratorfunction(function):
        raise NonArrayArgumentError(
            f"{transformation} takes a function that returns arrays, not the generator function "
            f"{getattr(function, '__name__', function)!r}.",
            "Return a tuple, or a list, of what it yields.",
        )


def to_value(x: object, describe: Callable[[], str]) -> Value:
    """Returns a leaf as an `Array` or `Tracer`.

    Args:
        x: The leaf.
        describe: Returns the leaf's name in errors.
    """
    if type(x) is ConcreteArray or type(x) is Tracer:
        return x
    try:
        return as_value(x)
    except (AxirError, TypeError, ValueError) as error:
        if isinstance(error, (OverflowError, TransferGuardError)):
            raise
        if getattr(x, "_is_ref", False):
            raise RefScopeError(x) from None
        raise NonArrayArgumentError(
            f"{describe()} is {_shorten(x)} of type {type(x).__name__!r}, which is not an array.",
            "Pass arrays or Python scalars; make other arguments static with static_argnums, or "
            "close over them.",
        ) from None


def _shorten(x: object) -> str:
    text = repr(x)
    return text if len(text) <= 60 else text[:57] + "..."


def to_values(
    leaves: Sequence[UserObject], trees: object, name: str, given: Container[int] = ()
) -> list[Value]:
    """Returns the leaves of an argument tree as values; errors name the leaf by its path.

    Args:
        leaves: The leaves.
        trees: The arguments.
        name: The function's name.
        given: Numbers of the leaves that stay as they are.
    """
    for x in leaves:
        if type(x) is not ConcreteArray and type(x) is not Tracer:
            break
    else:
        return list(leaves)

    def described(index: int) -> Callable[[], str]:
        return lambda: f"Argument {tree.paths(trees)[index]} of {name!r}"

    return [
        x if index in given else to_value(x, described(index)) for index, x in enumerate(leaves)
    ]


def flatten_arguments(trees: Tree) -> tuple[list[UserObject], tree.TreeDef]:
    """Flattens a tree that may contain arrays without values, such as the gradients of integers.

    These have dtype float0 and are passed as bools of their shape; the structure makes them again.
    """
    leaves, structure = tree.flatten(trees)
    # Arrays of axir's hold numbers: of many leaves, asking each of its dtype takes longest.
    missing = {
        n: None for n, x in enumerate(leaves) if type(x) is not ConcreteArray and _is_float0(x)
    }
    if not missing:
        return leaves, structure
    leaves = [np.zeros(x.shape, np.bool_) if n in missing else x for n, x in enumerate(leaves)]
    return leaves, ResultTree(structure, float0=missing)  # type: ignore[return-value]


class FlatArguments(NamedTuple):
    """Positional arguments as values, and their structure, with empty keyword arguments."""

    values: list[Value]
    in_tree: tree.TreeDef


def flat_arguments(args: tuple[object, ...], name: str) -> FlatArguments:
    """Flattens arguments; `name` is the function's name in errors."""
    leaves, in_tree = flatten_arguments((args, {}))
    return FlatArguments(to_values(leaves, args, name), in_tree)


class FlatFunction:
    """A user's function as one of flat values, which remembers the tree of its last result.

    Args:
        function: The user's function.
        in_tree: Structure of its arguments, as a tuple and a dict.
        has_aux: Whether it returns a pair with auxiliary data as its second part.
        given: By number, leaves of the arguments that are passed on unchanged.

    Attributes:
        out_tree: Structure of the function's result.
        auxiliary: With `has_aux`, the auxiliary data (flat values of the trace).
        auxiliary_tree: With `has_aux`, the auxiliary data's structure.
    """

    def __init__(
        self,
        function: UserFunction,
        in_tree: tree.TreeDef,
        has_aux: bool = False,
        given: Mapping[int, UserObject] = MappingProxyType({}),
    ):
        self.function = function
        self.in_tree = in_tree
        self.given = given
        self.has_aux = has_aux
        self.name = function_name(function)
        self.out_tree: tree.TreeDef = None  # type: ignore[assignment]
        self.auxiliary_tree: tree.TreeDef | ResultTree | None = None

    def __call__(self, *leaves: Value) -> list[Value]:
        """Maps leaves of the arguments to leaves of the results, then of the auxiliary results."""
        args, kwargs = self.in_tree.unflatten(self._completed(leaves) if self.given else leaves)
        result = self.function(*args, **kwargs)
        auxiliary: list[Value] = []
        if self.has_aux:
            result, auxiliary = self._split(result)
        flat, self.out_tree = flatten_arguments(result)
        outputs = [
            to_value(x, functools.partial(self._result, index, result))
            for index, x in enumerate(flat)
        ]
        return [*outputs, *auxiliary]

    def _completed(self, leaves: Sequence[Value]) -> list[UserObject]:
        remaining = iter(leaves)
        return [
            self.given[index] if index in self.given else next(remaining)
            for index in range(self.in_tree.num_leaves)
        ]

    def _result(self, index: int, result: Tree) -> str:
        path = tree.paths(result)[index]
        return f"Result {path} of {self.name!r}" if path else f"The result of {self.name!r}"

    def _split(self, result: Tree) -> tuple[UserObject, list[Value]]:
        if not isinstance(result, tuple) or len(result) != 2:
            raise TreeError(
                f"With has_aux=True {self.name!r} must return a pair (output, auxiliary), but it "
                f"returned {_shorten(result)}.",
                "Return exactly two values, or drop has_aux.",
            )
        flat, structure = tree.flatten(result[1])
        values: list[Value] = []
        others: dict[int, UserObject] = {}
        for index, x in enumerate(flat):
            try:
                values.append(to_value(x, lambda: "An auxiliary result"))
            except NonArrayArgumentError:
                others[index] = x  # not an operand: it is passed on unchanged
        self.auxiliary_tree = ResultTree(structure, others) if others else structure
        return result[0], values


def _is_float0(x: object) -> bool:
    # The kind first, because NumPy is slow to compare dtypes with fields.
    dtype = getattr(x, "dtype", None)
    return getattr(dtype, "kind", None) == "V" and bool(dtype == dtypes.float0)


class ResultTree:
    """The structure of arguments or results with some leaves that are not values of a trace.

    Args:
        structure: Their structure.
        others: By number, the leaves that are not values at all.
        float0: Numbers of the leaves that are arrays of dtype float0 of a value's shape.
    """

    def __init__(
        self,
        structure: tree.TreeDef,
        others: dict[int, UserObject] | None = None,
        float0: dict[int, None] | None = None,
    ):
        self.structure = structure
        self.others = others or {}
        self.float0 = float0 or {}

    @property
    def num_leaves(self) -> int:
        """How many of the leaves are values."""
        return self.structure.num_leaves - len(self.others)

    def is_leaf(self) -> bool:
        """Tells that the result is not a single value."""
        return False

    def unflatten(self, values: Sequence[Value]) -> UserObject:
        """Rebuilds the results from values."""
        remaining = iter(values)
        leaves = [
            self.others[index] if index in self.others else next(remaining)
            for index in range(self.structure.num_leaves)
        ]
        for index in self.float0:
            leaf = leaves[index]
            leaves[index] = (
                leaf.update(dtype=dtypes.float0)  # an array's type, in abstract evaluation
                if hasattr(leaf, "update")
                else np.zeros(np.shape(leaf), dtypes.float0)
            )
        return self.structure.unflatten(leaves)

    def __hash__(self) -> int:
        return hash((self.structure, *self.float0))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ResultTree)
            and self.structure == other.structure
            and self.float0 == other.float0
            and self.others == other.others
        )


def trace_abstract(
    function: FlatFunction, types: Sequence[ShapedArray], kind: str, shows: bool = False
) -> Function:
    """Traces with only the types of the arguments known.

    If the user looks at the result (`shows`), it has the expected captures and residuals:
    `keeps_residuals` and `shows_captures` of `Trace`.
    """
    with Trace(
        function.name,
        kind,
        writes_descriptions=True,
        keeps_residuals=shows,
        shows_captures=shows,
    ) as trace:
        traced = trace.finish(function(*[trace.add_input(t) for t in types]))
    if config.jax_check_tracer_leaks:
        check_leaks(traced, kind)
    return traced


def trace_known(
    function: FlatFunction, values: Sequence[Value], kind: str
) -> tuple[Function, dict[UserObject, UserObject]]:
    """Traces with the values of the arguments known.

    Returns:
        The function, and the values of its variables that tracing had to compute.
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


def type_of(x: object) -> ShapedArray:
    """Returns the type of an array, a scalar, or any object with a shape and a dtype."""
    if type(x) is ConcreteArray or type(x) is Tracer:
        return x.type
    if hasattr(x, "shape") and hasattr(x, "dtype") and not isinstance(x, (np.ndarray, np.generic)):
        return ShapedArray(
            tuple(x.shape), dtypes.canonicalize_dtype(x.dtype), bool(getattr(x, "weak_type", False))
        )
    return to_value(x, lambda: "An argument").type

"""Order, preservation and names of computations: tokens, `dce_sink`, `composite`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import numpy as np

from axir._arguments.arguments import FlatFunction, check_callable, to_values, trace_abstract
from axir._trees import tree
from axir.dialect.core.annotations import UserFunction, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import DTypeError, ParameterError
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.calls.barriers import dce_sink_primitive
from axir.dialect.ops.calls.jit_call import call
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.ops.shape.constants import full
from axir.dialect.program.rules import Value

from ._operators import optimization_barrier

# A token is an array without elements: it costs nothing, and passes wherever an array does.
_TOKEN = ShapedArray((0,), np.dtype(np.bool_))


def create_token(_: object = None) -> Value:
    """Returns a token: a value for nothing but order.

    An op that takes a token runs after the op that made the token. Tokens are bool arrays without
    elements.

    >>> create_token().shape
    (0,)
    """
    return full(_TOKEN.shape, False, _TOKEN.dtype)


def after_all(*operands: ArrayLike) -> Value:
    """Returns a token that comes after all given tokens.

    Args:
        *operands: Tokens.

    Raises:
        DTypeError: for a value that is no token.

    >>> after_all(create_token(), create_token()).shape
    (0,)
    """
    tokens = [as_value(x) for x in operands]
    for token in tokens:
        if (token.shape, token.dtype) != (_TOKEN.shape, _TOKEN.dtype):
            raise DTypeError(
                f"Arguments to after_all must be tokens, but one is of type {token.type}.",
                "Tokens come from create_token and after_all; lax.optimization_barrier orders "
                "values of any type.",
            )
    return optimization_barrier(tokens)[0] if tokens else create_token()


def dce_sink(val: ArrayLike, *, prevent_mlir_dce: bool = False) -> None:
    """Keeps the computation of values that nothing else uses in jaxprs.

    Args:
        val: Array or tree of arrays.
        prevent_mlir_dce: Accepted for compatibility: compiled code shows nothing of such values.

    >>> import axir, axir.numpy as jnp
    >>> axir.make_jaxpr(lambda x: dce_sink(jnp.sin(x)))(1.0)
    { lambda ; a:f32[]. let b:f32[] = sin a; dce_sink b in () }
    """
    leaves = tree.leaves(val)
    for x in to_values(leaves, val, "dce_sink"):
        dce_sink_primitive.bind(x)


def composite(decomposition: Callable[..., object], name: str, version: int = 0) -> UserFunction:
    """Returns a function as one named operation, which its ops define.

    In a module it is a separate function under its name, and a call of it.

    Args:
        decomposition: Function of arrays or trees of arrays; keyword arguments are attributes:
            Python values that are passed on as they are.
        name: Name of the operation.
        version: Number of its meaning, counted up when that changes.

    Raises:
        ParameterError: if the name is empty, or the version is negative.

    >>> import axir.numpy as jnp
    >>> tangent = composite(lambda x: jnp.sin(x) / jnp.cos(x), "my.tangent")
    >>> round(float(tangent(0.5)), 4)
    0.5463
    """
    check_callable(decomposition, "composite")
    if not isinstance(name, str) or not name:
        raise ParameterError(f"composite: the name must be a string, not {name!r}.")
    if version < 0:
        raise ParameterError(f"composite: the version must not be negative, but is {version}.")

    @wraps(decomposition)
    def applied(*args: object, **attributes: object) -> UserObject:
        leaves, in_tree = tree.flatten((args, {}))
        flat = FlatFunction(lambda *values: decomposition(*values, **attributes), in_tree)
        flat.name = _symbol(name) if version == 0 else f"{_symbol(name)}_v{version}"
        values = to_values(leaves, args, flat.name)
        function = trace_abstract(flat, [x.type for x in values], "Jit")
        return flat.out_tree.unflatten(call(function, *values))

    return applied


def _symbol(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter == "_" else "_" for letter in name)


def stage(x: ArrayLike, /) -> Value:
    """Returns a scalar or NumPy array as a value of axir.

    >>> stage(1.5)
    Array(1.5, dtype=float32, weak_type=True)
    """
    return as_value(x)


def shape_as_value(shape: UserObject) -> Value:
    """Returns a shape as a vector of int32.

    >>> shape_as_value((2, 3))
    Array([2, 3], dtype=int32)
    """
    return as_value(np.array(tuple(shape), np.int32))

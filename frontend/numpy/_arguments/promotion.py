"""Promotion of the arguments of `axir.numpy`: arrays of one dtype and one shape.

Python scalars are weak: they take the dtype of the arrays they meet. Elsewhere: the lattice of
dtypes (`axir.dialect.core.dtypes`), and checks of axes and the like (`checks.py`).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import lru_cache

import ml_dtypes
import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike, UserObject
from axir.dialect.core.array import Array, ConcreteArray, as_value, scalar
from axir.dialect.core.config import config
from axir.dialect.core.context import is_written_by_user
from axir.dialect.core.errors import (
    DTypeError,
    KeyPromotionError,
    NonArrayArgumentError,
    RefArgumentError,
    ShapeError,
)
from axir.dialect.core.symbolic_dims import SymbolicDim, as_traced
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.shape.broadcasting import broadcast_in_dim
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Tracer

_PYTHON_TYPES = (bool, int, float, complex)
SCALARS = frozenset(_PYTHON_TYPES)
_WIDENS_TO_FLOAT = "biu"
# Types of arguments that combine with arrays of a kind of dtype without any promotion.
_FITTING = {
    kind: frozenset((ConcreteArray, Tracer, *scalars))
    for kind, scalars in {
        "b": (bool,), "i": (int,), "u": (int,), "f": (int, float), "c": (int, float, complex),
        "k": (),
    }.items()
}  # fmt: skip


class BroadcastError(ShapeError, ValueError):
    """Shapes do not broadcast against each other."""


# Arguments -------------------------------------------------------------------------------------


def array_argument(name: str, x: UserObject, position: int = 0) -> Value:
    """Returns an argument as an `Array` or `Tracer`.

    Args:
        name: Name of the function, for errors.
        x: The argument: an array, a NumPy array or scalar, or a Python scalar (which is weak).
        position: Which argument it is.

    Raises:
        NonArrayArgumentError: for anything else, lists and tuples among it.
    """
    python_type = type(x)
    if python_type is ConcreteArray or python_type is Tracer:
        return x
    if isinstance(x, (list, tuple, dict, set, str, bytes)) or x is None:
        raise not_an_array(name, x, position)
    try:
        return as_value(x)
    except NonArrayArgumentError:
        raise not_an_array(name, x, position) from None


def not_an_array(name: str, x: object, position: int) -> NonArrayArgumentError:
    """Returns the error for an argument that is not an array."""
    if getattr(x, "_is_ref", False):
        return RefArgumentError(f"jnp.{name}: argument {position}", x)
    text = repr(x)
    text = text if len(text) <= 60 else text[:57] + "..."
    return NonArrayArgumentError(
        f"jnp.{name}: argument {position} is {text} of type {type(x).__name__!r}, which is not an "
        "array.",
        "Pass arrays or Python scalars; turn lists and tuples into arrays with jnp.array(...).",
    )


# dtypes ----------------------------------------------------------------------------------------

# Python scalars meet arrays over and over: the constants they become are remembered.
_constants: dict[UserObject, Array] = {}
_MOST_CONSTANTS = 4096


def constant(value: object, dtype: np.dtype, weak_type: bool = False) -> Array:
    """Returns a Python scalar as a rank-0 array; integers wrap around in a narrow dtype.

    Raises:
        OverflowError: for an integer that fits neither the dtype nor the default integer dtype.
    """
    key = (value, dtype, weak_type, type(value))
    known = _constants.get(key)
    if known is None or (value == 0 and type(value) in (float, complex)):  # 0.0 equals -0.0
        known = _new_constant(value, dtype, weak_type)
        if type(value) is SymbolicDim or _wraps(
            value, dtype
        ):  # which depends on the default integer dtype
            return known
        if len(_constants) >= _MOST_CONSTANTS:
            _constants.clear()
        _constants[key] = known
    return known


def _wraps(value: object, dtype: np.dtype) -> bool:
    """Tells whether a scalar is an integer that a dtype of integers does not hold."""
    if type(value) is not int or not dtypes.is_integer(dtype):
        return False
    limits = ml_dtypes.iinfo(dtype)
    return not limits.min <= value <= limits.max


def _new_constant(value: UserObject, dtype: np.dtype, weak_type: bool) -> Array:
    if type(value) is SymbolicDim:
        return convert_element_type(as_traced(value), dtype, weak_type=weak_type)
    if _wraps(value, dtype):
        wide = scalar(value).host()  # raises if even the default dtype is too narrow
        return ConcreteArray(ShapedArray((), dtype, weak_type), wide.astype(dtype))
    if dtypes.is_key(dtype):
        raise KeyPromotionError(
            f"{value!r} is not a random key, as the operand beside it, of dtype {dtype}.",
            "random.key makes a key from a seed.",
        )
    if dtype == dtypes.bool_ and type(value) is not bool:
        value = bool(value)
    return scalar(value, dtype, weak_type)


def dtype_argument(name: str, dtype: DTypeLike) -> np.dtype:
    """Returns a `dtype` argument as a dtype that the current configuration has.

    Warns when a 64-bit dtype was requested by name while `jax_enable_x64` is off.
    """
    requested = dtypes.as_dtype(dtype)
    result = dtypes.canonicalize_dtype(requested)
    if result != requested and not any(dtype is kind for kind in _PYTHON_TYPES):
        warnings.warn(
            f"jnp.{name}: dtype {requested} is not available and becomes {result}: set "
            "jax_enable_x64 for 64-bit types.",
            stacklevel=3,
        )
    return result


def dtype_and_weakness(x: UserObject) -> tuple[np.dtype, bool]:
    """Returns the dtype of an array or a Python scalar, and whether it is weak."""
    if type(x) in SCALARS:
        return dtypes.scalar_dtype(x), type(x) is not bool
    return x.type.dtype, x.type.weak_type


def cast(x: UserObject, dtype: np.dtype, weak_type: bool = False) -> Value:
    """Returns an array or Python scalar in a dtype; an array that has it is returned unchanged."""
    if type(x) in SCALARS:
        return constant(x, dtype, weak_type and dtype != dtypes.bool_)
    if x.type.dtype == dtype:
        return x
    return convert_element_type(x, dtype, weak_type)


def operands(name: str, args: Sequence[object]) -> list[UserObject]:
    """Returns arguments as arrays, save for Python scalars, which stay."""
    return [
        x
        if type(x) is ConcreteArray or type(x) is Tracer or type(x) in SCALARS
        else array_argument(name, x, position)
        for position, x in enumerate(args)
    ]


def promote_arguments(name: str, *args: object) -> list[Value]:
    """Brings arguments to the dtype that they promote to.

    Args:
        name: Name of the function, for errors.
        *args: Arrays and scalars.

    Returns:
        Arrays of one dtype, weakly typed if all arguments were scalars or weak.

    Raises:
        NonArrayArgumentError: for an argument that is not an array.

    >>> promote_arguments("add", np.ones(2, np.int8), 1.5)[1]
    Array(1.5, dtype=float32, weak_type=True)
    """
    values = operands(name, args)
    dtype, weak_type = common_dtype(values)
    return [cast(x, dtype, weak_type) for x in values]


_NARROW = frozenset(map(np.dtype, (np.int32, np.float32, np.complex64)))


def is_outgrown(dtype: np.dtype) -> bool:
    """Tells whether scalars are wider than weak arrays of a dtype: it was their default before."""
    return config.jax_enable_x64 and dtype in _NARROW


def common_dtype(values: Sequence[UserObject]) -> tuple[np.dtype, bool]:
    """Returns the dtype that arrays and Python scalars promote to, and whether it is weak."""
    types = {x.type for x in values if type(x) not in SCALARS}
    if len(types) == 1:
        # The usual case: arrays of one type, and scalars that fit it.
        (array_type,) = types
        fitting = _FITTING[dtypes.kind(array_type.dtype)]
        is_usual = all(type(x) in fitting for x in values)
        if is_usual and not (array_type.weak_type and is_outgrown(array_type.dtype)):
            return array_type.dtype, array_type.weak_type
    return dtypes.promote([dtype_and_weakness(x) for x in values])


def promote_inexact(name: str, *args: object) -> list[Value]:
    """Brings arguments to the inexact dtype that they promote to: integers become floats.

    >>> promote_inexact("sin", 2)
    [Array(2., dtype=float32, weak_type=True)]
    """
    values = operands(name, args)
    dtype, weak_type = common_dtype(values)
    dtype = inexact_dtype(dtype)
    return [cast(x, dtype, weak_type) for x in values]


def promote_numeric(name: str, *args: object) -> list[Value]:
    """Brings arguments to the dtype that they promote to; bools become integers."""
    values = operands(name, args)
    dtype, weak_type = common_dtype(values)
    if dtype == dtypes.bool_:
        dtype = dtypes.canonicalize_dtype(dtypes.int64)
    return [cast(x, dtype, weak_type) for x in values]


def inexact_dtype(dtype: np.dtype) -> np.dtype:
    """Returns the dtype itself if it is inexact, else float32, for 64-bit integers float64."""
    if dtypes.kind(dtype) in _WIDENS_TO_FLOAT:
        return dtypes.canonicalize_dtype(dtypes.float64) if dtype.itemsize == 8 else dtypes.float32
    return dtype


def require_real(name: str, *values: Value) -> None:
    """Raises `DTypeError` if a value is complex."""
    for value in values:
        if dtypes.is_complex(value.dtype):
            raise DTypeError(
                f"jnp.{name} does not accept {value.dtype}: complex numbers have no order.",
                "Take jnp.real(x), jnp.imag(x) or jnp.abs(x) first.",
            )


# Shapes ----------------------------------------------------------------------------------------


def broadcast_arguments(name: str, *values: Value) -> list[Value]:
    """Brings arrays to the shape that they broadcast to, save for scalars, which stay.

    Elementwise operations broadcast scalars anyway.

    Raises:
        BroadcastError: if the shapes do not fit, or if `jax_numpy_rank_promotion` forbids it.
    """
    first: tuple[int, ...] = ()
    for value in values:
        shape = value.type.shape
        if shape and shape != first:
            if first:
                break
            first = shape
    else:
        return list(values)
    shape = broadcast_shape(name, [value.type.shape for value in values])
    return [broadcast_value(x, shape) if x.type.shape else x for x in values]


def broadcast_shape(name: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Returns the shape that shapes broadcast to, by NumPy's rules.

    Raises:
        BroadcastError: as `broadcast_arguments`.
    """
    if config.jax_numpy_rank_promotion != "allow":
        _check_ranks(name, shapes)
    shape = common_shape(tuple(shapes))
    if shape is None:
        raise BroadcastError(
            f"jnp.{name}: shapes {' and '.join(map(str, shapes))} do not broadcast.",
            "Extents, counted from the last axis, must be equal or 1: reshape one of the arrays, "
            "or add axes with x[:, None].",
        )
    return shape


@lru_cache(maxsize=4096)
def common_shape(shapes: tuple[tuple[int, ...], ...]) -> tuple[int, ...] | None:
    """Returns the shape that shapes broadcast to, whatever their ranks, or None."""
    result: list[int] = []
    rank = max(len(shape) for shape in shapes)
    for position in range(rank):
        extent = 1
        for shape in shapes:
            offset = position - rank + len(shape)
            if offset < 0 or shape[offset] == 1:
                continue
            if extent not in (1, shape[offset]):
                return None
            extent = shape[offset]
        result.append(extent)
    return tuple(result)


def _check_ranks(name: str, shapes: Sequence[tuple[int, ...]]) -> None:
    ranks = {len(shape) for shape in shapes if shape}
    if len(ranks) < 2 or not is_written_by_user():
        return
    message = (
        f"jnp.{name}: operands of shapes {', '.join(map(str, shapes))} differ in rank, and "
        f"jax_numpy_rank_promotion is {config.jax_numpy_rank_promotion!r}."
    )
    if config.jax_numpy_rank_promotion == "raise":
        raise BroadcastError(message, "Add the missing axes with x[None, ...] or jnp.reshape.")
    warnings.warn(message, stacklevel=5)


def broadcast_value(x: Value, shape: tuple[int, ...]) -> Value:
    """Broadcasts one value to a shape that it is known to fit."""
    if x.type.shape == shape:
        return x
    rank = len(shape)
    return broadcast_in_dim(x, shape, tuple(range(rank - x.type.ndim, rank)))

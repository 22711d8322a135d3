"""Arrays from Python values, and filled arrays: `array`, `asarray`, `zeros`, `full`, ...

Elsewhere: ranges and grids (`grids.py`), triangles and diagonals (`matrices.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from axir._devices.placement import device_put, laid_out, place_like
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike, ShapeLike, UserObject
from axir.dialect.core.array import (
    Array,
    ArrayLike,
    ConcreteArray,
    as_array,
    as_value,
    from_numpy,
    scalar,
)
from axir.dialect.core.config import config
from axir.dialect.core.errors import (
    ConcretizationTypeError,
    NonArrayArgumentError,
    ParameterError,
    ShapeError,
)
from axir.dialect.core.places import settled
from axir.dialect.core.symbolic_dims import as_extent, is_open
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.collectives.axis_reductions import pvary
from axir.dialect.ops.elementwise.comparison import ne
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.elementwise.family import full as repeated
from axir.dialect.ops.shape.broadcasting import expand_dims
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.constants import full as filled
from axir.dialect.program.described_arrays import note_computed
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Tracer
from axir.numpy._arguments.promotion import (
    SCALARS,
    array_argument,
    broadcast_value,
    cast,
    common_shape,
    dtype_and_weakness,
    dtype_argument,
    not_an_array,
)
from axir.numpy._elementwise.exponential import real

__all__ = [
    "array", "asarray", "copy", "empty", "empty_like", "full", "full_like", "ones", "ones_like",
    "zeros", "zeros_like",
]  # fmt: skip

_SEQUENCES = (list, tuple, range)
_BUFFERS = (bytearray, memoryview)


def canonical_shape(name: str, shape: UserObject) -> tuple[int, ...]:
    """Returns a `shape` argument, an integer or a sequence of integers, as a tuple.

    Raises:
        ShapeError: if it is something else, or an extent is negative.
    """
    # Libraries define their own sequence classes for shapes; arrays of rank 0 are numbers.
    is_sequence = hasattr(type(shape), "__iter__") and getattr(shape, "ndim", 1) != 0
    try:
        given = shape if is_sequence else (shape,)
        extents = tuple([as_extent(extent) for extent in given])
    except ConcretizationTypeError:
        raise
    except TypeError:
        raise ShapeError(
            f"jnp.{name}: {shape!r} is not a shape.",
            "A shape is an integer or a tuple of non-negative integers, known while tracing.",
        ) from None
    if any(extent < 0 for extent in extents):
        raise ShapeError(f"jnp.{name}: shape {extents} has a negative extent.")
    return extents


def to_device(x: Value, device: object, name: str = "array", out_sharding: object = None) -> Value:
    """Moves a new array to a device or sharding, by default to `jax_default_device`."""
    if out_sharding is not None:
        return laid_out(x, f"jnp.{name}", out_sharding)
    if device is not None:
        return device_put(x, device)
    if config.jax_default_device is not None and type(x) is ConcreteArray and x._device is None:
        return settled(x)
    return x


# From Python values ----------------------------------------------------------------------------


def asarray(
    a: ArrayLike,
    dtype: DTypeLike = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: object = None,
    out_sharding: object = None,
) -> Value:
    """Turns a value into an array, without a copy if it is one already.

    Args:
        a: Array, NumPy array, Python scalar, or nested lists or tuples of them.
        dtype: dtype of the result. By default `a`'s (a Python scalar's is weak), or the one that
            the elements promote to.
        order: Memory layout: None, 'C' or 'K'.
        copy: Whether to copy an array even if need not be.
        device: Where to put it.
        out_sharding: How it is cut along `Explicit` axes of a mesh.

    Raises:
        NonArrayArgumentError: for something that is not an array, or lists that hold one.
        ParameterError: for nested lists of different lengths.
        DTypeError: for strings and other dtypes that are not numbers.
        OverflowError: for an integer too large for the dtype.

    >>> import axir.numpy as jnp
    >>> jnp.asarray([1, 2.5])
    Array([1. , 2.5], dtype=float32)
    """
    return array(a, dtype, copy=bool(copy), order=order, device=device, out_sharding=out_sharding)


def array(
    object: object,
    dtype: DTypeLike = None,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    *,
    device: object = None,
    out_sharding: object = None,
) -> Value:
    """Turns a value into an array.

    Args:
        object: Array, NumPy array, Python scalar, or nested lists or tuples of them; a bytearray or
            memoryview.
        dtype: dtype of the result. By default `object`'s (a Python scalar's is weak), or the one
            that the elements promote to.
        copy: Whether to copy an array.
        order: Memory layout: None, 'C' or 'K'.
        ndmin: Least number of axes; further ones are put in front.
        device: Where to put it.
        out_sharding: How it is cut along `Explicit` axes of a mesh.

    Raises:
        NonArrayArgumentError, ParameterError, DTypeError, OverflowError: as `asarray`.

    >>> import axir.numpy as jnp
    >>> jnp.array([[1, 2], [3, 4]], dtype=jnp.int8, ndmin=3).shape
    (1, 2, 2)
    """
    if order not in (None, "C", "K"):
        raise ParameterError(f"jnp.array: order {order!r} is neither 'C' nor 'K'.")
    new_dtype = None if dtype is None else dtype_argument("array", dtype)
    result = _as_array(object, new_dtype)
    if copy and result is object and type(result) is ConcreteArray:
        result = ConcreteArray(result.type, result.host().copy(), None, result._device)
    if ndmin > result.ndim:
        result = expand_dims(result, range(ndmin - result.ndim))
    return to_device(result, device, "array", out_sharding)


def _as_array(value: UserObject, dtype: np.dtype | None) -> Value:
    python_type = type(value)
    if python_type is ConcreteArray or python_type is Tracer:
        return value if dtype is None else _converted(value, dtype)
    if python_type in SCALARS:
        return scalar(value) if dtype is None else _from_host(value, dtype)
    if isinstance(value, _SEQUENCES):
        return _from_sequence(value, dtype)
    if isinstance(value, _BUFFERS):
        value = np.asarray(value)
    if isinstance(value, (np.ndarray, np.generic)):
        return as_array(value) if dtype is None else _from_host(value, dtype)
    if isinstance(value, str) and dtype is not None:
        return _from_host(value, dtype)
    try:
        result = as_value(value)
    except NonArrayArgumentError:
        raise not_an_array("array", value, 0) from None
    return result if dtype is None else _converted(result, dtype)


def _converted(value: Value, dtype: np.dtype, weak_type: bool = False) -> Value:
    if dtypes.is_complex(value.dtype) and not dtypes.is_complex(dtype):
        value = ne(value, repeated((), 0, value.dtype)) if dtype == dtypes.bool_ else real(value)
    return convert_element_type(value, dtype, weak_type)


def _from_host(value: object, dtype: np.dtype) -> Array:
    # Weak types do not survive a dtype that was asked for; NumPy checks the range of integers.
    host = np.asarray(value)
    if host.dtype.kind == "c" and not dtypes.is_complex(dtype) and dtype != dtypes.bool_:
        host = host.real
    source = value if type(value) in SCALARS else host
    if type(source) is complex:
        source = host
    return from_numpy(np.array(source, dtype=dtype))


def _from_sequence(value: object, dtype: np.dtype | None) -> Value:
    leaves: list[UserObject] = []
    _collect_leaves(value, leaves)
    kinds = {type(leaf) for leaf in leaves}
    if Tracer in kinds:
        return _stacked(value, _common_dtype(leaves) if dtype is None else dtype)
    if not kinds <= SCALARS:
        leaves = [array_argument("array", leaf) for leaf in leaves]
    if dtype is None:
        dtype = _common_dtype(leaves)
    if dtypes.is_key(dtype):
        return _stacked(value, dtype)
    if kinds <= SCALARS and (complex not in kinds or dtypes.is_complex(dtype)):
        return from_numpy(_checked(lambda: np.array(value, dtype=dtype)))
    return from_numpy(_checked(lambda: np.array(_hosts(value, dtype), dtype=dtype)))


def _collect_leaves(value: UserObject, leaves: list[object]) -> None:
    if isinstance(value, range):
        leaves += [0, value.start, value.stop][: 3 if value else 0]
        return
    for entry in value:
        if isinstance(entry, _SEQUENCES):
            _collect_leaves(entry, leaves)
        else:
            leaves.append(entry)


def _common_dtype(leaves: Sequence[object]) -> np.dtype:
    if not leaves:
        return dtypes.canonicalize_dtype(dtypes.float64)
    return dtypes.promote({dtype_and_weakness(_typed(leaf)) for leaf in leaves})[0]


def _typed(leaf: object) -> object:
    return leaf if type(leaf) in SCALARS else array_argument("array", leaf)


def _checked(make: UserObject) -> np.ndarray:
    try:
        return make()
    except ValueError as error:
        raise ParameterError(
            f"jnp.array: the nested lists do not form an array: {error}.",
            "All lists on one level must have the same length.",
        ) from None


def _hosts(value: object, dtype: np.dtype) -> object:
    """Returns nested lists with arrays replaced by NumPy arrays of a dtype."""
    if isinstance(value, (list, tuple)):
        return [_hosts(entry, dtype) for entry in value]
    if isinstance(value, range) or type(value) in (bool, int, float):
        return value
    return np.asarray(_converted(array_argument("array", value), dtype))


def _stacked(value: object, dtype: np.dtype) -> Value:
    """Joins nested lists that hold tracers."""
    if not isinstance(value, _SEQUENCES):
        return _converted(array_argument("array", value), dtype)
    if not len(value):
        return zeros((0,), dtype)
    entries = [_stacked(entry, dtype) for entry in value]
    if any(entry.shape != entries[0].shape for entry in entries):
        raise ParameterError(
            "jnp.array: the nested lists do not form an array: their entries have shapes "
            f"{', '.join(str(entry.shape) for entry in entries)}.",
            "All lists on one level must have the same length.",
        )
    return concatenate([expand_dims(entry, (0,)) for entry in entries], 0)


def copy(a: ArrayLike, order: str | None = None) -> Value:
    """Returns a copy of an array.

    >>> import axir.numpy as jnp
    >>> jnp.copy(jnp.arange(2))
    Array([0, 1], dtype=int32)
    """
    return array(a, copy=True, order=order)


# Filled arrays ---------------------------------------------------------------------------------


def full(
    shape: ShapeLike,
    fill_value: ArrayLike,
    dtype: DTypeLike = None,
    *,
    device: object = None,
    out_sharding: object = None,
) -> Value:
    """Returns an array filled with a value.

    Args:
        shape: Its shape, an integer or a sequence of integers.
        fill_value: Scalar, or array that broadcasts to the shape.
        dtype: Its dtype; by default the value's.
        device: Where to put it.
        out_sharding: How it is cut along `Explicit` axes of a mesh.

    Raises:
        ShapeError: for something that is not a shape.

    >>> import axir.numpy as jnp
    >>> jnp.full((2, 2), 7)
    Array([[7, 7],
           [7, 7]], dtype=int32, weak_type=True)
    """
    shape = canonical_shape("full", shape)
    if dtype is None:
        value = array_argument("full", fill_value, 1)
    else:
        new_dtype = dtype_argument("full", dtype)
        if dtypes.is_key(new_dtype) and type(fill_value) in SCALARS:
            made: Value = repeated(shape, fill_value, new_dtype)
            return to_device(made, device, "full", out_sharding)
        value = converted(fill_value, new_dtype, name="full")
    if not value.shape:
        return to_device(filled(shape, value), device, "full", out_sharding)
    if common_shape((value.shape, shape)) != shape:
        raise ShapeError(f"jnp.full: the fill value {value.type} does not broadcast to {shape}.")
    return to_device(broadcast_value(value, shape), device, "full", out_sharding)


class _Filled(Protocol):
    """A function that makes an array of equal elements."""

    def __call__(
        self,
        shape: ShapeLike,
        dtype: DTypeLike = None,
        *,
        device: object = None,
        out_sharding: object = None,
    ) -> Array: ...


def _filled(name: str, value: int, summary: str) -> _Filled:
    def function(
        shape: ShapeLike,
        dtype: DTypeLike = None,
        *,
        device: object = None,
        out_sharding: object = None,
    ) -> Array:
        shape = canonical_shape(name, shape)
        new_dtype = dtype_argument(name, float if dtype is None else dtype)
        result = _repeated(shape, value, new_dtype)
        if new_dtype == dtypes.float0:
            return result
        return to_device(result, device, name, out_sharding)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{summary}

    Args:
        shape: Its shape, an integer or a sequence of integers.
        dtype: Its dtype, by default the default float dtype.
        device: Where to put it.
        out_sharding: How it is cut along axes of a mesh whose type is `Explicit`.

    Raises:
        ShapeError: for something that is not a shape.
    """
    return function


def _repeated(shape: tuple[int, ...], value: int, dtype: np.dtype) -> Array:
    if dtype == dtypes.float0:  # elements without any bytes: an array of NumPy's
        return np.zeros(shape, dtype)  # type: ignore[return-value]
    # A view: a shape of any size takes the memory of one element.
    if dtypes.is_key(dtype) or is_open(shape):
        return repeated(shape, value, dtype)
    host = np.broadcast_to(np.array(value, dtype), shape)
    return note_computed(ConcreteArray(ShapedArray(shape, dtype), host))


zeros = _filled("zeros", 0, "Returns an array of zeros.")
ones = _filled("ones", 1, "Returns an array of ones.")
empty = _filled("empty", 0, "Returns an array of zeros, since there is no uninitialized memory.")


def full_like(
    a: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike = None,
    shape: ShapeLike | None = None,
    *,
    device: object = None,
    out_sharding: object = None,
) -> Value:
    """Returns an array filled with a value, with the shape and dtype of another.

    Args:
        a: Array or scalar, or anything with `shape` and `dtype`.
        fill_value: Scalar, or array that broadcasts to the shape.
        dtype: Another dtype.
        shape: Another shape.
        device: Where to put it; by default where `a` is committed to lie, if it has the shape.
        out_sharding: How it is cut along `Explicit` axes of a mesh.

    >>> import axir.numpy as jnp
    >>> jnp.full_like(jnp.arange(2), 7)
    Array([7, 7], dtype=int32)
    """
    if not (hasattr(a, "shape") and hasattr(a, "dtype")):
        a = array_argument("full_like", a)
    new_shape = a.shape if shape is None else canonical_shape("full_like", shape)
    if device is None and out_sharding is None:
        device = place_like(a, new_shape)
    new_dtype = a.dtype if dtype is None else dtype
    if new_dtype == dtypes.float0:
        return _repeated(new_shape, 0, dtypes.float0)
    result = full(new_shape, fill_value, new_dtype, device=device, out_sharding=out_sharding)
    if dtype is None and getattr(a, "weak_type", False):
        result = convert_element_type(result, result.dtype, True)
    return pvary(result, a.type.varying) if type(a) is Tracer else result


class _FilledLike(Protocol):
    """A function that makes an array of equal elements, of the shape and dtype of another."""

    def __call__(
        self,
        a: object,
        dtype: DTypeLike = None,
        shape: ShapeLike | None = None,
        *,
        device: object = None,
        out_sharding: object = None,
    ) -> Array: ...


def _filled_like(name: str, value: int, summary: str) -> _FilledLike:
    def function(
        a: UserObject,
        dtype: DTypeLike = None,
        shape: ShapeLike | None = None,
        *,
        device: object = None,
        out_sharding: object = None,
    ) -> Value:
        if not (hasattr(a, "shape") and hasattr(a, "dtype")):
            a = array_argument(name, a)
        return full_like(a, value, dtype, shape, device=device, out_sharding=out_sharding)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{summary}, with the shape and dtype of another array.

    Args:
        a: Array or scalar, or anything with `shape` and `dtype`.
        dtype: Another dtype.
        shape: Another shape.
        device: Where to put it.
        out_sharding: How it is cut along axes of a mesh whose type is `Explicit`.
    """
    return function


zeros_like = _filled_like("zeros_like", 0, "Returns an array of zeros")
ones_like = _filled_like("ones_like", 1, "Returns an array of ones")


def empty_like(
    prototype: object,
    dtype: DTypeLike = None,
    shape: ShapeLike | None = None,
    *,
    device: object = None,
) -> Value:
    """Returns an array of zeros, with the shape and dtype of another array.

    Args:
        prototype: Array or scalar, or anything with `shape` and `dtype`.
        dtype: Another dtype.
        shape: Another shape.
        device: Where to put it.
    """
    return zeros_like(prototype, dtype, shape, device=device)


def converted(
    value: object, dtype: np.dtype, weak_type: bool = False, name: str = "array"
) -> Value:
    """Returns a value in a dtype; of complex numbers the real part where the dtype is real.

    As bool, a nonzero value is True.
    """
    # Python integers may exceed the default dtype, so they go straight to the one asked for.
    if type(value) is int or type(value) is bool:
        return cast(value, dtype, weak_type)
    return _converted(array_argument(name, value), dtype, weak_type)

"""Arrays filled with one value: `full`, `zeros`, `ones_like` and the like."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from axir._devices.placement import place_like
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike, ShapeLike, UserObject
from axir.dialect.core.array import (
    Array,
    ArrayLike,
    ConcreteArray,
)
from axir.dialect.core.errors import (
    ShapeError,
)
from axir.dialect.core.symbolic_dims import is_open
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.collectives.axis_reductions import pvary
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.elementwise.family import full as repeated
from axir.dialect.ops.shape.constants import full as filled
from axir.dialect.program.described_arrays import note_computed
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Tracer
from axir.numpy._arguments.promotion import (
    SCALARS,
    array_argument,
    broadcast_value,
    common_shape,
    dtype_argument,
)

from .creation import canonical_shape, converted, to_device

__all__ = ["empty", "empty_like", "full", "full_like", "ones", "ones_like", "zeros", "zeros_like"]


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

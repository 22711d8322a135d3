"""Functions of `axir.lax` with an argument `out_sharding`: filled arrays, and operations."""

from __future__ import annotations

from collections.abc import Sequence

from axir._devices.placement import device_put, lies_where_told, place_like
from axir.dialect.core.annotations import DTypeLike
from axir.dialect.core.array import ArrayLike
from axir.dialect.ops.contraction import dot_general as contraction
from axir.dialect.ops.convolution import conv_general_dilated as convolution
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.ops.reductions import reduce
from axir.dialect.ops.shape import broadcasting, constants, rearranging
from axir.dialect.program.rules import Value


def full(
    shape: Sequence[int],
    fill_value: ArrayLike,
    dtype: DTypeLike = None,
    *,
    sharding: object = None,
) -> Value:
    """Returns an array filled with one value.

    Args:
        shape: Its shape.
        fill_value: A scalar: a Python or NumPy number, or an array of rank 0.
        dtype: Its dtype; by default the value's (weak if the value's is).
        sharding: Where it lies; by default wherever a computation is.

    Raises:
        ShapeError: if the value is not a scalar.

    >>> full((2,), 1.5)
    Array([1.5, 1.5], dtype=float32, weak_type=True)
    """
    made = constants.full(shape, fill_value, dtype)
    return made if sharding is None else device_put(made, sharding)


def full_like(
    x: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike = None,
    shape: Sequence[int] | None = None,
    sharding: object = None,
) -> Value:
    """Returns an array filled with one value, of another array's shape and dtype unless given.

    Args:
        x: The other array.
        fill_value: A scalar.
        dtype: Another dtype.
        shape: Another shape.
        sharding: Where it lies; by default where the other array is committed to lie.

    >>> import numpy as np
    >>> full_like(np.ones((2,), np.int8), 3)
    Array([3, 3], dtype=int8)
    """
    if not (hasattr(x, "shape") and hasattr(x, "dtype")):
        x = as_value(x)
    made = constants.full_like(x, fill_value, dtype, shape)
    place = place_like(x, made.shape) if sharding is None else sharding
    return made if place is None else device_put(made, place)


@lies_where_told
def broadcasted_iota(
    dtype: DTypeLike, shape: Sequence[int], dimension: int, *, out_sharding: object = None
) -> Value:
    """Returns numbers that count along one dimension of a shape.

    Args:
        dtype: Its dtype, of numbers.
        shape: Its shape.
        dimension: Along which it counts.
        out_sharding: How it is cut along `Explicit` axes of a mesh.

    Raises:
        DTypeError: for bool.
        AxisError: if the shape has no such dimension.

    >>> broadcasted_iota("int32", (2, 2), 1)
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    return constants.broadcasted_iota(dtype, shape, dimension)


broadcast = lies_where_told(broadcasting.broadcast)
broadcast_in_dim = lies_where_told(broadcasting.broadcast_in_dim)
conv_general_dilated = lies_where_told(convolution.conv_general_dilated)
dot = lies_where_told(contraction.dot)
dot_general = lies_where_told(contraction.dot_general)
reduce_max = lies_where_told(reduce.reduce_max)
reduce_min = lies_where_told(reduce.reduce_min)
reduce_sum = lies_where_told(reduce.reduce_sum)
reshape = lies_where_told(rearranging.reshape)

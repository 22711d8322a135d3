"""Rearranging one array: reshaping, permuting axes, broadcasting, reversing, rolling.

Elsewhere: joining, splitting and repeating (`joining.py`), padding (`padding.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index

import numpy as np

from axir._devices.placement import laid_out
from axir.dialect.core.annotations import (
    Axes,
    ShapeLike,
    UserObject,
)
from axir.dialect.core.array import ArrayLike, ConcreteArray
from axir.dialect.core.errors import AxisError, ParameterError, ShapeError
from axir.dialect.core.symbolic_dims import (
    as_extent,
    check_decided,
    is_same,
    is_symbolic_dim,
)
from axir.dialect.ops.shape import broadcasting
from axir.dialect.ops.shape.broadcasting import broadcast_shapes
from axir.dialect.ops.shape.rearranging import squeeze as lax_squeeze
from axir.dialect.program.op_table import OPS
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Tracer
from axir.numpy._arguments.checks import canonical_axes, canonical_axis, is_sequence
from axir.numpy._arguments.promotion import BroadcastError, array_argument

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_shapes",
    "broadcast_to", "expand_dims", "matrix_transpose", "moveaxis", "permute_dims", "ravel",
    "reshape", "rollaxis", "squeeze", "swapaxes", "transpose",
]  # fmt: skip

_bind_reshape = OPS["reshape"].bind
_bind_transpose = OPS["transpose"].bind

# Shapes ----------------------------------------------------------------------------------------


def reshape(
    a: ArrayLike,
    shape: ShapeLike,
    order: str = "C",
    *,
    copy: bool | None = None,
    out_sharding: object = None,
) -> Value:
    """Gives an array another shape of as many elements.

    Args:
        a: Array.
        shape: An extent or a sequence of them; one may be -1 and is then inferred.
        order: 'C' to read and write with the last axis fastest, 'F' with the first.
        copy: Accepted for compatibility; arrays are immutable.
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.

    Raises:
        ShapeError: if the numbers of elements differ, or -1 cannot be inferred.
        ParameterError: for another order.

    >>> import axir.numpy as jnp
    >>> jnp.reshape(jnp.arange(6), (2, -1))
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)
    """
    if type(a) is not ConcreteArray and type(a) is not Tracer:
        a = array_argument("reshape", a)
    new_sizes = _inferred_shape(a, shape)
    if out_sharding is not None:
        return laid_out(reshape(a, new_sizes, order), "reshape", out_sharding)
    if order == "C":
        return _bind_reshape(a, new_sizes=new_sizes, dimensions=None)
    if order != "F":
        raise ParameterError(
            f"jnp.reshape: order={order!r} is not supported; arrays have no memory layout.",
            "Pass 'C' or 'F'.",
        )
    return transpose(_bind_reshape(transpose(a), new_sizes=new_sizes[::-1], dimensions=None))


def _inferred_shape(a: Value, shape: UserObject) -> tuple[int, ...]:
    if type(shape) is int or is_symbolic_dim(shape):
        shape = (shape,)
    elif not isinstance(shape, (tuple, list)):
        shape = (shape,) if np.ndim(shape) == 0 else tuple(shape)
    sizes = tuple([n if type(n) is int else as_extent(n) for n in shape])
    if -1 not in sizes:
        return sizes
    place = sizes.index(-1)
    known = math.prod(sizes[:place] + sizes[place + 1 :])
    if -1 in sizes[place + 1 :] or known <= 0 or not is_same(a.size % known, 0):
        raise ShapeError(
            f"jnp.reshape: cannot infer the shape {sizes} for {a.aval} of {a.size} elements.",
            "Only one extent may be -1, and the others must divide the number of elements.",
        )
    return (*sizes[:place], a.size // known, *sizes[place + 1 :])


def ravel(a: ArrayLike, order: str = "C", *, out_sharding: object = None) -> Value:
    """Flattens an array to one axis, in the order that `reshape` describes.

    >>> import axir.numpy as jnp
    >>> jnp.ravel(jnp.array([[1, 2], [3, 4]]), order="F")
    Array([1, 3, 2, 4], dtype=int32)
    """
    a = array_argument("ravel", a)
    return reshape(a, (a.size,), order, out_sharding=out_sharding)


def squeeze(a: ArrayLike, axis: Axes = None) -> Value:
    """Removes axes of extent 1.

    Args:
        a: Array.
        axis: Axis or sequence of axes; by default all of extent 1.

    Raises:
        AxisError: for an axis out of range, named twice, or of another extent.

    >>> import axir.numpy as jnp
    >>> jnp.squeeze(jnp.ones((1, 2, 1)), axis=0).shape
    (2, 1)
    """
    a = array_argument("squeeze", a)
    if axis is None:
        check_decided(a.shape, 1)
        axes = tuple([d for d, extent in enumerate(a.shape) if extent == 1])
    else:
        axes = canonical_axes("squeeze", axis, a.ndim)
        for d in axes:
            if a.shape[d] != 1:
                raise AxisError(
                    f"jnp.squeeze: axis {d} of {a.aval} has extent {a.shape[d]}, not 1.",
                    "Name axes of extent 1, or none for all of them.",
                )
    return lax_squeeze(a, axes)


def expand_dims(a: ArrayLike, axis: UserObject) -> Value:
    """Inserts axes of extent 1 where the result has them.

    Raises:
        AxisError: for an axis that the result does not have, or named twice.

    >>> import axir.numpy as jnp
    >>> jnp.expand_dims(jnp.ones((2, 3)), (0, -1)).shape
    (1, 2, 3, 1)
    """
    a = array_argument("expand_dims", a)
    axes = tuple(axis) if is_sequence(axis) else (index(axis),)
    canonical = canonical_axes("expand_dims", axes, a.ndim + len(axes))
    return broadcasting.expand_dims(a, canonical)


def atleast_1d(*arys: object) -> UserObject:
    """Returns arrays with at least one axis: scalars get one of extent 1.

    One argument gives an array, several a list of arrays.

    >>> import axir.numpy as jnp
    >>> jnp.atleast_1d(3)
    Array([3], dtype=int32, weak_type=True)
    """
    return _each("atleast_1d", arys, lambda x: x.shape or (1,))


def atleast_2d(*arys: object) -> UserObject:
    """Returns arrays with at least two axes, by new ones in front; see `atleast_1d`.

    >>> import axir.numpy as jnp
    >>> jnp.atleast_2d(jnp.ones(3)).shape
    (1, 3)
    """
    return _each("atleast_2d", arys, lambda x: (1,) * (2 - x.ndim) + x.shape)


def atleast_3d(*arys: object) -> UserObject:
    """Returns arrays with at least three axes: (n,) becomes (1, n, 1), and (m, n) (m, n, 1).

    >>> import axir.numpy as jnp
    >>> jnp.atleast_3d(jnp.ones((2, 3))).shape
    (2, 3, 1)
    """

    def shape(x: Value) -> tuple[int, ...]:
        if x.ndim == 2:
            return (*x.shape, 1)
        return x.shape if x.ndim > 2 else (1, *(x.shape or (1,)), 1)

    return _each("atleast_3d", arys, shape)


def _each(name: str, arys: Sequence[object], shape: UserObject) -> UserObject:
    results = []
    for position, x in enumerate(arys):
        x = array_argument(name, x, position)
        results.append(x if shape(x) == x.shape else reshape(x, shape(x)))
    return results[0] if len(results) == 1 else results


def broadcast_to(array: object, shape: UserObject, *, out_sharding: object = None) -> Value:
    """Stretches an array to a shape, by NumPy's rules.

    Raises:
        BroadcastError: if the array does not stretch to the shape.

    >>> import axir.numpy as jnp
    >>> jnp.broadcast_to(jnp.array([1, 2]), (2, 2))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    array = array_argument("broadcast_to", array)
    if out_sharding is not None:
        return laid_out(broadcast_to(array, shape), "broadcast_to", out_sharding)
    is_sequence_given = isinstance(shape, (tuple, list)) or np.ndim(shape) > 0
    target = tuple([as_extent(n) for n in (shape if is_sequence_given else (shape,))])
    offset = len(target) - array.ndim
    if offset < 0 or any(
        extent not in (1, target[offset + d]) for d, extent in enumerate(array.shape)
    ):
        raise BroadcastError(
            f"jnp.broadcast_to: {array.aval} does not broadcast to shape {target}.",
            "Extents, counted from the last axis, must be equal or 1 in the array.",
        )
    if array.shape == target:
        return array
    return broadcasting.broadcast_in_dim(array, target, tuple(range(offset, len(target))))


def broadcast_arrays(*args: object) -> list[Value]:
    """Stretches arrays to their common shape; their dtypes stay.

    Raises:
        ParameterError: if the shapes do not fit.

    >>> import axir.numpy as jnp
    >>> [x.shape for x in jnp.broadcast_arrays(jnp.ones((2, 1)), jnp.ones(3))]
    [(2, 3), (2, 3)]
    """
    arrays = [array_argument("broadcast_arrays", x, i) for i, x in enumerate(args)]
    shape = broadcast_shapes(*[x.shape for x in arrays])
    return [broadcast_to(x, shape) for x in arrays]


# Axes ------------------------------------------------------------------------------------------


def transpose(a: object, axes: UserObject = None) -> Value:
    """Permutes the axes of an array.

    Args:
        a: Array.
        axes: Which axis of `a` each axis of the result is; by default they are reversed.

    Raises:
        ShapeError: if that is no permutation of the axes.
        AxisError: if an axis is out of range.

    >>> import axir.numpy as jnp
    >>> jnp.transpose(jnp.ones((2, 3, 4)), (1, 0, -1)).shape
    (3, 2, 4)
    """
    if type(a) is not ConcreteArray and type(a) is not Tracer:
        a = array_argument("transpose", a)
    rank = a.type.ndim
    if axes is None:
        return a if rank < 2 else _bind_transpose(a, permutation=tuple(range(rank - 1, -1, -1)))
    if not isinstance(axes, (tuple, list)):
        axes = (axes,) if np.ndim(axes) == 0 else tuple(axes)
    permutation = tuple([canonical_axis("transpose", axis, rank) for axis in axes])
    if sorted(permutation) != list(range(rank)):
        raise ShapeError(
            f"jnp.transpose: axes {tuple(axes)} are no permutation of the {rank} axes of {a.aval}.",
            "Name each axis once.",
        )
    return _permuted(a, permutation)


def _permuted(a: Value, permutation: tuple[int, ...]) -> Value:
    if permutation == tuple(range(len(permutation))):
        return a
    return _bind_transpose(a, permutation=permutation)


def permute_dims(a: ArrayLike, /, axes: Axes) -> Value:
    """Permutes the axes of an array; see `transpose`."""
    return transpose(array_argument("permute_dims", a), axes)


def matrix_transpose(x: ArrayLike, /) -> Value:
    """Exchanges the last two axes.

    Raises:
        ShapeError: if there are fewer than two.

    >>> import axir.numpy as jnp
    >>> jnp.matrix_transpose(jnp.ones((2, 3, 4))).shape
    (2, 4, 3)
    """
    x = array_argument("matrix_transpose", x)
    if x.ndim < 2:
        raise ParameterError(
            f"jnp.matrix_transpose: needs an array of at least two axes, not {x.aval}.",
            "jnp.atleast_2d makes a matrix of a vector.",
        )
    return swapaxes(x, -1, -2)


def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Value:
    """Exchanges two axes.

    Raises:
        AxisError: if the array has no such axis.

    >>> import axir.numpy as jnp
    >>> jnp.swapaxes(jnp.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    a = array_argument("swapaxes", a)
    first = canonical_axis("swapaxes", axis1, a.ndim)
    second = canonical_axis("swapaxes", axis2, a.ndim)
    order = list(range(a.ndim))
    order[first], order[second] = second, first
    return _permuted(a, tuple(order))


def moveaxis(a: ArrayLike, source: object, destination: object) -> Value:
    """Moves axes to other places; the others keep their order.

    Args:
        a: Array.
        source: Axis or sequence of axes of `a`.
        destination: Where each goes in the result.

    Raises:
        AxisError: for axes out of range or named twice.
        ParameterError: if there are not as many sources as destinations.

    >>> import axir.numpy as jnp
    >>> jnp.moveaxis(jnp.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    a = array_argument("moveaxis", a)
    sources = canonical_axes("moveaxis", source, a.ndim)
    destinations = canonical_axes("moveaxis", destination, a.ndim)
    if len(sources) != len(destinations):
        raise ParameterError(
            f"jnp.moveaxis: source {source} and destination {destination} differ in length.",
            "Give each source a destination.",
        )
    order = [d for d in range(a.ndim) if d not in sources]
    for place, axis in sorted(zip(destinations, sources, strict=True)):
        order.insert(place, axis)
    return _permuted(a, tuple(order))


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Value:
    """Moves an axis in front of another one; `moveaxis` is easier to understand.

    >>> import axir.numpy as jnp
    >>> jnp.rollaxis(jnp.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    a = array_argument("rollaxis", a)
    axis = canonical_axis("rollaxis", axis, a.ndim)
    place = a.ndim if index(start) == a.ndim else canonical_axis("rollaxis", start, a.ndim)
    return moveaxis(a, axis, place - 1 if axis < place else place)


# Order of elements -----------------------------------------------------------------------------

"""Differences of neighbours: `diff`, `ediff1d`, `gradient`, and the trapezoidal rule."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Axes, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import AxirError, ParameterError
from axir.dialect.ops.elementwise.arithmetic import add, div, mul, sub
from axir.dialect.ops.elementwise.comparison import ne
from axir.dialect.ops.indexing.static_slicing import slice_in_dim
from axir.dialect.ops.shape.broadcasting import broadcast_in_dim
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.program.rules import Value
from axir.numpy._arguments.checks import canonical_axes, canonical_axis
from axir.numpy._arguments.promotion import array_argument, cast, promote_arguments, promote_inexact
from axir.numpy._elementwise.arithmetic import multiply

from .reductions import sum as sum_elements

__all__ = ["diff", "ediff1d", "gradient", "trapezoid"]


class EdgeOrderError(AxirError, NotImplementedError):
    """An order of accuracy at the edges that `gradient` does not have."""


def diff(
    a: ArrayLike, n: int = 1, axis: int = -1, prepend: object = None, append: object = None
) -> Value:
    """Returns differences of neighbours along an axis, n times.

    Args:
        a: Array of at least one axis; for bools the result tells where neighbours differ.
        n: How often.
        axis: The axis, which gets shorter by n.
        prepend, append: Scalars or arrays to put before and after `a` first.

    Raises:
        ParameterError: for a scalar, or a negative n.
        AxisError: for an axis out of range.

    >>> import axir.numpy as jnp
    >>> jnp.diff(jnp.array([1, 4, 9]))
    Array([3, 5], dtype=int32)
    """
    a = array_argument("diff", a)
    count = index(n)
    if not count:
        return a
    if count < 0 or not a.ndim:
        raise ParameterError(
            f"jnp.diff: n={n} of {a.aval}: order must be non-negative, and the input must have at "
            "least one axis.",
            "Pass n=1 for differences of neighbours.",
        )
    axis = canonical_axis("diff", axis, a.ndim)
    parts = [a]
    if prepend is not None:
        parts.insert(0, _neighbour(a, prepend, axis))
    if append is not None:
        parts.append(_neighbour(a, append, axis))
    if len(parts) > 1:
        a = concatenate(promote_arguments("diff", *parts), axis)
    subtract = ne if a.dtype == dtypes.bool_ else sub
    for _ in range(count):
        extent = a.shape[axis]
        if not extent:
            break
        later = slice_in_dim(a, 1, extent, axis=axis)
        a = subtract(later, slice_in_dim(a, 0, extent - 1, axis=axis))
    return a


def _neighbour(a: Value, value: object, axis: int) -> Value:
    value = array_argument("diff", value)
    if value.ndim:
        return value
    shape = tuple(1 if d == axis else extent for d, extent in enumerate(a.shape))
    return broadcast_in_dim(value, shape, ())


def ediff1d(ary: ArrayLike, to_end: UserObject = None, to_begin: UserObject = None) -> Value:
    """Returns differences of neighbours of the flattened array, with elements around them.

    >>> import axir.numpy as jnp
    >>> jnp.ediff1d(jnp.array([1, 4, 9]), to_begin=0)
    Array([0, 3, 5], dtype=int32)
    """
    ary = array_argument("ediff1d", ary)
    flat = reshape(ary, (ary.size,))
    extent = flat.shape[0]
    earlier = slice_in_dim(flat, 0, max(extent - 1, 0))
    parts = [sub(slice_in_dim(flat, min(1, extent), extent), earlier)]
    if to_begin is not None:
        parts.insert(0, _flat(to_begin))
    if to_end is not None:
        parts.append(_flat(to_end))
    if len(parts) == 1:
        return parts[0]
    return concatenate([cast(x, flat.dtype, flat.type.weak_type) for x in parts], 0)


def _flat(x: ArrayLike) -> Value:
    x = array_argument("ediff1d", x)
    return reshape(x, (x.size,))


def gradient(
    f: ArrayLike, *varargs: object, axis: Axes = None, edge_order: int | None = None
) -> Value | list[Value]:
    """Returns derivatives of sampled values along axes, by central differences.

    At the edges they are one-sided, of first order.

    Args:
        f: Array of samples.
        *varargs: Distances of the samples: one number for all axes, or for each axis a number or
            the vector of its coordinates. 1 by default.
        axis: Axis or tuple of axes; all by default.
        edge_order: Must be None.

    Returns:
        An array for one axis, a list of them for several.

    Raises:
        ParameterError: for an axis of less than 2 samples, or the wrong number of distances.
        EdgeOrderError: if `edge_order` is given.

    >>> import axir.numpy as jnp
    >>> jnp.gradient(jnp.array([1.0, 2.0, 4.0, 7.0]))
    Array([1. , 1.5, 2.5, 3. ], dtype=float32)
    """
    if edge_order is not None:
        raise EdgeOrderError(
            f"jnp.gradient: edge_order={edge_order} is not supported; edges are of first order.",
            "Leave it out.",
        )
    f = promote_inexact("gradient", array_argument("gradient", f))[0]
    axes = canonical_axes("gradient", axis, f.ndim)
    distances = [array_argument("gradient", x, i + 1) for i, x in enumerate(varargs)]
    if len(distances) < 2:
        distances = (distances or [array_argument("gradient", 1.0)]) * len(axes)
    if len(distances) != len(axes):
        raise ParameterError(
            f"jnp.gradient: {len(distances)} distances do not fit {len(axes)} axes.",
            "Pass none, one number, or one argument per axis.",
        )
    results = [_derivative(f, d, h) for d, h in zip(axes, distances, strict=True)]
    return results[0] if len(axes) == 1 else results


def _derivative(f: Value, axis: int, distance: Value) -> Value:
    extent = f.shape[axis]
    if extent < 2:
        raise ParameterError(
            f"jnp.gradient: axis {axis} of {f.aval} has extent {extent}; there must be at least 2 "
            "samples.",
            "Choose other axes with axis=.",
        )
    f, distance = promote_inexact("gradient", f, distance)

    def part(start: int, stop: int) -> Value:
        return slice_in_dim(f, start, stop, axis=axis)

    first, last = sub(part(1, 2), part(0, 1)), sub(part(extent - 1, extent), part(-2, -1))
    if distance.ndim == 0:
        middle = mul(sub(part(2, extent), part(0, extent - 2)), 0.5)
        return div(concatenate([first, middle, last], axis), distance)
    return _uneven_derivative(f, axis, distance, (first, last))


def _uneven_derivative(f: Value, axis: int, coordinates: Value, edges: Sequence[Value]) -> Value:
    """Fits a parabola through each sample and its neighbours."""
    extent = f.shape[axis]
    if coordinates.shape != (extent,):
        raise ParameterError(
            f"jnp.gradient: coordinates of shape {coordinates.shape} do not fit axis {axis} of "
            f"{f.aval}.",
            "Pass a number, or a vector with an entry per sample.",
        )
    steps = sub(slice_in_dim(coordinates, 1, extent), slice_in_dim(coordinates, 0, extent - 1))

    def along(x: Value) -> Value:
        shape = tuple(x.shape[0] if d == axis else n for d, n in enumerate(f.shape))
        return broadcast_in_dim(x, shape, (axis,))

    before, after = slice_in_dim(steps, 0, extent - 2), slice_in_dim(steps, 1, extent - 1)
    total = add(before, after)
    weights = (
        div(mul(after, -1), mul(before, total)),
        div(sub(after, before), mul(before, after)),
        div(before, mul(after, total)),
    )
    middle = [
        mul(along(weight), slice_in_dim(f, start, extent - 2 + start, axis=axis))
        for start, weight in enumerate(weights)
    ]
    first = div(edges[0], along(slice_in_dim(steps, 0, 1)))
    last = div(edges[1], along(slice_in_dim(steps, extent - 2, extent - 1)))
    return concatenate([first, add(add(middle[0], middle[1]), middle[2]), last], axis)


def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: object = 1.0, axis: int = -1) -> Value:
    """Integrates samples along an axis by the trapezoidal rule.

    Args:
        y: Array of samples.
        x: Where they were taken: a vector, or an array that broadcasts to the shape of `y`.
        dx: Their distance, if `x` is not given.
        axis: The axis.

    Raises:
        AxisError: for an axis out of range.
        ShapeError: if `x` does not fit.

    >>> import axir.numpy as jnp
    >>> jnp.trapezoid(jnp.array([1.0, 2.0, 3.0]))
    Array(4., dtype=float32)
    """
    y = array_argument("trapezoid", y)
    given_axis = axis
    axis = canonical_axis("trapezoid", axis, y.ndim)
    extent = y.shape[axis]
    if x is None:
        y, steps = promote_inexact("trapezoid", y, dx)
    else:
        y, x = promote_inexact("trapezoid", y, x)
        if x.ndim == 1:
            steps = diff(x)
            shape = tuple(max(extent - 1, 0) if d == axis else n for d, n in enumerate(y.shape))
            steps = broadcast_in_dim(steps, shape, (axis,))
        else:
            # An axis counted from the end is the same one, though x may lack leading axes.
            steps = diff(x, axis=given_axis)
    later = slice_in_dim(y, min(1, extent), extent, axis=axis)
    pairs = add(later, slice_in_dim(y, 0, max(extent - 1, 0), axis=axis))
    areas = multiply(steps, pairs)
    total = sum_elements(areas, canonical_axis("trapezoid", given_axis, areas.ndim))
    return mul(total, np.array(0.5).astype(y.dtype))

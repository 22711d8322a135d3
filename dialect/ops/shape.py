"""Ops that rearrange elements: broadcasting, reshaping, transposing, joining, padding, reversing.

All are linear in their array operands, so a tangent goes the way of its primal and a cotangent goes
back. What does not live here: parts of arrays (`slicing.py`), and arrays from nothing
(`constants.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import cycle
from operator import index
from typing import Any

import numpy as np

from .. import dtypes
from .. import stablehlo as hlo
from ..errors import (
    AxisError,
    ConcretizationTypeError,
    DTypeError,
    ParameterError,
    ShapeError,
    axis_error,
)
from ..primitive import Sample
from ..symbolic import Zero, is_undefined_primal
from ..types import ShapedArray
from .family import Value, as_value, instantiate, random_values
from .table import declare

# Arguments of the functions, and rules that several ops share -----------------------------------


def integers(name: str, what: str, values: Any) -> tuple[int, ...]:
    """Returns a sequence of integers as a tuple of Python integers."""
    try:
        return tuple(map(index, values))
    except ConcretizationTypeError:
        raise
    except TypeError:
        raise ShapeError(
            f"{name}: {what} must be a sequence of integers, not {values!r}."
        ) from None


def canonical_axis(name: str, axis: Any, ndim: int) -> int:
    """Returns an axis counted from the front; negative ones count from the back."""
    axis = index(axis)
    if not -ndim <= axis < ndim:
        raise axis_error(name, axis, ndim)
    return axis + ndim if axis < 0 else axis


def canonical_axes(name: str, axes: Any, ndim: int) -> tuple[int, ...]:
    """Returns distinct axes counted from the front, in the order given."""
    canonical = tuple([canonical_axis(name, axis, ndim) for axis in axes])
    if len(set(canonical)) != len(canonical):
        raise AxisError(f"{name}: an axis occurs twice in {tuple(axes)}.", "Name each axis once.")
    return canonical


def apply_to_tangent(apply: Callable[..., Value]) -> Callable[..., Any]:
    """Returns the jvp rule of an op that is linear in its first operand and fixed by the others."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], out: Value, **params: Any) -> Any:
        if type(tangents[0]) is Zero:
            return Zero(out.aval.to_tangent_aval())
        return apply(tangents[0], *primals[1:], **params)

    return jvp


def spread_samples(
    variants: Sequence[tuple[tuple[tuple[int, ...], ...], dict[str, Any]]], seed: int = 0
) -> list[Sample]:
    """Returns every variant in float32 and every dtype in some variant.

    Args:
        variants: Shapes of the operands and parameters.
        seed: Of the random operands.
    """
    generator = np.random.default_rng(seed)
    others = zip((d for d in dtypes.ALL if d != dtypes.float32), cycle(variants), strict=False)
    cases = [(dtypes.float32, variant) for variant in variants] + list(others)
    return [
        Sample(tuple(random_values(generator, s, dtype, -2, 2) for s in shapes), dict(params))
        for dtype, (shapes, params) in cases
    ]


def move_batch_axis(value: Value, axis: int | None, size: int, destination: int) -> Value:
    """Brings a batch axis to a place; a value without one is repeated along a new axis there."""
    if axis is not None:
        return moveaxis(value, axis, destination)
    shape = (*value.shape[:destination], size, *value.shape[destination:])
    dimensions = tuple(d for d in range(value.ndim + 1) if d != destination)
    return broadcast_in_dim(value, shape, dimensions)


def batch_size(operands: Sequence[Value], axes: Sequence[int | None]) -> int:
    """Returns the extent of the batch axis."""
    return next(x.shape[a] for x, a in zip(operands, axes, strict=True) if a is not None)


def insert(values: Sequence[Any], position: int, value: Any) -> tuple[Any, ...]:
    """Returns a tuple with one more value at a position."""
    return (*values[:position], value, *values[position:])


# broadcast_in_dim ------------------------------------------------------------------------------


def _infer_broadcast(
    operand: ShapedArray, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]
) -> ShapedArray:
    name = "broadcast_in_dim"
    if len(broadcast_dimensions) != operand.ndim:
        raise ShapeError(
            f"{name}: broadcast_dimensions {broadcast_dimensions} must name one result dimension "
            f"for each of the {operand.ndim} dimensions of the operand {operand}."
        )
    if any(d < 0 or d >= len(shape) for d in broadcast_dimensions):
        raise ShapeError(
            f"{name}: broadcast_dimensions {broadcast_dimensions} lie outside the result shape "
            f"{shape}."
        )
    pairs = zip(broadcast_dimensions, broadcast_dimensions[1:], strict=False)
    if any(first >= second for first, second in pairs):
        raise ShapeError(
            f"{name}: broadcast_dimensions {broadcast_dimensions} must be strictly increasing.",
            "Transpose the operand first.",
        )
    for extent, dimension in zip(operand.shape, broadcast_dimensions, strict=True):
        if extent not in (1, shape[dimension]):
            raise ShapeError(
                f"{name}: {operand} cannot be broadcast to shape {shape} along dimensions "
                f"{broadcast_dimensions}: extent {extent} is neither 1 nor {shape[dimension]}."
            )
    return ShapedArray(shape, operand.dtype, operand.weak_type)


# Below this size filling memory is faster than making a view of it.
_SMALL = 1024


def _evaluate_broadcast(
    x: np.ndarray, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]
) -> np.ndarray:
    if broadcast_dimensions and broadcast_dimensions[0] != len(shape) - x.ndim:
        expanded = [1] * len(shape)
        for extent, dimension in zip(x.shape, broadcast_dimensions, strict=True):
            expanded[dimension] = extent
        x = x.reshape(expanded)
    if math.prod(shape) > _SMALL:
        return np.broadcast_to(x, shape)
    result = np.empty(shape, x.dtype)
    result[...] = x
    return result


def _transpose_broadcast(
    ct: Value, operand: Any, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]
) -> list[Any]:
    from .reduce import reduce_sum

    source = operand.aval.shape
    kept = {
        d for d, extent in zip(broadcast_dimensions, source, strict=True) if extent == shape[d]
    }
    summed = tuple(d for d in range(len(shape)) if d not in kept)
    return [reshape(reduce_sum(ct, summed) if summed else ct, source)]


def _batch_broadcast(
    operands: Sequence[Value],
    axes: Sequence[int],
    *,
    shape: tuple[int, ...],
    broadcast_dimensions: tuple[int, ...],
) -> tuple[Value, int]:
    (x,), (axis,) = operands, axes
    # Just behind the dimension that precedes it: there the dimensions keep their order.
    position = broadcast_dimensions[axis - 1] + 1 if axis else 0
    shifted = tuple(d + (d >= position) for d in broadcast_dimensions)
    result_shape = insert(shape, position, x.shape[axis])
    return broadcast_in_dim(x, result_shape, insert(shifted, axis, position)), position


def _broadcast_samples() -> list[Sample]:
    def variant(source: tuple[int, ...], shape: tuple[int, ...], dims: tuple[int, ...]) -> Any:
        return (source,), {"shape": shape, "broadcast_dimensions": dims}

    return spread_samples([
        variant((), (2, 3), ()),
        variant((3,), (2, 3), (1,)),
        variant((2,), (2, 3), (0,)),
        variant((2, 1), (2, 4, 3), (0, 2)),
        variant((), (), ()),
        variant((1, 3), (0, 3), (0, 1)),
        variant((2, 3), (2, 3), (0, 1)),
    ])


_broadcast_in_dim = declare(
    "broadcast_in_dim",
    infer=_infer_broadcast,
    evaluate=_evaluate_broadcast,
    jvp=apply_to_tangent(lambda t, **params: _broadcast_in_dim.bind(t, **params)),
    transpose=_transpose_broadcast,
    batch=_batch_broadcast,
    lower=lambda context, x, *, shape, broadcast_dimensions: hlo.broadcast_in_dim(
        x, shape, broadcast_dimensions
    ),
    samples=_broadcast_samples,
)


def broadcast_in_dim(
    operand: Value, shape: Sequence[int], broadcast_dimensions: Sequence[int]
) -> Value:
    """Stretches an array to a shape, telling where its dimensions go.

    Args:
        operand: The array.
        shape: Shape of the result.
        broadcast_dimensions: For each dimension of the operand, in increasing order, the dimension
            of the result that it becomes. Dimensions of extent 1 stretch.

    Raises:
        ShapeError: if the dimensions do not fit.

    >>> from axir.dialect.array import as_array
    >>> broadcast_in_dim(as_array(7), (2, 2), ())
    Array([[7, 7],
           [7, 7]], dtype=int32, weak_type=True)
    """
    shape = integers("broadcast_in_dim", "shape", shape)
    dimensions = integers("broadcast_in_dim", "broadcast_dimensions", broadcast_dimensions)
    operand = as_value(operand)
    if not shape and not operand.shape:
        return operand
    return _broadcast_in_dim.bind(operand, shape=shape, broadcast_dimensions=dimensions)


def broadcast(operand: Value, sizes: Sequence[int]) -> Value:
    """Puts new dimensions of the given sizes in front of an array, repeating it along them."""
    sizes = integers("broadcast", "sizes", sizes)
    operand = as_value(operand)
    if not sizes:
        return operand
    dimensions = tuple(range(len(sizes), len(sizes) + operand.ndim))
    return broadcast_in_dim(operand, (*sizes, *operand.shape), dimensions)


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Returns the shape that NumPy's broadcasting of these shapes gives.

    Raises:
        ParameterError: if two extents along a dimension differ and neither is 1.

    >>> broadcast_shapes((2, 1), (3,), ())
    (2, 3)
    """
    result: tuple[int, ...] = ()
    for shape in shapes:
        shape = integers("broadcast_shapes", "a shape", shape)
        rank = max(len(result), len(shape))
        longer = ((1,) * (rank - len(result)) + result, (1,) * (rank - len(shape)) + shape)
        if any(a != b and a != 1 and b != 1 for a, b in zip(*longer, strict=True)):
            raise ParameterError(
                f"Incompatible shapes for broadcasting: {', '.join(str(tuple(s)) for s in shapes)}.",
                "Extents along a dimension, counted from the back, must be equal or 1.",
            )
        result = tuple(b if a == 1 else a for a, b in zip(*longer, strict=True))
    return result


def broadcast_to_rank(x: Value, rank: int) -> Value:
    """Puts dimensions of extent 1 in front of an array until it has the given rank."""
    x = as_value(x)
    return x if x.ndim == rank else expand_dims(x, range(rank - x.ndim))


def expand_dims(array: Value, dimensions: Sequence[int]) -> Value:
    """Inserts dimensions of extent 1.

    Args:
        array: The array.
        dimensions: Where they stand in the result; negative ones count from the back.

    Raises:
        AxisError: for a dimension that the result does not have, or named twice.

    >>> from axir.dialect.array import as_array
    >>> expand_dims(as_array(np.zeros((2, 3))), (0, -1)).shape
    (1, 2, 3, 1)
    """
    array = as_value(array)
    given = tuple(dimensions)
    if not given:
        return array
    rank = array.ndim + len(given)
    new = frozenset(canonical_axes("expand_dims", given, rank))
    old = tuple(d for d in range(rank) if d not in new)
    extents = iter(array.shape)
    shape = tuple(1 if d in new else next(extents) for d in range(rank))
    return _broadcast_in_dim.bind(array, shape=shape, broadcast_dimensions=old)


# reshape ---------------------------------------------------------------------------------------


def _infer_reshape(
    operand: ShapedArray, *, new_sizes: tuple[int, ...], dimensions: tuple[int, ...] | None
) -> ShapedArray:
    if any(extent < 0 for extent in new_sizes):
        raise ShapeError(
            f"reshape: new_sizes {new_sizes} has a negative extent.",
            "Only the functions of axir.numpy infer an extent given as -1.",
        )
    size = math.prod(new_sizes)
    if size != operand.size:
        raise ShapeError(
            f"reshape: cannot reshape {operand} of {operand.size} elements into shape {new_sizes} "
            f"of {size}."
        )
    if dimensions is not None:
        _check_permutation("reshape", "dimensions", dimensions, operand)
    return ShapedArray(new_sizes, operand.dtype, operand.weak_type)


def _check_permutation(
    name: str, what: str, permutation: tuple[int, ...], operand: ShapedArray
) -> None:
    if sorted(permutation) != list(range(operand.ndim)):
        raise ShapeError(
            f"{name}: {what} {permutation} is not a permutation of the {operand.ndim} dimensions "
            f"of {operand}."
        )


def _evaluate_reshape(
    x: np.ndarray, *, new_sizes: tuple[int, ...], dimensions: tuple[int, ...] | None
) -> np.ndarray:
    return (x if dimensions is None else x.transpose(dimensions)).reshape(new_sizes)


def _transpose_reshape(
    ct: Value, operand: Any, *, new_sizes: tuple[int, ...], dimensions: tuple[int, ...] | None
) -> list[Any]:
    shape = operand.aval.shape
    if dimensions is None:
        return [reshape(ct, shape)]
    permuted = reshape(ct, tuple(shape[d] for d in dimensions))
    return [transpose(permuted, inverse_permutation(dimensions))]


def _batch_reshape(
    operands: Sequence[Value],
    axes: Sequence[int],
    *,
    new_sizes: tuple[int, ...],
    dimensions: tuple[int, ...] | None,
) -> tuple[Value, int]:
    x = moveaxis(operands[0], axes[0], 0)
    if dimensions is not None:
        dimensions = (0, *(d + 1 for d in dimensions))
    return reshape(x, (x.shape[0], *new_sizes), dimensions), 0


def _lower_reshape(
    context: Any, x: Any, *, new_sizes: tuple[int, ...], dimensions: tuple[int, ...] | None
) -> Any:
    return hlo.reshape(x if dimensions is None else hlo.transpose(x, dimensions), new_sizes)


def _reshape_samples() -> list[Sample]:
    def variant(source: tuple[int, ...], sizes: tuple[int, ...], dimensions: Any = None) -> Any:
        return (source,), {"new_sizes": sizes, "dimensions": dimensions}

    return spread_samples([
        variant((2, 3), (3, 2)),
        variant((2, 3), (6,)),
        variant((2, 3), (3, 2), (1, 0)),
        variant((1,), ()),
        variant((), (1, 1)),
        variant((2, 0), (0, 3)),
        variant((2, 3, 2), (4, 3), (2, 0, 1)),
    ])


_reshape = declare(
    "reshape",
    infer=_infer_reshape,
    evaluate=_evaluate_reshape,
    jvp=apply_to_tangent(lambda t, **params: _reshape.bind(t, **params)),
    transpose=_transpose_reshape,
    batch=_batch_reshape,
    lower=_lower_reshape,
    samples=_reshape_samples,
)


def reshape(
    operand: Value, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None
) -> Value:
    """Gives an array another shape, keeping the elements in row-major order.

    Args:
        operand: The array.
        new_sizes: Shape of the result, of as many elements.
        dimensions: A permutation of the dimensions to apply first.

    Raises:
        ShapeError: if the number of elements differs, or `dimensions` is no permutation.
    """
    sizes = integers("reshape", "new_sizes", new_sizes)
    operand = as_value(operand)
    if dimensions is not None:
        dimensions = integers("reshape", "dimensions", dimensions)
        if dimensions == tuple(range(operand.ndim)):
            dimensions = None
    if dimensions is None and operand.shape == sizes:
        return operand
    return _reshape.bind(operand, new_sizes=sizes, dimensions=dimensions)


def collapse(
    operand: Value, start_dimension: int, stop_dimension: int | None = None
) -> Value:
    """Merges the dimensions from `start_dimension` to `stop_dimension` (exclusive) into one.

    >>> from axir.dialect.array import as_array
    >>> collapse(as_array(np.zeros((2, 3, 4))), 0, 2).shape
    (6, 4)
    """
    operand = as_value(operand)
    rank = operand.ndim
    bounds = (start_dimension, rank if stop_dimension is None else stop_dimension)
    # The end may be the rank itself, as the bound of a slice may be.
    start, stop = (b + rank if b < 0 else b for b in map(index, bounds))
    if not 0 <= start <= stop <= rank:
        raise ParameterError(
            f"collapse: dimensions {start_dimension} to {stop_dimension} are no range of the "
            f"dimensions of {operand.aval}."
        )
    shape = operand.shape
    return reshape(operand, (*shape[:start], math.prod(shape[start:stop]), *shape[stop:]))


# transpose -------------------------------------------------------------------------------------


def inverse_permutation(permutation: Sequence[int]) -> tuple[int, ...]:
    """Returns the permutation that undoes another."""
    return tuple(sorted(range(len(permutation)), key=permutation.__getitem__))


def _infer_transpose(operand: ShapedArray, *, permutation: tuple[int, ...]) -> ShapedArray:
    _check_permutation("transpose", "permutation", permutation, operand)
    shape = tuple(operand.shape[d] for d in permutation)
    return ShapedArray(shape, operand.dtype, operand.weak_type)


def _batch_transpose(
    operands: Sequence[Value], axes: Sequence[int], *, permutation: tuple[int, ...]
) -> tuple[Value, int]:
    (x,), (axis,) = operands, axes
    shifted = tuple(d + (d >= axis) for d in permutation)
    return transpose(x, insert(shifted, axis, axis)), axis


_transpose = declare(
    "transpose",
    infer=_infer_transpose,
    evaluate=lambda x, *, permutation: x.transpose(permutation),
    jvp=apply_to_tangent(lambda t, **params: _transpose.bind(t, **params)),
    transpose=lambda ct, x, *, permutation: [transpose(ct, inverse_permutation(permutation))],
    batch=_batch_transpose,
    lower=lambda context, x, *, permutation: hlo.transpose(x, permutation),
    samples=lambda: spread_samples([
        (((2, 3),), {"permutation": (1, 0)}),
        (((2, 3, 4),), {"permutation": (2, 0, 1)}),
        (((2, 3, 4),), {"permutation": (0, 2, 1)}),
        (((),), {"permutation": ()}),
        (((0, 3),), {"permutation": (1, 0)}),
        (((3,),), {"permutation": (0,)}),
    ]),
)


def transpose(operand: Value, permutation: Sequence[int]) -> Value:
    """Permutes dimensions: dimension i of the result is dimension `permutation[i]` of the operand.

    Raises:
        ShapeError: if `permutation` is not one of the operand's dimensions.
    """
    permutation = integers("transpose", "permutation", permutation)
    operand = as_value(operand)
    if permutation == tuple(range(operand.ndim)):
        return operand
    return _transpose.bind(operand, permutation=permutation)


def moveaxis(operand: Value, source: int, destination: int) -> Value:
    """Moves one axis to another place; the others keep their order."""
    source = canonical_axis("moveaxis", source, operand.ndim)
    destination = canonical_axis("moveaxis", destination, operand.ndim)
    if source == destination:
        return operand
    others = [d for d in range(operand.ndim) if d != source]
    return _transpose.bind(operand, permutation=insert(others, destination, source))


# squeeze ---------------------------------------------------------------------------------------


def _infer_squeeze(operand: ShapedArray, *, dimensions: tuple[int, ...]) -> ShapedArray:
    for dimension in dimensions:
        if operand.shape[dimension] != 1:
            raise ParameterError(
                f"squeeze: dimension {dimension} of {operand} has extent "
                f"{operand.shape[dimension]}; only extent 1 can be squeezed out."
            )
    shape = tuple(extent for d, extent in enumerate(operand.shape) if d not in dimensions)
    return ShapedArray(shape, operand.dtype, operand.weak_type)


def _batch_squeeze(
    operands: Sequence[Value], axes: Sequence[int], *, dimensions: tuple[int, ...]
) -> tuple[Value, int]:
    axis = axes[0]
    shifted = tuple(d + (d >= axis) for d in dimensions)
    return squeeze(operands[0], shifted), axis - sum(d < axis for d in shifted)


_squeeze = declare(
    "squeeze",
    infer=_infer_squeeze,
    evaluate=lambda x, *, dimensions: x.squeeze(dimensions),
    jvp=apply_to_tangent(lambda t, **params: _squeeze.bind(t, **params)),
    transpose=lambda ct, x, *, dimensions: [reshape(ct, x.aval.shape)],
    batch=_batch_squeeze,
    lower=lambda context, x, **params: hlo.reshape(x, context.types_out[0].shape),
    samples=lambda: spread_samples([
        (((1, 3),), {"dimensions": (0,)}),
        (((2, 1, 3, 1),), {"dimensions": (1, 3)}),
        (((1, 1),), {"dimensions": (0, 1)}),
        (((2, 1),), {"dimensions": (1,)}),
        (((0, 1),), {"dimensions": (1,)}),
        (((2,),), {"dimensions": ()}),
    ]),
)


def squeeze(array: Value, dimensions: Sequence[int]) -> Value:
    """Drops dimensions of extent 1.

    Args:
        array: The array.
        dimensions: Which; negative ones count from the back.

    Raises:
        AxisError: for a dimension that the array does not have, or named twice.
        ParameterError: for a dimension of another extent.
    """
    array = as_value(array)
    dimensions = tuple(sorted(canonical_axes("squeeze", dimensions, array.ndim)))
    return _squeeze.bind(array, dimensions=dimensions) if dimensions else array

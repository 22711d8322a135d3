"""Broadcasting: an array repeated along new dimensions, or along dimensions of extent 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.annotations import Params
from axir.dialect.core.errors import ParameterError, ShapeError, one_layout
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.ops.later_ops import later
from axir.dialect.program.dimensions import Dimensions, Factors, Shapes
from axir.dialect.program.op_table import declare
from axir.dialect.program.operation import Sample
from axir.dialect.program.parameters import Ints
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import Cotangent, Operand, TransposeOperand, Value

from .movement import Variant, apply_to_tangent, canonical_axes, insert, integers, spread_samples


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
    if any(first >= second for first, second in pairwise(broadcast_dimensions)):
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
    ct: Value,
    operand: TransposeOperand,
    *,
    shape: tuple[int, ...],
    broadcast_dimensions: tuple[int, ...],
) -> Sequence[Cotangent | None]:
    source = operand.aval.shape
    kept = {d for d, extent in zip(broadcast_dimensions, source, strict=True) if extent == shape[d]}
    summed = tuple(d for d in range(len(shape)) if d not in kept)
    return [later.reshape(later.reduce_sum(ct, summed) if summed else ct, source)]


def _batch_broadcast(
    operands: Sequence[Value],
    axes: Sequence[int],
    *,
    shape: tuple[int, ...],
    broadcast_dimensions: tuple[int, ...],
) -> tuple[Value, int]:
    (x,), (axis,) = operands, axes
    # Just behind the preceding dimension, so that the dimensions keep their order.
    position = broadcast_dimensions[axis - 1] + 1 if axis else 0
    shifted = tuple(d + (d >= position) for d in broadcast_dimensions)
    result_shape = insert(shape, position, x.shape[axis])
    return broadcast_in_dim(x, result_shape, insert(shifted, axis, position)), position


def _broadcast_samples() -> list[Sample]:
    def variant(source: tuple[int, ...], shape: tuple[int, ...], dims: tuple[int, ...]) -> Variant:
        return (source,), {"shape": shape, "broadcast_dimensions": dims}

    return spread_samples(
        [
            variant((), (2, 3), ()),
            variant((3,), (2, 3), (1,)),
            variant((2,), (2, 3), (0,)),
            variant((2, 1), (2, 4, 3), (0, 2)),
            variant((), (), ()),
            variant((1, 3), (0, 3), (0, 1)),
            variant((2, 3), (2, 3), (0, 1)),
            variant((0, 1), (2, 0, 3), (1, 2)),
            variant((2, 1, 3), (1, 2, 1, 1, 3, 1), (1, 2, 4)),
            variant((1, 2, 1, 1, 3, 1), (1, 2, 2, 1, 3, 1), (0, 1, 2, 3, 4, 5)),
        ]
    )


def _broadcast_dimensions(
    operands: Sequence[ShapedArray],
    results: Sequence[ShapedArray],
    *,
    shape: tuple[int, ...],
    broadcast_dimensions: tuple[int, ...],
) -> Dimensions:
    factors = Factors()
    made = tuple(map(factors.new, shape))
    (operand,) = operands
    own = tuple(
        made[place] if extent == shape[place] else ()
        for extent, place in zip(operand.shape, broadcast_dimensions, strict=True)
    )

    def local_params(_: Shapes, parts: Shapes) -> Params:
        return {"shape": parts[0]}

    return Dimensions((own,), (made,), factors, local_params=local_params)


_broadcast_in_dim: Primitive = declare(
    "broadcast_in_dim",
    parameters={"shape": Ints, "broadcast_dimensions": Ints},
    moves_elements=True,
    infer=_infer_broadcast,
    evaluate=_evaluate_broadcast,
    jvp=apply_to_tangent(lambda t, **params: _broadcast_in_dim.bind(t, **params)),
    transpose=_transpose_broadcast,
    dimensions=_broadcast_dimensions,
    batch=_batch_broadcast,
    lower=lambda context, x, *, shape, broadcast_dimensions: hlo.broadcast_in_dim(
        x, shape, broadcast_dimensions
    ),
    samples=_broadcast_samples,
)


def broadcast_in_dim(
    operand: Operand,
    shape: Sequence[int],
    broadcast_dimensions: Sequence[int],
    *,
    out_sharding: None = None,
) -> Value:
    """Stretches an array to a shape, with given places of its dimensions.

    Args:
        operand: The array.
        shape: Shape of the result.
        broadcast_dimensions: For each dimension of the operand, in increasing order, the dimension
            of the result that it becomes. Dimensions of extent 1 stretch.
        out_sharding: None here; in `axir.lax`'s function, the sharding of the result.

    Raises:
        ShapeError: if the dimensions do not fit.

    >>> from axir.dialect.core.array import as_array
    >>> broadcast_in_dim(as_array(7), (2, 2), ())
    Array([[7, 7],
           [7, 7]], dtype=int32, weak_type=True)
    """
    if out_sharding is not None:
        raise one_layout("broadcast_in_dim", out_sharding)
    shape = integers("broadcast_in_dim", "shape", shape)
    dimensions = integers("broadcast_in_dim", "broadcast_dimensions", broadcast_dimensions)
    operand = as_value(operand)
    if not shape and not operand.shape:
        return operand
    return _broadcast_in_dim.bind(operand, shape=shape, broadcast_dimensions=dimensions)


def broadcast(operand: Operand, sizes: Sequence[int], *, out_sharding: None = None) -> Value:
    """Puts new dimensions of the given sizes in front of an array, repeating it along them."""
    if out_sharding is not None:
        raise one_layout("broadcast", out_sharding)
    sizes = integers("broadcast", "sizes", sizes)
    operand = as_value(operand)
    if not sizes:
        return operand
    dimensions = tuple(range(len(sizes), len(sizes) + operand.ndim))
    return broadcast_in_dim(operand, (*sizes, *operand.shape), dimensions)


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Returns the shape of NumPy's broadcasting of these shapes.

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
                f"Incompatible shapes for broadcasting: {', '.join(map(str, shapes))}.",
                "Extents along a dimension, counted from the back, must be equal or 1.",
            )
        result = tuple(b if a == 1 else a for a, b in zip(*longer, strict=True))
    return result


def broadcast_to_rank(x: Operand, rank: int) -> Value:
    """Puts dimensions of extent 1 in front of an array until it has the given rank."""
    x = as_value(x)
    return x if x.ndim == rank else expand_dims(x, range(rank - x.ndim))


def expand_dims(array: Operand, dimensions: Sequence[int]) -> Value:
    """Inserts dimensions of extent 1.

    Args:
        array: The array.
        dimensions: Their places in the result; negative ones count from the back.

    Raises:
        AxisError: for a dimension that the result does not have, or named twice.

    >>> from axir.dialect.core.array import as_array
    >>> expand_dims(as_array(np.zeros((2, 3))), (0, -1)).shape
    (1, 2, 3, 1)
    """
    array = as_value(array)
    given = integers("expand_dims", "dimensions", dimensions)
    if not given:
        return array
    rank = array.ndim + len(given)
    new = canonical_axes("expand_dims", given, rank)
    shape = list(array.shape)
    for dimension in sorted(new):
        shape.insert(dimension, 1)
    old = tuple([d for d in range(rank) if d not in new])
    return _broadcast_in_dim.bind(array, shape=tuple(shape), broadcast_dimensions=old)

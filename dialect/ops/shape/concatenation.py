"""Joining arrays one after the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.errors import DTypeError, ParameterError, ShapeError
from axir.dialect.core.symbolic_zeros import Zero, is_undefined_primal
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.family import as_value, instantiate
from axir.dialect.ops.later_ops import later
from axir.dialect.program.dimensions import Dimensions, by_position
from axir.dialect.program.op_table import declare
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import Cotangent, Tangent, Tangents, TransposeOperand, Value

from .movement import batch_size, canonical_axis, insert, spread_samples
from .rearranging import move_batch_axis


def _infer_concatenate(*operands: ShapedArray, dimension: int) -> ShapedArray:
    first = operands[0]
    if any(x.dtype != first.dtype for x in operands):
        raise DTypeError(
            f"concatenate requires operands of equal dtype, but got "
            f"{', '.join(map(str, operands))}.",
            "Cast with x.astype(dtype); jnp.concatenate promotes by itself.",
        )
    others = _without(first.shape, dimension)
    if any(x.ndim != first.ndim or _without(x.shape, dimension) != others for x in operands):
        raise ShapeError(
            f"concatenate: operands must be equal in shape apart from dimension {dimension}, but "
            f"got {', '.join(map(str, operands))}."
        )
    shape = insert(others, dimension, sum(x.shape[dimension] for x in operands))
    return ShapedArray(shape, first.dtype, all(x.weak_type for x in operands))


def _without(shape: tuple[int, ...], dimension: int) -> tuple[int, ...]:
    return shape[:dimension] + shape[dimension + 1 :]


def _concatenate_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], out: Value, *, dimension: int
) -> Tangents:
    if all(type(t) is Zero for t in tangents):
        return Zero(out.aval.to_tangent_aval())
    return _concatenate.bind(*map(instantiate, tangents), dimension=dimension)


def _transpose_concatenate(
    ct: Value, *operands: TransposeOperand, dimension: int
) -> Sequence[Cotangent | None]:
    cotangents = []
    start = 0
    for operand in operands:
        stop = start + operand.shape[dimension]
        is_linear = is_undefined_primal(operand)
        cotangents.append(later.slice_in_dim(ct, start, stop, 1, dimension) if is_linear else None)
        start = stop
    return cotangents


def _batch_concatenate(
    operands: Sequence[Value], axes: Sequence[int | None], *, dimension: int
) -> tuple[Value, int]:
    size = batch_size(operands, axes)
    axis = next(a for a in axes if a is not None)
    aligned = [move_batch_axis(x, a, size, axis) for x, a in zip(operands, axes, strict=True)]
    return _concatenate.bind(*aligned, dimension=dimension + (dimension >= axis)), axis


def _concatenate_dimensions(
    operands: Sequence[ShapedArray], results: Sequence[ShapedArray], *, dimension: int
) -> Dimensions:
    return by_position(operands, results, (dimension,))


_concatenate: Primitive = declare(
    "concatenate",
    parameters={"dimension": int},
    moves_elements=True,
    infer=_infer_concatenate,
    evaluate=lambda *operands, dimension: np.concatenate(operands, dimension),
    jvp=_concatenate_jvp,
    transpose=_transpose_concatenate,
    dimensions=_concatenate_dimensions,
    batch=_batch_concatenate,
    lower=lambda context, *operands, dimension: hlo.concatenate(operands, dimension),
    samples=lambda: spread_samples(
        [
            (((2, 3), (4, 3)), {"dimension": 0}),
            (((2, 3), (2, 1), (2, 2)), {"dimension": 1}),
            (((2,), (0,), (1,)), {"dimension": 0}),
            (((0, 2), (0, 3)), {"dimension": 1}),
            (((3,),), {"dimension": 0}),
            (((1, 2, 1, 1, 3, 1), (1, 2, 1, 2, 3, 1)), {"dimension": 3}),
        ]
    ),
)


def concatenate(operands: Sequence[Value], dimension: int) -> Value:
    """Joins arrays one after the other along a dimension.

    Args:
        operands: At least one array; equal dtypes, and equal shapes apart from the dimension.
        dimension: The dimension to join along; a negative one counts from the back.

    Raises:
        ShapeError, DTypeError: if the operands do not fit together.
        AxisError: if the dimension is out of range, as for scalars.

    >>> concatenate([np.arange(2), np.arange(3)], 0)
    Array([0, 1, 0, 1, 2], dtype=int32)
    """
    arrays = [as_value(x) for x in operands]
    if not arrays:
        raise ParameterError("concatenate needs at least one array, but got none.")
    dimension = canonical_axis("concatenate", dimension, arrays[0].ndim)
    return arrays[0] if len(arrays) == 1 else _concatenate.bind(*arrays, dimension=dimension)

"""Arrays taken apart and put together: `split`, `stack`, `unstack`, `tile`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.errors import DTypeError, ParameterError, ShapeError
from axir.dialect.core.symbolic_zeros import Zero, is_undefined_primal
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.family import as_value, instantiate
from axir.dialect.ops.later_ops import later
from axir.dialect.program.dimensions import Dimensions, Factors, by_position, except_along
from axir.dialect.program.function_rules import LoweringContext
from axir.dialect.program.op_table import declare
from axir.dialect.program.parameters import Ints
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import (
    Cotangent,
    MlirValues,
    Operand,
    Tangent,
    Tangents,
    TransposeOperand,
    Value,
)

from .broadcasting import broadcast_in_dim
from .concatenation import concatenate
from .movement import (
    apply_to_tangent,
    batch_size,
    canonical_axis,
    insert,
    integers,
    spread_samples,
)
from .rearranging import move_batch_axis, moveaxis, reshape


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


def _linear_jvp(
    primitive: Primitive, tangent: Tangent, outs: Sequence[Value], **params: object
) -> Tangents:
    if type(tangent) is Zero:
        return [Zero(out.aval.to_tangent_aval()) for out in outs]
    return primitive.bind(tangent, **params)


# split -----------------------------------------------------------------------------------------


def _infer_split(operand: ShapedArray, *, sizes: tuple[int, ...], axis: int) -> list[ShapedArray]:
    extent = operand.shape[axis]
    if any(size < 0 for size in sizes) or sum(sizes) != extent:
        raise ShapeError(
            f"split: the sizes {sizes} do not add up to the extent {extent} of axis {axis} of "
            f"{operand}."
        )
    others = _without(operand.shape, axis)
    return [
        ShapedArray(insert(others, axis, size), operand.dtype, operand.weak_type) for size in sizes
    ]


def _bounds(sizes: tuple[int, ...]) -> list[tuple[int, int]]:
    stops = np.cumsum(sizes).tolist()
    return list(zip([0, *stops[:-1]], stops, strict=True)) if sizes else []


def _evaluate_split(x: np.ndarray, *, sizes: tuple[int, ...], axis: int) -> list[np.ndarray]:
    before = (slice(None),) * axis
    places = [(*before, slice(start, stop)) for start, stop in _bounds(sizes)]
    return [x[place] for place in places]


def _batch_split(
    operands: Sequence[Value], axes: Sequence[int], *, sizes: tuple[int, ...], axis: int
) -> tuple[list[Value], list[int]]:
    parts = _split.bind(operands[0], sizes=sizes, axis=axis + (axis >= axes[0]))
    return parts, [axes[0]] * len(parts)


def _lower_split(
    context: LoweringContext, x: ir.Value, *, sizes: tuple[int, ...], axis: int
) -> list[ir.Value]:
    shape = context.types_in[0].shape
    starts, limits, ones = [0] * len(shape), list(shape), [1] * len(shape)
    parts = []
    for start, stop in _bounds(sizes):
        starts[axis], limits[axis] = start, stop
        parts.append(hlo.slice(x, tuple(starts), tuple(limits), tuple(ones)))
    return parts


_split: Primitive = declare(
    "split",
    parameters={"sizes": Ints, "axis": int},
    moves_elements=True,
    multiple_results=True,
    infer=_infer_split,
    evaluate=_evaluate_split,
    jvp=lambda primals, tangents, outs, **params: _linear_jvp(_split, tangents[0], outs, **params),
    transpose=lambda cts, x, *, sizes, axis: [concatenate([*map(instantiate, cts)], axis)],
    dimensions=except_along,
    batch=_batch_split,
    lower=_lower_split,
    samples=lambda: spread_samples(
        [
            (((2, 5),), {"sizes": (1, 3, 1), "axis": 1}),
            (((4,),), {"sizes": (4,), "axis": 0}),
            (((3, 2),), {"sizes": (0, 1, 2), "axis": 0}),
            (((2, 0, 2),), {"sizes": (1, 1), "axis": 2}),
            (((1, 2, 1, 1, 3, 1),), {"sizes": (2, 1), "axis": 4}),
        ]
    ),
)


def split(operand: Operand, sizes: Sequence[int], axis: int = 0) -> list[Value]:
    """Cuts an array into consecutive parts.

    Args:
        operand: The array.
        sizes: Extents of the parts; they add up to the extent of the axis.
        axis: The axis to cut; a negative one counts from the back.

    Raises:
        ShapeError: if the sizes do not add up.
        AxisError: for an axis that the array does not have.

    >>> split(np.arange(5), (2, 3))
    [Array([0, 1], dtype=int32), Array([2, 3, 4], dtype=int32)]
    """
    operand = as_value(operand)
    axis = canonical_axis("split", axis, operand.ndim)
    return _split.bind(operand, sizes=integers("split", "sizes", sizes), axis=axis)


# stack and unstack -----------------------------------------------------------------------------


def _infer_stack(*operands: ShapedArray, axis: int) -> ShapedArray:
    first = operands[0]
    if any(x.dtype != first.dtype for x in operands):
        raise DTypeError(
            f"stack requires operands of equal dtype, but got {', '.join(map(str, operands))}.",
            "Cast with x.astype(dtype); jnp.stack promotes by itself.",
        )
    if any(x.shape != first.shape for x in operands):
        raise ShapeError(
            f"stack requires operands of equal shape, but got {', '.join(map(str, operands))}."
        )
    shape = insert(first.shape, axis, len(operands))
    return ShapedArray(shape, first.dtype, all(x.weak_type for x in operands))


def _stack_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], out: Value, *, axis: int
) -> Tangents:
    if all(type(t) is Zero for t in tangents):
        return Zero(out.aval.to_tangent_aval())
    return _stack.bind(*map(instantiate, tangents), axis=axis)


def _transpose_stack(
    ct: Value, *operands: TransposeOperand, axis: int
) -> Sequence[Cotangent | None]:
    parts = _unstack.bind(ct, axis=axis)
    return [
        part if is_undefined_primal(x) else None for part, x in zip(parts, operands, strict=True)
    ]


def _batch_stack(
    operands: Sequence[Value], axes: Sequence[int | None], *, axis: int
) -> tuple[Value, int]:
    size = batch_size(operands, axes)
    aligned = [move_batch_axis(x, a, size, 0) for x, a in zip(operands, axes, strict=True)]
    return _stack.bind(*aligned, axis=axis + 1), 0


def _lower_stack(context: LoweringContext, *operands: ir.Value, axis: int) -> MlirValues:
    shape = insert(context.types_in[0].shape, axis, 1)
    return hlo.concatenate([hlo.reshape(x, shape) for x in operands], axis)


def _stack_dimensions(
    operands: Sequence[ShapedArray], results: Sequence[ShapedArray], *, axis: int
) -> Dimensions:
    factors = Factors()
    made = tuple(map(factors.new, operands[0].shape))
    whole = (*made[:axis], (), *made[axis:])
    return Dimensions((made,) * len(operands), (whole,), factors)


_stack: Primitive = declare(
    "stack",
    parameters={"axis": int},
    moves_elements=True,
    infer=_infer_stack,
    evaluate=lambda *operands, axis: np.stack(operands, axis),
    jvp=_stack_jvp,
    transpose=_transpose_stack,
    dimensions=_stack_dimensions,
    batch=_batch_stack,
    lower=_lower_stack,
    samples=lambda: spread_samples(
        [
            (((2, 3), (2, 3)), {"axis": 0}),
            (((2, 3), (2, 3), (2, 3)), {"axis": 2}),
            (((), ()), {"axis": 0}),
            (((0, 2),), {"axis": 1}),
            (((1, 2, 1, 1, 3, 1),) * 2, {"axis": 3}),
        ]
    ),
)


def stack(operands: Sequence[Value], axis: int = 0) -> Value:
    """Joins arrays of one shape and dtype along a new axis.

    Args:
        operands: At least one array.
        axis: Place of the new axis in the result; a negative one counts from the back.

    Raises:
        ShapeError, DTypeError: if the arrays differ in shape or dtype.
        ParameterError: if no array is given.

    >>> stack([np.arange(2), np.arange(2)], axis=1)
    Array([[0, 0],
           [1, 1]], dtype=int32)
    """
    arrays = [as_value(x) for x in operands]
    if not arrays:
        raise ParameterError("stack needs at least one array, but got none.")
    return _stack.bind(*arrays, axis=canonical_axis("stack", axis, arrays[0].ndim + 1))


def _infer_unstack(operand: ShapedArray, *, axis: int) -> list[ShapedArray]:
    part = ShapedArray(_without(operand.shape, axis), operand.dtype, operand.weak_type)
    return [part] * operand.shape[axis]


def _batch_unstack(
    operands: Sequence[Value], axes: Sequence[int], *, axis: int
) -> tuple[list[Value], list[int]]:
    x = moveaxis(operands[0], axes[0], 0)
    parts = _unstack.bind(x, axis=axis + 1)
    return parts, [0] * len(parts)


def _lower_unstack(context: LoweringContext, x: ir.Value, *, axis: int) -> list[ir.Value]:
    shape = context.types_in[0].shape
    parts = _lower_split(context, x, sizes=(1,) * shape[axis], axis=axis)
    return [hlo.reshape(part, _without(shape, axis)) for part in parts]


def _unstack_dimensions(
    operands: Sequence[ShapedArray], results: Sequence[ShapedArray], *, axis: int
) -> Dimensions:
    if not results:
        return by_position(operands, results)
    stacked = _stack_dimensions(results, operands, axis=axis)
    return Dimensions(stacked.results, stacked.operands, stacked.extents)


_unstack: Primitive = declare(
    "unstack",
    parameters={"axis": int},
    moves_elements=True,
    multiple_results=True,
    infer=_infer_unstack,
    evaluate=lambda x, *, axis: list(np.moveaxis(x, axis, 0)),
    jvp=lambda primals, tangents, outs, **params: _linear_jvp(
        _unstack, tangents[0], outs, **params
    ),
    transpose=lambda cts, x, *, axis: [stack([*map(instantiate, cts)], axis)],
    dimensions=_unstack_dimensions,
    batch=_batch_unstack,
    lower=_lower_unstack,
    samples=lambda: spread_samples(
        [
            (((2, 3),), {"axis": 0}),
            (((2, 3),), {"axis": 1}),
            (((2,),), {"axis": 0}),
            (((1, 0),), {"axis": 0}),
            (((1, 2, 1, 1, 3, 1),), {"axis": 4}),
        ]
    ),
)


def unstack(x: Operand, axis: int = 0) -> tuple[Value, ...]:
    """Takes an array apart along an axis.

    Args:
        x: The array.
        axis: The axis; a negative one counts from the back.

    Returns:
        Arrays without the axis, one for each entry.

    >>> unstack(np.arange(4).reshape(2, 2))
    (Array([0, 1], dtype=int32), Array([2, 3], dtype=int32))
    """
    x = as_value(x)
    axis = canonical_axis("unstack", axis, x.ndim)
    return tuple(_unstack.bind(x, axis=axis)) if x.shape[axis] else ()


# tile ------------------------------------------------------------------------------------------


def _infer_tile(operand: ShapedArray, *, reps: tuple[int, ...]) -> ShapedArray:
    if len(reps) != operand.ndim or any(count < 0 for count in reps):
        raise ShapeError(
            f"tile: reps={reps} must be a count for each of the {operand.ndim} axes of {operand}.",
            "jnp.tile adds axes by itself.",
        )
    shape = tuple(n * count for n, count in zip(operand.shape, reps, strict=True))
    return ShapedArray(shape, operand.dtype, operand.weak_type)


def _transpose_tile(
    ct: Value, operand: TransposeOperand, *, reps: tuple[int, ...]
) -> Sequence[Cotangent | None]:
    pairs = [n for pair in zip(reps, operand.aval.shape, strict=True) for n in pair]
    return [later.reduce_sum(reshape(ct, pairs), tuple(range(0, len(pairs), 2)))]


def _batch_tile(
    operands: Sequence[Value], axes: Sequence[int], *, reps: tuple[int, ...]
) -> tuple[Value, int]:
    return _tile.bind(operands[0], reps=insert(reps, axes[0], 1)), axes[0]


def _lower_tile(context: LoweringContext, x: ir.Value, *, reps: tuple[int, ...]) -> MlirValues:
    shape = context.types_in[0].shape
    pairs = tuple(n for pair in zip(reps, shape, strict=True) for n in pair)
    repeated = hlo.broadcast_in_dim(x, pairs, tuple(range(1, len(pairs), 2)))
    return hlo.reshape(repeated, context.types_out[0].shape)


def _tile_dimensions(
    operands: Sequence[ShapedArray], results: Sequence[ShapedArray], *, reps: tuple[int, ...]
) -> Dimensions | None:
    if operands[0].ndim != results[0].ndim:
        return None
    return by_position(operands, results, [d for d, count in enumerate(reps) if count != 1])


_tile: Primitive = declare(
    "tile",
    parameters={"reps": Ints},
    moves_elements=True,
    infer=_infer_tile,
    evaluate=lambda x, *, reps: np.tile(x, reps),
    jvp=apply_to_tangent(lambda t, **params: _tile.bind(t, **params)),
    transpose=_transpose_tile,
    dimensions=_tile_dimensions,
    batch=_batch_tile,
    lower=_lower_tile,
    samples=lambda: spread_samples(
        [
            (((2, 3),), {"reps": (2, 3)}),
            (((2, 1),), {"reps": (1, 4)}),
            (((),), {"reps": ()}),
            (((3,),), {"reps": (0,)}),
            (((0, 2),), {"reps": (2, 1)}),
            (((1, 2, 1, 1, 3, 1),), {"reps": (1, 2, 1, 2, 1, 1)}),
        ]
    ),
)


def tile(operand: Operand, reps: Sequence[int]) -> Value:
    """Repeats an array along its axes, as often as `reps` says for each.

    Raises:
        ShapeError: unless there is a count for each axis.

    >>> tile(np.array([[1, 2]]), (2, 2))
    Array([[1, 2, 1, 2],
           [1, 2, 1, 2]], dtype=int32)
    """
    return _tile.bind(as_value(operand), reps=integers("tile", "reps", reps))


# Broadcasts to the shape of another array ------------------------------------------------------


def broadcast_like(arr: Operand, like_arr: Operand) -> Value:
    """Broadcasts an array to the shape of another one, by NumPy's rules.

    Raises:
        ShapeError: if the shape does not broadcast to the other one.

    >>> broadcast_like(np.array([1, 2]), np.zeros((2, 2)))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    arr, like = as_value(arr), as_value(like_arr)
    return broadcast_in_dim(arr, like.shape, tuple(range(like.ndim - arr.ndim, like.ndim)))

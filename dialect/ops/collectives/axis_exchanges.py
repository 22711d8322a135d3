"""Collectives that move data along a mapped axis: `ppermute`, `all_gather`, `all_to_all` ...

Elsewhere: their vectorization over the axis (`axis_reductions.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from axir.dialect.core.errors import ParameterError, ShapeError
from axir.dialect.core.state import BatchFrame
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.family import full
from axir.dialect.ops.reductions.reduce import reduce_sum
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.rearranging import (
    broadcast_in_dim,
    moveaxis,
    reshape,
    transpose,
)
from axir.dialect.program.parameters import AxisName
from axir.dialect.program.rules import (
    Cotangent,
    OperandTangents,
    ResultAxes,
    Results,
    Tangents,
    TransposeOperand,
    Value,
)

from .axis_reductions import (
    Axes,
    Groups,
    by_group,
    declare_collective,
    infer_same,
    name_of,
    take,
    to_front,
)

# ppermute ---------------------------------------------------------------------------------------


def _ppermute_jvp(
    primals: Sequence[Value], tangents: OperandTangents, out: Value, **params: object
) -> Tangents:
    return ppermute_primitive.bind(tangents[0], **params)


def _ppermute_transpose(
    ct: Value, x: TransposeOperand, *, axis_name: AxisName, perm: tuple[tuple[int, int], ...]
) -> Sequence[Cotangent | None]:
    inverse = tuple((destination, source) for source, destination in perm)
    return [ppermute_primitive.bind(ct, axis_name=axis_name, perm=inverse)]


def _ppermute_batch(
    operands: Sequence[Value], axes: Axes, **params: object
) -> tuple[Results, ResultAxes]:
    return ppermute_primitive.bind(*operands, **params), axes[0]


def _ppermute_batch_named(
    operands: Sequence[Value],
    axes: Axes,
    frame: BatchFrame,
    *,
    axis_name: AxisName,
    perm: tuple[tuple[int, int], ...],
) -> tuple[Results, ResultAxes]:
    x = to_front(operands[0], axes[0], frame.size)
    check_permutation(perm, frame.size)
    source_of = {destination: source for source, destination in perm}
    # A receiver without a sender gets zeros: these stand in an additional row.
    zeros = full((1, *x.shape[1:]), 0, x.dtype)
    rows = [source_of.get(destination, frame.size) for destination in range(frame.size)]
    padded = x if frame.size not in rows else concatenate([x, zeros], 0)
    return take(padded, rows), 0


def check_permutation(perm: Sequence[tuple[int, int]], size: int) -> None:
    """Raises `ParameterError` unless senders differ, receivers differ, and all are in range."""
    sources, destinations = [s for s, _ in perm], [d for _, d in perm]
    for what, indices in (("sources", sources), ("destinations", destinations)):
        if len(set(indices)) != len(indices):
            raise ParameterError(
                f"ppermute: {what} in perm {tuple(perm)} are not distinct.",
                "An index sends at most once and receives at most once.",
            )
        if any(not 0 <= index < size for index in indices):
            raise ParameterError(
                f"ppermute: perm {tuple(perm)} names an index outside an axis of extent {size}."
            )


ppermute_primitive = declare_collective(
    "ppermute",
    parameters={"axis_name": AxisName, "perm": tuple[tuple[int, int], ...]},
    moves_elements=True,
    infer=infer_same,
    jvp=_ppermute_jvp,
    transpose=_ppermute_transpose,
    batch=_ppermute_batch,
    batch_named=_ppermute_batch_named,
    axis_names=name_of,
)


# all_gather, reduce_scatter ---------------------------------------------------------------------


def _infer_all_gather(
    x: ShapedArray,
    *,
    axis_name: AxisName,
    all_gather_dimension: int,
    axis_size: int,
    tiled: bool,
    axis_index_groups: Groups,
) -> ShapedArray:
    shape = list(x.shape)
    if tiled:
        shape[all_gather_dimension] *= axis_size
    else:
        shape.insert(all_gather_dimension, axis_size)
    return ShapedArray(tuple(shape), x.dtype, x.weak_type)


def _all_gather_jvp(
    primals: Sequence[Value], tangents: OperandTangents, out: Value, **params: object
) -> Tangents:
    return all_gather_primitive.bind(tangents[0], **params)


def _all_gather_transpose(
    ct: Value, x: TransposeOperand, *, all_gather_dimension: int, **params: object
) -> Sequence[Cotangent | None]:
    return [reduce_scatter_primitive.bind(ct, scatter_dimension=all_gather_dimension, **params)]


def _shifted(axis: int, dimension: int, is_inserted: bool) -> tuple[int, int]:
    """Returns the place of a batch axis in the result, and the shifted dimension of the operand."""
    if is_inserted:
        return (axis + 1, dimension) if dimension <= axis else (axis, dimension + 1)
    return axis, dimension + (dimension >= axis)


def _all_gather_batch(
    operands: Sequence[Value], axes: Axes, *, all_gather_dimension: int, **params: object
) -> tuple[Results, ResultAxes]:
    (axis,) = axes
    assert axis is not None
    out_axis, dimension = _shifted(axis, all_gather_dimension, not params["tiled"])
    result = all_gather_primitive.bind(operands[0], all_gather_dimension=dimension, **params)
    return result, out_axis


def _all_gather_batch_named(
    operands: Sequence[Value],
    axes: Axes,
    frame: BatchFrame,
    *,
    axis_name: AxisName,
    all_gather_dimension: int,
    axis_size: int,
    tiled: bool,
    axis_index_groups: Groups,
) -> tuple[Results, ResultAxes]:
    stacked = to_front(operands[0], axes[0], frame.size)
    if axis_index_groups is None:
        return _merge(stacked, 0, all_gather_dimension, tiled), None

    def gather_members(grouped: Value) -> Value:
        merged = _merge(grouped, 1, all_gather_dimension + 1, tiled)
        copies = (grouped.shape[0], grouped.shape[1], *merged.shape[1:])
        return broadcast_in_dim(merged, copies, (0, *range(2, merged.ndim + 1)))

    return by_group(stacked, axis_index_groups, gather_members), 0


def _merge(x: Value, axis: int, dimension: int, tiled: bool) -> Value:
    """Moves an axis to `dimension` of the others; if tiled, merges it into that dimension."""
    moved = moveaxis(x, axis, dimension)
    if not tiled:
        return moved
    shape = moved.shape
    tile = (shape[dimension] * shape[dimension + 1],)
    return reshape(moved, (*shape[:dimension], *tile, *shape[dimension + 2 :]))


all_gather_primitive = declare_collective(
    "all_gather",
    parameters={
        "axis_name": AxisName,
        "all_gather_dimension": int,
        "axis_size": int,
        "tiled": bool,
        "axis_index_groups": Groups,
    },
    moves_elements=True,
    infer=_infer_all_gather,
    jvp=_all_gather_jvp,
    transpose=_all_gather_transpose,
    batch=_all_gather_batch,
    batch_named=_all_gather_batch_named,
    axis_names=name_of,
)


def _infer_reduce_scatter(
    x: ShapedArray,
    *,
    axis_name: AxisName,
    scatter_dimension: int,
    axis_size: int,
    tiled: bool,
    axis_index_groups: Groups,
) -> ShapedArray:
    shape = list(x.shape)
    extent = shape.pop(scatter_dimension)
    if extent % axis_size if tiled else extent != axis_size:
        needed = "be divisible by" if tiled else "equal"
        raise ShapeError(
            f"psum_scatter: dimension {scatter_dimension} of {x} has extent {extent}, which must "
            f"{needed} the number {axis_size} of elements that share it.",
            "With tiled=True each gets a slice of the dimension, else one index of it.",
        )
    if tiled:
        shape.insert(scatter_dimension, extent // axis_size)
    return ShapedArray(tuple(shape), x.dtype, x.weak_type)


def _reduce_scatter_jvp(
    primals: Sequence[Value], tangents: OperandTangents, out: Value, **params: object
) -> Tangents:
    return reduce_scatter_primitive.bind(tangents[0], **params)


def _reduce_scatter_transpose(
    ct: Value, x: TransposeOperand, *, scatter_dimension: int, **params: object
) -> Sequence[Cotangent | None]:
    return [all_gather_primitive.bind(ct, all_gather_dimension=scatter_dimension, **params)]


def _reduce_scatter_batch(
    operands: Sequence[Value], axes: Axes, *, scatter_dimension: int, **params: object
) -> tuple[Results, ResultAxes]:
    (axis,) = axes
    assert axis is not None
    dimension = scatter_dimension + (scatter_dimension >= axis)
    result = reduce_scatter_primitive.bind(operands[0], scatter_dimension=dimension, **params)
    return result, axis - (not params["tiled"] and dimension < axis)


def _reduce_scatter_batch_named(
    operands: Sequence[Value],
    axes: Axes,
    frame: BatchFrame,
    *,
    axis_name: AxisName,
    scatter_dimension: int,
    axis_size: int,
    tiled: bool,
    axis_index_groups: Groups,
) -> tuple[Results, ResultAxes]:
    def scatter_members(grouped: Value) -> Value:
        total, dimension = reduce_sum(grouped, (1,)), scatter_dimension + 1
        if tiled:
            shape = total.shape
            pieces = (axis_size, shape[dimension] // axis_size)
            total = reshape(total, (*shape[:dimension], *pieces, *shape[dimension + 1 :]))
        return moveaxis(total, dimension, 1)

    stacked = to_front(operands[0], axes[0], frame.size)
    return by_group(stacked, axis_index_groups, scatter_members), 0


reduce_scatter_primitive = declare_collective(
    "reduce_scatter",
    parameters={
        "axis_name": AxisName,
        "scatter_dimension": int,
        "axis_size": int,
        "tiled": bool,
        "axis_index_groups": Groups,
    },
    infer=_infer_reduce_scatter,
    jvp=_reduce_scatter_jvp,
    transpose=_reduce_scatter_transpose,
    batch=_reduce_scatter_batch,
    batch_named=_reduce_scatter_batch_named,
    axis_names=name_of,
)


# all_to_all -------------------------------------------------------------------------------------


def _infer_all_to_all(
    x: ShapedArray,
    *,
    axis_name: AxisName,
    split_axis: int,
    concat_axis: int,
    axis_size: int,
    axis_index_groups: Groups,
) -> ShapedArray:
    shape = list(x.shape)
    if shape[split_axis] % axis_size:
        raise ShapeError(
            f"all_to_all: dimension {split_axis} of {x} has extent {shape[split_axis]}, which is "
            f"not divisible by the number {axis_size} of elements that exchange.",
            "Choose another split_axis, or pad the dimension.",
        )
    shape[split_axis] //= axis_size
    shape[concat_axis] *= axis_size
    return ShapedArray(tuple(shape), x.dtype, x.weak_type)


def _all_to_all_jvp(
    primals: Sequence[Value], tangents: OperandTangents, out: Value, **params: object
) -> Tangents:
    return all_to_all_primitive.bind(tangents[0], **params)


def _all_to_all_transpose(
    ct: Value, x: TransposeOperand, *, split_axis: int, concat_axis: int, **params: object
) -> Sequence[Cotangent | None]:
    return [all_to_all_primitive.bind(ct, split_axis=concat_axis, concat_axis=split_axis, **params)]


def _all_to_all_batch(
    operands: Sequence[Value], axes: Axes, *, split_axis: int, concat_axis: int, **params: object
) -> tuple[Results, ResultAxes]:
    (axis,) = axes
    assert axis is not None
    result = all_to_all_primitive.bind(
        operands[0],
        split_axis=split_axis + (split_axis >= axis),
        concat_axis=concat_axis + (concat_axis >= axis),
        **params,
    )
    return result, axis


def _all_to_all_batch_named(
    operands: Sequence[Value],
    axes: Axes,
    frame: BatchFrame,
    *,
    axis_name: AxisName,
    split_axis: int,
    concat_axis: int,
    axis_size: int,
    axis_index_groups: Groups,
) -> tuple[Results, ResultAxes]:
    def exchange(grouped: Value) -> Value:
        shape, split = grouped.shape, split_axis + 2
        pieces = (axis_size, shape[split] // axis_size)
        parts = reshape(grouped, (*shape[:split], *pieces, *shape[split + 1 :]))
        # From [group, sender, ..., receiver, ...] to [group, receiver, ..., sender, ...].
        swapped = transpose(parts, _exchanged(parts.ndim, 1, split))
        return _merge(swapped, split, concat_axis + 2, True)

    stacked = to_front(operands[0], axes[0], frame.size)
    return by_group(stacked, axis_index_groups, exchange), 0


def _exchanged(ndim: int, first: int, second: int) -> tuple[int, ...]:
    order = list(range(ndim))
    order[first], order[second] = second, first
    return tuple(order)


all_to_all_primitive = declare_collective(
    "all_to_all",
    parameters={
        "axis_name": AxisName,
        "split_axis": int,
        "concat_axis": int,
        "axis_size": int,
        "axis_index_groups": Groups,
    },
    moves_elements=True,
    infer=_infer_all_to_all,
    jvp=_all_to_all_jvp,
    transpose=_all_to_all_transpose,
    batch=_all_to_all_batch,
    batch_named=_all_to_all_batch_named,
    axis_names=name_of,
)

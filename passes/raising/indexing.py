"""Gathers and scatters of StableHLO."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.control_flow.closed_bodies import trace_body
from axir.dialect.ops.control_flow.scan import bind_scan
from axir.dialect.ops.indexing import scatter as scatters
from axir.dialect.ops.indexing.gather import GatherDimensionNumbers, gather
from axir.dialect.ops.indexing.indexed_windows import CLIP, FILL
from axir.dialect.ops.indexing.scatter_shapes import ScatterDimensionNumbers, window_sizes
from axir.dialect.ops.reductions.computations import apply_elementwise, single_op
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.constants import broadcasted_iota
from axir.dialect.ops.shape.rearranging import moveaxis, reshape, transpose
from axir.dialect.program.function import Function
from axir.dialect.program.op_table import Traceable
from axir.dialect.program.rules import Value
from axir.passes.raising.dimensions.attributes import (
    DimensionNumbers,
    dimension_numbers,
    flag,
    integer,
    integers,
)

from .reductions import scalar_function
from .shapes import known
from .table import RaisingContext, raises, refusal

_COMBINING: dict[str, Traceable] = {
    "add": scatters.scatter_add,
    "mul": scatters.scatter_mul,
    "min": scatters.scatter_min,
    "max": scatters.scatter_max,
}


def _vectors_last(indices: Value, numbers: DimensionNumbers) -> Value:
    """Returns indices with their vectors along the last dimension."""
    (dimension,) = numbers["index_vector_dim"]
    if dimension == indices.ndim:
        return reshape(indices, (*indices.shape, 1))
    return moveaxis(indices, dimension, indices.ndim - 1)


@raises("stablehlo.gather")
def _gather(context: RaisingContext, operation: ir.Operation, x: Value, indices: Value) -> Value:
    return _gathered(operation, x, indices, integers(operation, "slice_sizes"))


@raises("stablehlo.dynamic_gather")
def _dynamic_gather(
    context: RaisingContext, operation: ir.Operation, x: Value, indices: Value, sizes: Value
) -> Value:
    found = tuple(known(context, operation, 2).tolist())
    return _gathered(operation, x, indices, found)


def _gathered(operation: ir.Operation, x: Value, indices: Value, sizes: tuple[int, ...]) -> Value:
    numbers = dimension_numbers(operation.attributes["dimension_numbers"])
    return gather(
        x,
        _vectors_last(indices, numbers),
        GatherDimensionNumbers(
            numbers["offset_dims"],
            numbers["collapsed_slice_dims"],
            numbers["start_index_map"],
            numbers["operand_batching_dims"],
            numbers["start_indices_batching_dims"],
        ),
        sizes,
        indices_are_sorted=flag(operation, "indices_are_sorted"),
        mode=CLIP,
    )


@raises("stablehlo.torch_index_select")
def _torch_index_select(
    context: RaisingContext, operation: ir.Operation, x: Value, indices: Value
) -> Value:
    axis, batch = integer(operation, "dim"), integer(operation, "batch_dims")
    rank = indices.ndim - batch
    before = tuple(range(axis))
    after = tuple(range(axis + rank, x.ndim - 1 + rank))
    lines = tuple(range(batch))
    offsets = tuple(d for d in (*before, *after) if d not in lines)
    sizes = tuple(1 if d == axis or d in lines else n for d, n in enumerate(x.shape))
    numbers = GatherDimensionNumbers(offsets, (axis,), (axis,), lines, lines)
    return gather(x, reshape(indices, (*indices.shape, 1)), numbers, sizes, mode=CLIP)


@raises("stablehlo.scatter")
def _scatter(context: RaisingContext, operation: ir.Operation, *values: Value) -> Sequence[Value]:
    count = len(values) // 2
    arrays, indices, updates = values[:count], values[count], values[count + 1 :]
    found = dimension_numbers(operation.attributes["scatter_dimension_numbers"])
    indices = _vectors_last(indices, found)
    numbers = ScatterDimensionNumbers(
        found["update_window_dims"],
        found["inserted_window_dims"],
        found["scatter_dims_to_operand_dims"],
        found["input_batching_dims"],
        found["scatter_indices_batching_dims"],
    )
    combine = scalar_function(context, operation)
    options = {
        "indices_are_sorted": flag(operation, "indices_are_sorted"),
        "unique_indices": flag(operation, "unique_indices"),
    }
    found_apart = (_apart(combine, number, count) for number in range(count))
    apart = [scatter for scatter in found_apart if scatter is not None]
    if len(apart) == count:
        return [
            scatter(x, indices, update, numbers, mode=FILL, **options)
            for scatter, x, update in zip(apart, arrays, updates, strict=True)
        ]
    if combine.captures:
        raise refusal(
            "The computation of this stablehlo.scatter uses values from around it.",
            "Compute with its arguments and with constants only.",
        )
    if options["unique_indices"] or math.prod(indices.shape[:-1]) <= 1:
        return _combined(arrays, indices, updates, numbers, combine)
    return _one_by_one(arrays, indices, updates, numbers, combine)


def _apart(combine: Function, number: int, count: int) -> Traceable | None:
    """Returns the scatter op that combines one of several operands separately; else None."""
    out = combine.outputs[number]
    current, update = combine.inputs[number], combine.inputs[count + number]
    if out is update:
        return scatters.scatter
    if count == 1:
        return _COMBINING.get(single_op(combine) or "")
    for equation in combine.equations:
        is_result = any(out is result for result in equation.results)
        if is_result and set(equation.operands) == {current, update}:
            return _COMBINING.get(equation.primitive.name)
    return None


def _combined(
    arrays: Sequence[Value],
    indices: Value,
    updates: Sequence[Value],
    numbers: ScatterDimensionNumbers,
    combine: Function,
) -> list[Value]:
    """Combines windows that do not overlap: gathers, computes and scatters."""
    sizes = window_sizes(arrays[0].shape, updates[0].shape, numbers)
    reading = GatherDimensionNumbers(
        numbers.update_window_dims,
        numbers.inserted_window_dims,
        numbers.scatter_dims_to_operand_dims,
        numbers.operand_batching_dims,
        numbers.scatter_indices_batching_dims,
    )
    current = [gather(x, indices, reading, sizes, mode=CLIP) for x in arrays]
    made = apply_elementwise(combine, [*current, *updates])
    options = {"unique_indices": True, "mode": FILL}
    return [
        scatters.scatter(x, indices, update, numbers, **options)
        for x, update in zip(arrays, made, strict=True)
    ]


def _one_by_one(
    arrays: Sequence[Value],
    indices: Value,
    updates: Sequence[Value],
    numbers: ScatterDimensionNumbers,
    combine: Function,
) -> list[Value]:
    """Combines windows one after the other, since they may overlap."""
    numbers, indices = _without_batching(indices, numbers)
    rows = reshape(indices, (math.prod(indices.shape[:-1]), indices.shape[-1]))
    batch = [d for d in range(updates[0].ndim) if d not in numbers.update_window_dims]
    order = (*batch, *numbers.update_window_dims)
    windows = [
        reshape(transpose(x, order), (rows.shape[0], *(x.shape[d] for d in order[len(batch) :])))
        for x in updates
    ]
    single = numbers._replace(update_window_dims=tuple(range(windows[0].ndim - 1)))

    def step(*values: Value) -> list[Value]:
        current, row, parts = values[: len(arrays)], values[len(arrays)], values[len(arrays) + 1 :]
        return _combined(current, row, parts, single, combine)

    types = [
        *(x.aval for x in arrays),
        *(ShapedArray(x.shape[1:], x.dtype) for x in (rows, *windows)),
    ]
    carried, _ = bind_scan(
        trace_body(step, types, "scatter"), (), arrays, (rows, *windows), length=rows.shape[0]
    )
    return carried


def _without_batching(
    indices: Value, numbers: ScatterDimensionNumbers
) -> tuple[ScatterDimensionNumbers, Value]:
    """Returns dimension numbers without batching dimensions; these become indexed ones."""
    if not numbers.operand_batching_dims:
        return numbers, indices
    shape = (*indices.shape[:-1], 1)
    lines = [
        broadcasted_iota(np.dtype(indices.dtype), shape, d)
        for d in numbers.scatter_indices_batching_dims
    ]
    inserted = sorted((*numbers.inserted_window_dims, *numbers.operand_batching_dims))
    mapped = (*numbers.operand_batching_dims, *numbers.scatter_dims_to_operand_dims)
    made = ScatterDimensionNumbers(numbers.update_window_dims, tuple(inserted), mapped)
    return made, concatenate([*lines, indices], len(shape) - 1)

"""StableHLO operations that move elements without computing: reshaping, slicing, gathering."""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir

from .core import (
    attribute,
    build,
    element_type_of,
    integer,
    integers,
    shape_of,
    tensor_type,
)


def broadcast_in_dim(
    operand: ir.Value, shape: Sequence[int], dimensions: Sequence[int]
) -> ir.Value:
    """Operand dimension i becomes result dimension `dimensions[i]`; size-1 dimensions stretch."""
    result_type = tensor_type(shape, element_type_of(operand))
    attributes = {"broadcast_dimensions": integers(dimensions)}
    name = "broadcast_in_dim"
    return build(name, "stablehlo.broadcast_in_dim", (operand,), (result_type,), attributes).result


def broadcast_scalar(scalar: ir.Value, shape: Sequence[int]) -> ir.Value:
    """Returns a rank-0 value in every place of `shape`; no operation when the shape is ()."""
    return broadcast_in_dim(scalar, shape, ()) if len(shape) else scalar


def reshape(operand: ir.Value, shape: Sequence[int]) -> ir.Value:
    """Returns the same elements in row-major order; no operation when the shape is the same."""
    result_type = tensor_type(shape, element_type_of(operand))
    if result_type == operand.type:
        return operand
    return build("reshape", "stablehlo.reshape", (operand,), (result_type,)).result


def transpose(operand: ir.Value, permutation: Sequence[int]) -> ir.Value:
    """Result dimension i is operand dimension `permutation[i]`."""
    attributes = {"permutation": integers(permutation)}
    return build("transpose", "stablehlo.transpose", (operand,), None, attributes).result


def concatenate(operands: Sequence[ir.Value], dimension: int) -> ir.Value:
    """Returns the operands one after the other along `dimension`."""
    attributes = {"dimension": integer(dimension)}
    return build("concatenate", "stablehlo.concatenate", operands, None, attributes).result


def pad(
    operand: ir.Value,
    padding_value: ir.Value,
    low: Sequence[int],
    high: Sequence[int],
    interior: Sequence[int] | None = None,
) -> ir.Value:
    """Pads with the rank-0 `padding_value`: negative `low`, `high` cut off, `interior` spreads."""
    attributes = {
        "edge_padding_low": integers(low),
        "edge_padding_high": integers(high),
        "interior_padding": integers([0] * len(low) if interior is None else interior),
    }
    return build("pad", "stablehlo.pad", (operand, padding_value), None, attributes).result


def slice(
    operand: ir.Value,
    start: Sequence[int],
    limit: Sequence[int],
    strides: Sequence[int] | None = None,
) -> ir.Value:
    """Returns the elements from `start` to `limit` (exclusive) by `strides` in each dimension."""
    attributes = {
        "start_indices": integers(start),
        "limit_indices": integers(limit),
        "strides": integers([1] * len(start) if strides is None else strides),
    }
    return build("slice", "stablehlo.slice", (operand,), None, attributes).result


def dynamic_slice(
    operand: ir.Value, start_indices: Sequence[ir.Value], sizes: Sequence[int]
) -> ir.Value:
    """Returns a block of `sizes` from rank-0 `start_indices`, which are clamped so that the block
    fits.
    """
    operands = (operand, *start_indices)
    attributes = {"slice_sizes": integers(sizes)}
    return build("dynamic_slice", "stablehlo.dynamic_slice", operands, None, attributes).result


def dynamic_update_slice(
    operand: ir.Value, update: ir.Value, start_indices: Sequence[ir.Value]
) -> ir.Value:
    """`operand` with `update` in place of the block at the rank-0 (clamped) `start_indices`."""
    operands = (operand, update, *start_indices)
    name = "dynamic_update_slice"
    return build(name, "stablehlo.dynamic_update_slice", operands, (operand.type,)).result


def reverse(operand: ir.Value, dimensions: Sequence[int]) -> ir.Value:
    """Returns the elements in reversed order along `dimensions`."""
    attributes = {"dimensions": integers(dimensions)}
    return build("reverse", "stablehlo.reverse", (operand,), (operand.type,), attributes).result


def gather(
    operand: ir.Value,
    start_indices: ir.Value,
    *,
    offset_dims: Sequence[int],
    collapsed_slice_dims: Sequence[int],
    start_index_map: Sequence[int],
    index_vector_dim: int,
    slice_sizes: Sequence[int],
    operand_batching_dims: Sequence[int] = (),
    start_indices_batching_dims: Sequence[int] = (),
    indices_are_sorted: bool = False,
) -> ir.Value:
    """Blocks of `slice_sizes` of the operand at `start_indices`, clamped so that blocks fit."""
    numbers = (
        f"#stablehlo.gather<offset_dims = {list(offset_dims)}, "
        f"collapsed_slice_dims = {list(collapsed_slice_dims)}, "
        f"operand_batching_dims = {list(operand_batching_dims)}, "
        f"start_indices_batching_dims = {list(start_indices_batching_dims)}, "
        f"start_index_map = {list(start_index_map)}, index_vector_dim = {index_vector_dim}>"
    )
    attributes = {
        "dimension_numbers": attribute(numbers),
        "slice_sizes": integers(slice_sizes),
        "indices_are_sorted": ir.BoolAttr.get(indices_are_sorted),
    }
    return build("gather", "stablehlo.gather", (operand, start_indices), None, attributes).result


def broadcast_operands(
    values: Sequence[ir.Value], shape: tuple[int, ...], trailing: int = 0
) -> list[ir.Value]:
    """Broadcasts operands to a common shape.

    Args:
        values: The operands.
        shape: The common shape.
        trailing: How many dimensions at the end all operands have, also those that are scalars.
    """
    last = range(len(shape) - trailing, len(shape))
    broadcast = []
    for value in values:
        own = shape_of(value)
        if own != shape:
            value = broadcast_in_dim(value, shape, (*range(len(own) - trailing), *last))
        broadcast.append(value)
    return broadcast

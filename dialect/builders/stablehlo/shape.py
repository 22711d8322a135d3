"""StableHLO operations that move elements without computing: reshaping, slicing, gathering."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from itertools import starmap

from iree.compiler import ir

from axir.dialect.core.annotations import Extent
from axir.dialect.core.symbolic_dims import is_open, is_same, operation

from .core import (
    attribute,
    build,
    element_type_of,
    integer,
    integers,
    shape_of,
    tensor_type,
)
from .elementwise import convert
from .extents import EXTENT, extents


def broadcast_in_dim(
    operand: ir.Value, shape: Sequence[int], dimensions: Sequence[int]
) -> ir.Value:
    """Operand dimension i becomes result dimension `dimensions[i]`; size-1 dimensions stretch."""
    result_type = tensor_type(shape, element_type_of(operand))
    attributes = {"broadcast_dimensions": integers(dimensions)}
    name, kinds = "broadcast_in_dim", (result_type,)
    if is_open(shape):
        operands, operation = (operand, extents(shape)), f"stablehlo.dynamic_{name}"
        return build(name, operation, operands, kinds, attributes).result
    return build(name, f"stablehlo.{name}", (operand,), kinds, attributes).result


def broadcast_scalar(scalar: ir.Value, shape: Sequence[int]) -> ir.Value:
    """Returns a rank-0 value in every place of `shape`; no operation when the shape is ()."""
    return broadcast_in_dim(scalar, shape, ()) if len(shape) else scalar


def reshape(operand: ir.Value, shape: Sequence[int]) -> ir.Value:
    """Returns the same elements in row-major order; no operation when the shape is the same."""
    result_type = tensor_type(shape, element_type_of(operand))
    if result_type == operand.type:
        return operand
    if is_open(shape):
        operands, operation = (operand, extents(shape)), "stablehlo.dynamic_reshape"
        return build("reshape", operation, operands, (result_type,)).result
    return build("reshape", "stablehlo.reshape", (operand,), (result_type,)).result


def transpose(operand: ir.Value, permutation: Sequence[int]) -> ir.Value:
    """Result dimension i is operand dimension `permutation[i]`."""
    attributes = {"permutation": integers(permutation)}
    kinds = None
    if not operand.type.has_static_shape:
        kinds = _open_type([shape_of(operand)[axis] for axis in permutation], operand)
    return build("transpose", "stablehlo.transpose", (operand,), kinds, attributes).result


def concatenate(operands: Sequence[ir.Value], dimension: int) -> ir.Value:
    """Returns the operands one after the other along `dimension`."""
    attributes = {"dimension": integer(dimension)}
    kinds = None
    if not all(operand.type.has_static_shape for operand in operands):
        shape = list(shape_of(operands[0]))
        shape[dimension] = builtins.sum(shape_of(operand)[dimension] for operand in operands)
        kinds = _open_type(shape, operands[0])
    return build("concatenate", "stablehlo.concatenate", operands, kinds, attributes).result


def pad(
    operand: ir.Value,
    padding_value: ir.Value,
    low: Sequence[int],
    high: Sequence[int],
    interior: Sequence[int] | None = None,
) -> ir.Value:
    """Pads with the rank-0 `padding_value`: negative `low`, `high` cut off, `interior` spreads."""
    interior = [0] * len(low) if interior is None else interior
    amounts = (low, high, interior)
    if any(map(is_open, amounts)) or not operand.type.has_static_shape:
        operands = (operand, padding_value, *map(extents, amounts))
        sizes = zip(shape_of(operand), *amounts, strict=True)
        kinds = (tensor_type(list(starmap(_padded, sizes)), element_type_of(operand)),)
        return build("pad", "stablehlo.dynamic_pad", operands, kinds).result
    attributes = {
        "edge_padding_low": integers(low),
        "edge_padding_high": integers(high),
        "interior_padding": integers(interior),
    }
    return build("pad", "stablehlo.pad", (operand, padding_value), None, attributes).result


def _padded(size: Extent, low: Extent, high: Extent, interior: Extent) -> Extent:
    between = 0 if is_same(interior, 0) else operation("max", size - 1, 0) * interior
    return size + low + high + between


def slice(
    operand: ir.Value,
    start: Sequence[int],
    limit: Sequence[int],
    strides: Sequence[int] | None = None,
) -> ir.Value:
    """Returns the elements from `start` to `limit` (exclusive) by `strides` in each dimension."""
    strides = [1] * len(start) if strides is None else strides
    bounds = (start, limit, strides)
    if any(map(is_open, bounds)):
        operands = (operand, *map(extents, bounds))
        shape = [operation("floordiv", b - a + s - 1, s) for a, b, s in zip(*bounds, strict=True)]
        kinds = (tensor_type(shape, element_type_of(operand)),)
        return build("slice", "stablehlo.real_dynamic_slice", operands, kinds).result
    attributes = {
        "start_indices": integers(start),
        "limit_indices": integers(limit),
        "strides": integers(strides),
    }
    # With numbers for all bounds the result has numbers for all extents.
    shape = [-((a - b) // s) for a, b, s in zip(*bounds, strict=True)]
    kinds = (tensor_type(shape, element_type_of(operand)),)
    return build("slice", "stablehlo.slice", (operand,), kinds, attributes).result


def dynamic_slice(
    operand: ir.Value, start_indices: Sequence[ir.Value], sizes: Sequence[int]
) -> ir.Value:
    """Returns a block of `sizes` from rank-0 `start_indices`, which are clamped so that the block
    fits.
    """
    if is_open(sizes):
        return _open_part(operand, start_indices, sizes)
    operands = (operand, *start_indices)
    attributes = {"slice_sizes": integers(sizes)}
    kinds = (tensor_type(sizes, element_type_of(operand)),)
    return build("dynamic_slice", "stablehlo.dynamic_slice", operands, kinds, attributes).result


def _open_part(
    operand: ir.Value, start_indices: Sequence[ir.Value], sizes: Sequence[Extent]
) -> ir.Value:
    """Returns a block of open sizes; clamps its indices as for known sizes."""
    vector = tensor_type((len(sizes),), EXTENT)
    places = [
        convert(index, EXTENT) if not is_same(size, extent) else extents([0])
        for index, size, extent in zip(start_indices, sizes, shape_of(operand), strict=True)
    ]
    starts = concatenate([reshape(place, (1,)) for place in places], 0)
    room = extents([b - a for a, b in zip(sizes, shape_of(operand), strict=True)])
    zeros = extents([0] * len(sizes))
    starts = build("clamp", "stablehlo.clamp", (zeros, starts, room), (vector,)).result
    limits = build("add", "stablehlo.add", (starts, extents(sizes)), (vector,)).result
    operands = (operand, starts, limits, extents([1] * len(sizes)))
    kinds = (tensor_type(sizes, element_type_of(operand)),)
    return build("dynamic_slice", "stablehlo.real_dynamic_slice", operands, kinds).result


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
    shape: Sequence[int] | None = None,
) -> ir.Value:
    """Returns blocks of `slice_sizes` of the operand at `start_indices`, clamped so that they fit.

    `shape` is the shape of the result, needed if it is open.
    """
    numbers = (
        f"#stablehlo.gather<offset_dims = {list(offset_dims)}, "
        f"collapsed_slice_dims = {list(collapsed_slice_dims)}, "
        f"operand_batching_dims = {list(operand_batching_dims)}, "
        f"start_indices_batching_dims = {list(start_indices_batching_dims)}, "
        f"start_index_map = {list(start_index_map)}, index_vector_dim = {index_vector_dim}>"
    )
    attributes = {
        "dimension_numbers": attribute(numbers),
        "indices_are_sorted": ir.BoolAttr.get(indices_are_sorted),
    }
    kinds = None if shape is None else _open_type(shape, operand)
    operands = [operand, start_indices]
    if is_open(slice_sizes):
        operands.append(extents(slice_sizes))
        return build("gather", "stablehlo.dynamic_gather", operands, kinds, attributes).result
    attributes["slice_sizes"] = integers(slice_sizes)
    return build("gather", "stablehlo.gather", operands, kinds, attributes).result


def _open_type(shape: Sequence[Extent], operand: ir.Value) -> tuple[ir.Type] | None:
    """Returns the type of a result with the elements of an operand; None if MLIR can infer it."""
    return (tensor_type(shape, element_type_of(operand)),) if is_open(shape) else None


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

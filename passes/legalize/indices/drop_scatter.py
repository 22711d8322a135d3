"""`drop-scatter`: updates of a scatter that do not fit are dropped."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.types import numpy_dtype
from axir.passes.legalize.attributes import DimensionNumbers, dimension_numbers
from axir.passes.legalize.rewriting import RewritePass

from .gathers import IN_BOUNDS, index_limits

_LARGEST_I32 = 2**31 - 1


class DropScatter(RewritePass):
    """Keeps `stablehlo.scatter` from writing outside its operand.

    The fact: IREE writes at the given indices without a check. StableHLO drops an update if its
    window does not fit into the operand.

    1. A window fits if its start index lies in [0, size of d - window size of d] in every
       dimension d that is indexed.
    2. Pad the operands at the end of the first indexed dimension by one window.
    3. Send the windows that do not fit to the padding; their other start indices become 0.
    4. Slice the padding off.

    A scatter with constant indices that fit, or with the attribute `axir.in_bounds`, does not
    change, except that the attribute is removed.

    Before::

        %0 = "stablehlo.scatter"(%x, %i, %u) … : (tensor<10x5xf32>, tensor<3x1xi32>, …)

    After::

        %1 = stablehlo.pad %x, %zero, low = [0, 0], high = [1, 0], interior = [0, 0]
        %2 = stablehlo.select %fits, %i, %outside : tensor<3x1xi1>, tensor<3x1xi32>
        %3 = "stablehlo.scatter"(%1, %2, %u) … : (tensor<11x5xf32>, tensor<3x1xi32>, …)
        %4 = stablehlo.slice %3 [0:10, 0:5]
    """

    name: ClassVar[str] = "drop-scatter"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.scatter",)

    def rewrite(self, operation: ir.Operation) -> list[ir.Value] | None:
        """Builds the padded scatter."""
        numbers = dimension_numbers(operation.attributes["scatter_dimension_numbers"])
        indexed = numbers["scatter_dims_to_operand_dims"]
        if IN_BOUNDS in operation.attributes:
            del operation.attributes[IN_BOUNDS]
            return None
        if not indexed:
            return None
        count = (len(operation.operands) - 1) // 2
        operands, indices = list(operation.operands)[:count], operation.operands[count]
        updates = list(operation.operands)[count + 1 :]
        shape = hlo.shape_of(operands[0])
        windows = window_sizes(len(shape), hlo.shape_of(updates[0]), numbers)
        limits = [shape[axis] - windows[axis] for axis in indexed]
        vector_dim = numbers["index_vector_dim"][0]
        if _are_constant_within(indices, limits, vector_dim):
            return None
        outside = [shape[axis] if axis == indexed[0] else 0 for axis in indexed]
        inside = _redirect(indices, limits, outside, vector_dim)
        padded = [_pad_end(operand, indexed[0], windows[indexed[0]]) for operand in operands]
        scattered = _clone_with_operands(operation, [*padded, inside, *updates])
        return [hlo.slice(result, [0] * len(shape), shape) for result in scattered.results]


def window_sizes(rank: int, update_shape: tuple[int, ...], numbers: DimensionNumbers) -> list[int]:
    """Returns the extent of an update window in each dimension of the operand."""
    missing = {*numbers["inserted_window_dims"], *numbers["input_batching_dims"]}
    sizes = iter(update_shape[axis] for axis in numbers["update_window_dims"])
    return [1 if axis in missing else next(sizes) for axis in range(rank)]


def _redirect(
    indices: ir.Value, limits: list[int], outside: list[int], vector_dim: int
) -> ir.Value:
    """Returns the indices of windows that fit, and `outside` for the others."""
    shape = hlo.shape_of(indices)
    element = np.int32 if max(outside) <= _LARGEST_I32 else np.int64
    if min(limits) < 0:  # no window fits
        wide = hlo.full(0, shape, element)
        return index_limits(wide, outside, vector_dim)
    fits = hlo.and_(
        hlo.compare(indices, hlo.full_like(indices, 0), "GE"),
        hlo.compare(indices, index_limits(indices, limits, vector_dim), "LE"),
    )
    if vector_dim < len(shape) and shape[vector_dim] > 1:
        fits = _all_along(fits, vector_dim)
    wide = hlo.convert(indices, element)
    return hlo.select(fits, wide, index_limits(wide, outside, vector_dim))


def _all_along(truths: ir.Value, dimension: int) -> ir.Value:
    """Returns the conjunction along a dimension, in the shape of the operand."""
    shape = hlo.shape_of(truths)
    (whole,) = hlo.reduce([truths], [hlo.constant(True)], (dimension,), hlo.and_)
    kept = [axis for axis in range(len(shape)) if axis != dimension]
    return hlo.broadcast_in_dim(whole, shape, kept)


def _pad_end(operand: ir.Value, dimension: int, amount: int) -> ir.Value:
    rank = len(operand.type.shape)
    high = [amount if axis == dimension else 0 for axis in range(rank)]
    padding = hlo.constant(0, hlo.element_type_of(operand))
    return hlo.pad(operand, padding, [0] * rank, high)


def _are_constant_within(indices: ir.Value, limits: list[int], vector_dim: int) -> bool:
    """Tells whether the indices are constant and all of them fit."""
    owner = indices.owner
    if isinstance(owner, ir.Block) or owner.name != "stablehlo.constant":
        return False
    shape, dtype = hlo.shape_of(indices), numpy_dtype(hlo.element_type_of(indices))
    dense = owner.attributes["value"]
    if dense.is_splat:
        known = np.full(shape, dense.get_splat_value().value, dtype)
    else:
        known = np.array(dense).astype(dtype).reshape(shape)
    if vector_dim < len(shape):
        known = np.moveaxis(known, vector_dim, -1)
    else:
        known = known[..., None]
    return bool((known >= 0).all() and (known.astype(object) <= np.array(limits, object)).all())


def _clone_with_operands(operation: ir.Operation, operands: list[ir.Value]) -> ir.Operation:
    """Returns a copy of a scatter, regions included, on other operands."""
    count = (len(operands) - 1) // 2
    copy = ir.Operation.create(
        operation.name,
        results=[operand.type for operand in operands[:count]],
        operands=operands,
        attributes={name: operation.attributes[name] for name in operation.attributes},
        regions=1,
    )
    operation.regions[0].blocks[0].append_to(copy.regions[0])
    return copy

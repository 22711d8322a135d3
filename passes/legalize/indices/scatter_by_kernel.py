"""`scatter-by-kernel`: a scatter is a loop over its updates that checks each index."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.kernels import Memory, dispatch
from axir.dialect.builders.scalars import Scalar
from axir.passes.legalize.buffers.protect_inputs import is_given_away
from axir.passes.legalize.copies import Columns, begin, copied, uniform_number
from axir.passes.legalize.lanes import combination
from axir.passes.legalize.rewriting import RewritePass, operations_in_order, replace

from .gathers import components
from .scatter_kernels import Scatter, ScatterKernel

# A workgroup's share of a row: two lines of the cache.
_SHARE_BYTES = 128
_MOST_WORKGROUPS = 8
# Less than this is not worth a second workgroup, nor a copy in a separate dispatch.
_LARGE_BYTES = 1 << 18


class ScatterByKernel(RewritePass):
    """Scatters by a kernel that applies the updates in their order.

    The facts: IREE writes at the given indices without a check, so that indices outside of the
    operand need a padded operand, which is copied before and after (`drop-scatter`). It runs on one
    core, and number by number unless windows are whole rows.

    1. Take scatters of one array with a body that is one operation or returns the update.
    2. Copy the operand to the result, or fill the result if all elements are one number. An operand
       is changed in place, without a copy, if another scatter made it only for this one, or if the
       caller donates it.
    3. If index vectors are concatenated only for the scatter, read the components directly. For
       each index in its order: compare the index vector with the limits. If the window fits,
       combine it with the update, in vectors along the last dimension.
    4. Large scatters of rows divide the rows' columns among workgroups, never the updates. Each
       workgroup goes through all updates in their order. So no workgroup waits for another, and the
       sums do not depend on how many workgroups run at a time.

    5. Where there are more than twice as many updates as elements, a sum or product of floats would
       lose digits. Scatters with windows of a few elements then compute in f64, and convert at the
       end. Large arrays do so only from eight times as many updates on, because f64 takes twice the
       memory. Larger windows that do not overlap in part are summed in blocks: after 64 updates of
       a place, the block is added to f64 totals, and the next block begins. This costs a byte for
       each place and a comparison for each update. Long sums of complex numbers are added as pairs;
       other complex scatters are not taken.

    Before::

        %0 = "stablehlo.scatter"(%x, %i, %u) … : (tensor<10000x64xf32>, tensor<20000x1xi32>, …)

    After::

        %1 = flow.dispatch @copy_0::@copy_0(%x)
        %2 = flow.dispatch @scatter_0::@scatter_0(%1, %i, %u) : (…) -> %1

    Only for CPUs. `drop-scatter` and the passes behind it handle the other scatters.
    """

    name: ClassVar[str] = "scatter-by-kernel"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.scatter",)

    def run(self, module: ir.Module) -> None:
        """Rewrites the scatters of the module in their order."""
        for scatter in operations_in_order(module.operation, self.operations):
            with ir.InsertionPoint(scatter), scatter.location:
                replacement = self.rewrite(scatter)
            if replacement is not None:
                replace(scatter, replacement)

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds the kernel."""
        if len(operation.operands) != 3:
            return None
        operand, indices, updates = operation.operands
        if hlo.is_complex(operand):
            return _sum_of_complex(operation)
        combine = combination(operation.regions[0].blocks[0])
        if combine is None:
            return None
        if not all(hlo.size_of(x) for x in (operand, updates)):
            return operand
        if not hlo.size_of(indices):
            return None  # without indexed dimensions
        scatter = Scatter.read(operation, combine)
        return _with_digits(operation, scatter, operand, updates)


def _sum_of_complex(operation: ir.Operation) -> ir.Value | None:
    """Adds complex numbers as pairs, where many are added to few."""
    if not hlo.size_of(operation.operands[0]):
        return None
    scatter = Scatter.read(operation, lambda x, y: x + y)
    if scatter.body != "stablehlo.add" or not scatter.is_long_sum:
        return None
    operand, _, updates = operation.operands
    one = (*scatter.shape, 1)
    parts = [hlo.reshape(x, one) for x in (hlo.real(operand), hlo.imag(operand))]
    pairs = hlo.concatenate(parts, len(scatter.shape))
    pair_type = hlo.tensor_type((*scatter.update_shape, 2), scatter.element)
    seen = ir.Operation.create(
        "flow.tensor.bitcast",
        results=[pair_type],
        operands=[updates],
        attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0])},
    )
    found = _with_digits(operation, scatter.of_pairs(), pairs, seen.result)
    rank = len(scatter.shape)

    def part(number: int) -> ir.Value:
        limit = (*scatter.shape, number + 1)
        return hlo.reshape(hlo.slice(found, (*[0] * rank, number), limit), scatter.shape)

    return hlo.complex(part(0), part(1))


def _with_digits(
    made: ir.Operation, scatter: Scatter, operand: ir.Value, updates: ir.Value
) -> ir.Value:
    """Scatters, and sums in a wider type where the sum would lose digits."""
    if scatter.is_long_sum:
        wide = ir.F32Type.get() if scatter.has_totals else ir.F64Type.get()
        operand = hlo.convert(operand, wide)
    # Concatenating index vectors number by number takes as long as the scatter.
    parts = components(made.operands[1], scatter.numbers["index_vector_dim"][0])
    found = _scattered(made, scatter, operand, [*parts, updates])
    return hlo.convert(found, scatter.element)


def _scattered(
    made: ir.Operation, scatter: Scatter, operand: ir.Value, reads: list[ir.Value]
) -> ir.Value:
    size = hlo.bytes_of(operand)
    row_bytes = scatter.row * size // math.prod(scatter.shape)
    is_large = hlo.bytes_of(reads[-1]) >= _LARGE_BYTES
    workgroups = max(1, min(_MOST_WORKGROUPS, row_bytes // _SHARE_BYTES)) if is_large else 1
    fill = uniform_number(operand)
    # IREE may hoist the operand's computation out of a loop; a scatter in place would then change
    # it for the next iteration.
    is_in_loop = _is_in_loop(made)
    if (_is_made_for_one(operand) or is_given_away(operand)) and not is_in_loop:
        return _dispatch(scatter, operand, reads, workgroups, is_in_place=True)
    if size >= _LARGE_BYTES and not is_in_loop:
        copy = copied(operand, fill)
        return _dispatch(scatter, copy, reads, workgroups, is_in_place=True)
    return _dispatch(scatter, operand, reads, workgroups, is_in_place=False, fill=fill)


def _dispatch(
    scatter: Scatter,
    operand: ir.Value,
    reads: list[ir.Value],
    workgroups: int,
    *,
    is_in_place: bool,
    fill: float | None = None,
) -> ir.Value:
    """Runs the kernel on the operand's memory, or on new memory that it fills first."""
    has_source = is_in_place or fill is None
    count = len(reads) - 1

    def kernel(workgroup: Scalar, *arrays: Memory) -> None:
        given = arrays[1:] if has_source else arrays
        indices, updates, own = given[:count], given[count], given[count + 1 :]
        target = own[0] if own else arrays[0]
        columns = Columns(scatter.row, target, workgroup, workgroups)
        if not is_in_place:
            extent = scatter.row if workgroups > 1 or not scatter.shape else scatter.shape[-1]
            whole = dataclasses.replace(columns, extent=extent)
            begin(target, arrays[0] if fill is None else target.constant(fill), whole)
        ScatterKernel(scatter, target, indices, updates, columns).run()

    [result] = dispatch(
        kernel,
        [operand, *reads] if has_source else reads,
        [operand.type],
        workgroups=workgroups,
        in_place={0: 0} if is_in_place else None,
        name="scatter",
    )
    return result


def _is_in_loop(made: ir.Operation) -> bool:
    parent = made.parent
    while parent is not None and parent.name != "stablehlo.while":
        parent = parent.parent
    return parent is not None


def _is_made_for_one(value: ir.Value) -> bool:
    """Tells whether a value is the result of a kernel, and used once."""
    is_result = not isinstance(value, ir.BlockArgument) and value.owner.name == "flow.dispatch"
    return is_result and len(list(value.uses)) == 1

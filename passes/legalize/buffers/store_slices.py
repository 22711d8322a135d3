"""`store-slices`: a gather, a reversal or a sort reads a stored copy of a slice."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.base import Pass
from axir.passes.legalize.rewriting import ELEMENTWISE, find_operations, stored_alone

_GATHERS = ("stablehlo.gather", "stablehlo.reverse")
_READERS = (*_GATHERS, "stablehlo.sort", "func.call")
_SLICES = ("stablehlo.slice", "stablehlo.dynamic_slice")
_VIEWS = frozenset(
    f"stablehlo.{name}"
    for name in "slice dynamic_slice reshape transpose convert bitcast_convert".split()
)


@dataclasses.dataclass(frozen=True)
class StoreSlices(Pass):
    """Computes a slice before the gather, the reversal or the sort that reads it.

    The fact: IREE reads a slice in place. If the slice is strided along its innermost dimension, a
    gather from it does not compile: "LLVM Translation failed for operation:
    builtin.unrealized_conversion_cast". A reversal is compiled as a gather. An elementwise
    operation that widens numbers is fused with a gather that reads them as its operand or its
    indices. A sort of any slice does not compile: "write affecting operations on global resources
    are restricted".

    1. Visit the operands of every gather (indices are gathered, too), reversal and sort, and of
       calls, because IREE inlines the called functions.
    2. Follow each back through slices, reshapes, transpositions and conversions, and for gathers
       and reversals also through elementwise operations, to slices of narrower numbers.
    3. If one of these is a slice, put an optimization barrier on the operand. For gathers and
       reversals, the slice must be strided along the last of its dimensions of extent above 1.
       Sorts and functions get a copy of an operand that has other readers. Gathers from contiguous
       rows do not change. Slices of the whole array do not change either: they fold to their
       operand, and a barrier there undoes `protect-inputs`.

    Before::

        %0 = stablehlo.slice %x [0:2, 0:3, 0:4:2]
        %1 = "stablehlo.gather"(%0, %i) …

    After::

        %0 = stablehlo.slice %x [0:2, 0:3, 0:4:2]
        %b = stablehlo.optimization_barrier %0
        %1 = "stablehlo.gather"(%b, %i) …

    Precondition: `protect-inputs` has run, because it removes barriers.
    """

    name: ClassVar[str] = "store-slices"

    def run(self, module: ir.Module) -> None:
        """Inserts the barriers."""
        known: dict[int, set[ir.Value]] = {}
        for reader in find_operations(module.operation, _READERS):
            only_reads = reader.name in _GATHERS
            for index, operand in enumerate(reader.operands):
                if _is_slice(operand, 2 if only_reads else 1) or (
                    only_reads and _widens_steps(operand, known)
                ):
                    with ir.InsertionPoint(reader), reader.location:
                        reader.operands[index] = (
                            hlo.optimization_barrier(operand)[0]
                            if only_reads
                            else stored_alone(operand)
                        )


def _is_slice(value: ir.Value, least_stride: int) -> bool:
    """Tells whether a value is a view of a slice with at least this innermost stride."""
    while not isinstance(value, ir.BlockArgument):
        operation = value.owner
        if operation.name not in _VIEWS:
            return False
        if _takes_part(operation) and _innermost_stride(operation) >= least_stride:
            return True
        value = operation.operands[0]
    return False


def _widens_steps(value: ir.Value, known: dict[int, set[ir.Value]]) -> bool:
    """Tells whether a value is computed element by element from a strided slice of narrower type.

    Args:
        value: The value.
        known: Values that are not so computed, by the width of the reader's numbers; more are
            added.
    """
    bits = _bits(value)
    plain = known.setdefault(bits, set())
    pending, seen = [value], set[ir.Value]()
    while pending:
        value = pending.pop()
        if value in seen or value in plain or isinstance(value, ir.BlockArgument):
            continue
        seen.add(value)
        operation = value.owner
        if not _is_by_element(operation):
            continue
        has_gaps = _takes_part(operation) and _innermost_stride(operation) > 1
        if has_gaps and _bits(value) < bits:
            return True
        pending += [operation.operands[0]] if operation.name in _SLICES else operation.operands
    plain |= seen
    return False


def _bits(value: ir.Value) -> int:
    kind = hlo.element_type_of(value)
    if isinstance(kind, ir.ComplexType):
        return 2 * kind.element_type.width
    return kind.width


def _is_by_element(operation: ir.Operation) -> bool:
    """Tells whether each element of a result is computed from one element of each operand."""
    if operation.name == "stablehlo.reduce":  # by no dimension, or one of extent 1
        sizes = [math.prod(hlo.shape_of(operation.operands[0]))]
        return sizes == [math.prod(hlo.shape_of(x)) for x in operation.results]
    return operation.name in _VIEWS or operation.name in ELEMENTWISE


def _takes_part(operation: ir.Operation) -> bool:
    return operation.name in _SLICES and operation.results[0].type != operation.operands[0].type


def _innermost_stride(operation: ir.Operation) -> int:
    """Returns the distance in memory of neighbours along a slice's last dimension of several."""
    shape = hlo.shape_of(operation.operands[0])
    extents = hlo.shape_of(operation.results[0])
    long = [axis for axis, extent in enumerate(extents) if extent > 1]
    if not long:
        return 1
    has_steps = "strides" in operation.attributes
    step = list(operation.attributes["strides"])[long[-1]] if has_steps else 1
    return step * math.prod(shape[long[-1] + 1 :])

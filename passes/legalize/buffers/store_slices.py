"""`store-slices`: what a gather, a reversal or a sort reads is no part of a larger array."""

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

    The fact: IREE reads a slice in place. Where neighbours along its innermost dimension are not
    neighbours in memory, a gather from it does not compile: "LLVM Translation failed for operation:
    builtin.unrealized_conversion_cast". A reversal is compiled as a gather. What makes numbers
    wider element by element becomes part of a gather of these or by these. A sort of any slice
    does not compile: "write affecting operations on global resources are restricted".

    1. Visit the operands of every gather (indices are gathered, too), reversal and sort, and of
       calls, whose functions IREE inlines.
    2. Follow each back through slices, reshapes, transpositions and conversions, those of gathers
       and reversals through all that is computed element by element.
    3. If one of these is a slice, and for gathers and reversals one with a step from neighbour to
       neighbour along the last of its dimensions of extent above 1, put an optimization barrier on
       the operand, of which sorts and functions get a copy if others read it, too. Gathers from
       slices of rows are left alone, and so are slices of everything: they fold to what they are
       taken from, and a barrier there undoes `protect-inputs`.

    Before::

        %0 = stablehlo.slice %x [0:2, 0:3, 0:4:2]
        %1 = "stablehlo.gather"(%0, %i) …

    After::

        %0 = stablehlo.slice %x [0:2, 0:3, 0:4:2]
        %b = stablehlo.optimization_barrier %0
        %1 = "stablehlo.gather"(%b, %i) …

    Precondition: `protect-inputs` has run, which removes barriers.
    """

    name: ClassVar[str] = "store-slices"

    def run(self, module: ir.Module) -> None:
        """Inserts the barriers."""
        known = set[ir.Value]()
        for reader in find_operations(module.operation, _READERS):
            only_reads = reader.name in _GATHERS
            for index, operand in enumerate(reader.operands):
                if _reads_steps(operand, known) if only_reads else _is_slice(operand):
                    with ir.InsertionPoint(reader), reader.location:
                        reader.operands[index] = (
                            hlo.optimization_barrier(operand)[0]
                            if only_reads
                            else stored_alone(operand)
                        )


def _is_slice(value: ir.Value) -> bool:
    """Tells whether a value is a view of a slice."""
    while not isinstance(value, ir.BlockArgument):
        operation = value.owner
        if operation.name not in _VIEWS:
            return False
        if _takes_part(operation):
            return True
        value = operation.operands[0]
    return False


def _reads_steps(value: ir.Value, known: set[ir.Value]) -> bool:
    """Tells whether a value is made, element by element, of a slice whose neighbours lie apart.

    Args:
        value: The value.
        known: Values that are not, to which those are added that are found not to be.
    """
    pending, seen = [value], set[ir.Value]()
    while pending:
        value = pending.pop()
        if value in seen or value in known or isinstance(value, ir.BlockArgument):
            continue
        seen.add(value)
        operation = value.owner
        if not _is_by_element(operation):
            continue
        if _takes_part(operation) and _innermost_stride(operation) > 1:
            return True
        pending += [operation.operands[0]] if operation.name in _SLICES else operation.operands
    known |= seen
    return False


def _is_by_element(operation: ir.Operation) -> bool:
    """Tells whether an operation makes each number of one of each operand, as far as is known."""
    if operation.name == "stablehlo.reduce":  # by no dimension, or one of extent 1
        sizes = [math.prod(hlo.shape_of(operation.operands[0]))]
        return sizes == [math.prod(hlo.shape_of(x)) for x in operation.results]
    return operation.name in _VIEWS or operation.name in ELEMENTWISE


def _takes_part(operation: ir.Operation) -> bool:
    return operation.name in _SLICES and operation.results[0].type != operation.operands[0].type


def _innermost_stride(operation: ir.Operation) -> int:
    """Tells how far the neighbours along the innermost dimension of a slice lie apart."""
    shape = hlo.shape_of(operation.operands[0])
    extents = hlo.shape_of(operation.results[0])
    long = [axis for axis, extent in enumerate(extents) if extent > 1]
    if not long:
        return 1
    has_steps = "strides" in operation.attributes
    step = list(operation.attributes["strides"])[long[-1]] if has_steps else 1
    return step * math.prod(shape[long[-1] + 1 :])

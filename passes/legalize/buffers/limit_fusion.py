"""`limit-fusion`: no loop reads more arrays than IREE can bind."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.base import Pass
from axir.passes.legalize.rewriting import ELEMENTWISE, find_operations, operations_in_order

_FREE = frozenset(("stablehlo.constant", "stablehlo.iota"))


@dataclasses.dataclass(frozen=True)
class LimitFusion(Pass):
    """Breaks up elementwise computations of very many arrays.

    The fact: IREE fuses elementwise operations without limit, but a dispatch can bind 32 buffers.
    With the fusions that axir turns off, the compiled sum of 40 arrays fails to load ("binding
    count 41 > 32"). Without them, the sum of 40 broadcast scalars fails to load.

    1. Go through the operations of each function in order, and keep for each value the set of
       arrays that its fused computation reads. Constants do not count. An argument, or the result
       of an operation that is not elementwise, counts as one array.
    2. Where an operation would read more than `buffers` of them, put an optimization barrier on
       each operand that is computed from more than one array. Each such operand counts as one array
       from then on.

    Before::

        %40 = stablehlo.add %39, %arg40          // reads 25 arrays

    After::

        %b = stablehlo.optimization_barrier %39
        %40 = stablehlo.add %b, %arg40

    Bodies of reductions are not changed. Functions of few values cost no time.
    """

    name: ClassVar[str] = "limit-fusion"
    buffers: int = 24

    def run(self, module: ir.Module) -> None:
        """Inserts the barriers."""
        for function in find_operations(module.operation, ("func.func",)):
            operations = operations_in_order(function, ELEMENTWISE)
            # Each array that is read is an operand.
            if sum(len(operation.operands) for operation in operations) <= self.buffers:
                continue
            reads: dict[ir.Value, frozenset[ir.Value]] = {}
            for operation in operations:
                if not _is_in_reduction(operation):
                    self._visit(operation, reads)

    def _visit(self, operation: ir.Operation, reads: dict[ir.Value, frozenset[ir.Value]]) -> None:
        operands = list(operation.operands)
        read = frozenset().union(*(_read_by(operand, reads) for operand in operands))
        if len(read) > self.buffers:
            for index, operand in enumerate(operands):
                if len(_read_by(operand, reads)) > 1:
                    with ir.InsertionPoint(operation), operation.location:
                        operands[index] = hlo.optimization_barrier(operand)[0]
                    operation.operands[index] = operands[index]
            read = frozenset().union(*(_read_by(operand, reads) for operand in operands))
        for result in operation.results:
            reads[result] = read


def _read_by(value: ir.Value, reads: dict[ir.Value, frozenset[ir.Value]]) -> frozenset[ir.Value]:
    if value in reads:
        return reads[value]
    if not isinstance(value, ir.BlockArgument) and value.owner.name in _FREE:
        return frozenset()
    return frozenset((value,))


def _is_in_reduction(operation: ir.Operation) -> bool:
    parent = operation.parent.name
    return parent.startswith("stablehlo.") and parent not in (
        "stablehlo.while",
        "stablehlo.if",
        "stablehlo.case",
    )

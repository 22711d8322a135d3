"""Barriers that limit the number of arrays in a dispatch, of loops and of scalars."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.base import Pass
from axir.passes.legalize.rewriting import (
    ELEMENTWISE,
    defining_operation,
    find_operations,
    operations_in_order,
)

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


_AROUND_BLOCKS = frozenset(("func.func", "stablehlo.while", "stablehlo.if", "stablehlo.case"))


@dataclasses.dataclass(frozen=True)
class LimitScalarFusion(Pass):
    """Breaks up long computations on scalars, which are arrays of one element.

    The fact: IREE puts all adjacent operations on single elements into one dispatch, whether they
    read each other or not. The dispatch binds a buffer for each scalar that it reads or returns,
    but a dispatch can bind only 32 (`limit-fusion`). IREE ends such a dispatch where another
    operation reads the last result.

    1. Go through the elementwise operations on single elements of each block, of functions,
       loops and branches, in order, and keep the scalars that the dispatch reads, and its results
       that other operations read. A scalar that is read once counts as its operands, because IREE
       moves its computation into its reader.
    2. Where an operation would raise the count above `buffers`, put an optimization barrier on the
       result of the preceding operation, and start a new count.

    Before::

        %10 = stablehlo.multiply %9, %9 : tensor<f32>     // 24 numbers were read so far
        %11 = stablehlo.add %10, %arg25 : tensor<f32>

    After::

        %10 = stablehlo.multiply %9, %9 : tensor<f32>
        %b = stablehlo.optimization_barrier %10
        %11 = stablehlo.add %b, %arg25 : tensor<f32>
    """

    name: ClassVar[str] = "limit-scalar-fusion"
    buffers: int = 24

    def run(self, module: ir.Module) -> None:
        """Inserts the barriers."""
        for function in find_operations(module.operation, ("func.func",)):
            numbers: dict[ir.Block, list[ir.Operation]] = defaultdict(list)
            for operation in operations_in_order(function, ELEMENTWISE):
                if operation.parent.name in _AROUND_BLOCKS and _is_of_numbers(operation):
                    numbers[operation.block].append(operation)
            for in_block in numbers.values():
                if len(in_block) > self.buffers:
                    self._part(in_block)

    def _part(self, numbers: list[ir.Operation]) -> None:
        dispatch = _Dispatch()
        for before, operation in zip([None, *numbers], numbers, strict=False):
            dispatch.add(operation)
            if before is not None and dispatch.bindings > self.buffers:
                _store(before)
                dispatch = _Dispatch()
                dispatch.add(operation)


class _Dispatch:
    """A dispatch of IREE: the scalars that it reads, and its results with other readers."""

    def __init__(self) -> None:
        self._read: set[ir.Value] = set()
        # For each result of the dispatch, the number of uses that have not been visited yet.
        self._awaited: dict[ir.Value, int] = {}

    @property
    def bindings(self) -> int:
        return len(self._read) + len(self._awaited)

    def add(self, operation: ir.Operation) -> None:
        pending = list(operation.operands)
        seen: set[ir.Value] = set()
        while pending:
            value = pending.pop()
            if value in seen or _is_constant(value):
                continue
            seen.add(value)
            if value in self._awaited:
                self._awaited[value] -= sum(use.owner == operation for use in value.uses)
                if not self._awaited[value]:
                    del self._awaited[value]
            elif _moves(value):
                pending += value.owner.operands
            else:
                self._read.add(value)
        for result in operation.results:
            self._awaited[result] = sum(1 for _ in result.uses)


def _is_of_numbers(operation: ir.Operation) -> bool:
    return all(hlo.size_of(x) == 1 for x in (*operation.operands, *operation.results))


def _is_constant(value: ir.Value) -> bool:
    maker = defining_operation(value)
    return maker is not None and maker.name == "stablehlo.constant"


def _moves(value: ir.Value) -> bool:
    """Tells whether IREE computes a value in its reader: it is read once, and made of scalars."""
    maker = defining_operation(value)
    if maker is None or maker.name not in ELEMENTWISE or not _is_of_numbers(maker):
        return False
    return sum(1 for _ in value.uses) == 1


def _store(operation: ir.Operation) -> None:
    """Puts barriers on the results of an operation, so that a dispatch ends with it."""
    for result in operation.results:
        uses = [(use.owner, use.operand_number) for use in result.uses]
        with ir.InsertionPoint.after(operation), operation.location:
            stored = hlo.optimization_barrier(result)[0]
        for user, number in uses:
            user.operands[number] = stored

"""Finds the arrays that the steps of a module read, and the last step that reads each.

A step is a kernel, a call of a host function, a loop or a branch. Elsewhere: the places of arrays,
and the order of the steps (`step_writer.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

from iree.compiler import ir

from axir.passes.legalize.regions import (
    ALIASES,
    BRANCHES,
    IN_PLACE,
    KERNEL,
    LOOP,
    host_function,
    operations_of,
)


class Structure:
    """The steps of a function, and their reads.

    Args:
        function: The function, of kernels and other steps only.

    Attributes:
        read: The arrays that steps read, each once, in order.
        last_reader: For each array, the last operation of the array's block that reads it, also in
            a region.
        reads: For each step, the arrays that it and the steps in it read.
        captured: The same, but only for the steps in it.
    """

    def __init__(self, function: ir.Operation):
        self.read: dict[ir.Value, None] = {}
        self.last_reader: dict[ir.Value, ir.Operation] = {}
        self.reads: dict[ir.Operation, list[ir.Value]] = {}
        self.captured: dict[ir.Operation, set[ir.Value]] = {}
        # Carried values that no pass changes, with their initial values.
        self._same: dict[ir.Value, ir.Value] = {}
        [operations] = operations_of(function)
        self._find_unchanged(operations)
        self._visit(operations[:-1])

    def source(self, value: ir.Value) -> ir.Value:
        """Returns the array that a value is read from."""
        while True:
            if value in self._same:
                value = self._same[value]
            elif isinstance(value, ir.BlockArgument) or value.owner.name not in ALIASES:
                return value
            else:
                value = value.owner.operands[ir.OpResult(value).result_number]

    def is_last(self, value: ir.Value, step: ir.Operation) -> bool:
        """Tells whether a step that reads or makes an array is its last reader."""
        return self.last_reader.get(value, step) == step and block_of(value) == step.block

    def is_unchanged(self, loop: ir.Operation, number: int) -> bool:
        """Tells whether no pass of a loop changes a value that it carries."""
        return loop.results[number] in self._same

    def _find_unchanged(self, operations: list[ir.Operation]) -> None:
        for step in filter(is_step, operations):
            if step.name == LOOP:
                body = step.regions[1].blocks[0]
                *_, last = operations_of(step)[1]
                for number, (argument, end) in enumerate(
                    zip(body.arguments, last.operands, strict=True)
                ):
                    if argument == end:
                        first = step.operands[number]
                        other = step.regions[0].blocks[0].arguments[number]
                        for x in (argument, other, step.results[number]):
                            self._same[x] = first
            for inner in inner_blocks(step):
                self._find_unchanged(inner)

    def _visit(self, operations: list[ir.Operation]) -> dict[ir.Value, None]:
        """Returns the arrays from outside that the steps among operations read."""
        found: dict[ir.Value, None] = {}
        for step in operations:
            if not is_step(step):
                continue
            read = dict.fromkeys(map(self.source, step.operands))
            self.read.update(read)
            captured: dict[ir.Value, None] = {}
            for *inner, last in inner_blocks(step):
                captured.update(self._visit(inner))
                ends = dict.fromkeys(map(self.source, last.operands))
                self.read.update(ends)
                self.last_reader.update(dict.fromkeys(ends, last))
                captured.update(ends)
            read.update(captured)
            self.captured[step] = set(captured)
            self.reads[step] = list(read)
            # The last reader of an array made inside this step is never asked for.
            outside = {x: None for x in read if not _is_inside(x, step)}
            self.last_reader.update(dict.fromkeys(outside, step))
            found.update(outside)
        return found


def _is_inside(value: ir.Value, step: ir.Operation) -> bool:
    """Tells whether a value is made in a loop or branch, or is an argument there."""
    if not len(step.regions):
        return False
    block = block_of(value)
    while True:
        owner = block.owner.operation
        if owner == step:
            return True
        if owner.name == "func.func":
            return False
        block = owner.block


def is_step(operation: ir.Operation) -> bool:
    """Tells whether an operation is a step of a program."""
    return operation.name in (KERNEL, LOOP, *BRANCHES) or host_function(operation) is not None


def is_made(value: ir.Value) -> bool:
    """Tells whether a step computes an array."""
    return not isinstance(value, ir.BlockArgument) and is_step(value.owner.operation)


def is_argument(value: ir.Value) -> bool:
    """Tells whether a value is an argument of the program, and not of a block in it."""
    return isinstance(value, ir.BlockArgument) and value.owner.owner.operation.name == "func.func"


def block_of(value: ir.Value) -> ir.Block:
    """Returns the block that defines a value."""
    return value.owner if isinstance(value, ir.BlockArgument) else value.owner.operation.block


def inner_blocks(step: ir.Operation) -> list[list[ir.Operation]]:
    """Returns the operations of the blocks of a loop or branch."""
    return operations_of(step) if step.name == LOOP or step.name in BRANCHES else []


def operations_of_blocks(operations: list[ir.Operation]) -> Iterator[ir.Operation]:
    """Yields operations, and the operations in the loops and branches among them."""
    for operation in operations:
        yield operation
        for inner in inner_blocks(operation):
            yield from operations_of_blocks(inner)


def places_of(step: ir.Operation) -> list[int]:
    """Returns the operand that each result of a step may take its place from, or -1."""
    if IN_PLACE in step.attributes:
        return [ir.IntegerAttr(x).value for x in ir.ArrayAttr(step.attributes[IN_PLACE])]
    return ties_of(step)


def ties_of(step: ir.Operation) -> list[int]:
    """Returns the operand that each result of a step takes its place from, or -1."""
    if step.name != KERNEL:
        return [-1] * len(step.results)
    return [ir.IntegerAttr(x).value for x in ir.ArrayAttr(step.attributes["tied_operands"])]

"""`HostProgram`: functions, their blocks and steps. A step runs a kernel, copies, computes, jumps.

It corresponds to IREE's stream dialect at the point where kernels are machine code, without the
operations that matter only to asynchronous devices: steps run one after another, in their order.
All sizes and offsets are in bytes.

Here: also the values that steps and ends of blocks read and define.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

MEMORY = "memory"
ARRAY = "array"
SCALARS = ("i1", "i8", "i16", "i32", "i64", "index", "f32", "f64", "bf16", "f16")


@dataclass(frozen=True, eq=False)
class Value:
    """A result of a step, or an argument of a block or function; values are equal if identical.

    Attributes:
        kind: `memory`, `array` (memory of the caller's, or of a host function's), or a scalar type
            such as `i32` or `index`.
    """

    kind: str


@dataclass(frozen=True)
class Constant:
    """A number that is known; the bits of it, as an integer, if it is no finite number."""

    kind: str
    value: int | float | bool


Operand: TypeAlias = Value | Constant


@dataclass(frozen=True)
class Kernel:
    """A function of the object file.

    Attributes:
        name: Its name in the library.
        workgroups: The number of workgroups along x, y and z.
        where: The user's line, if it is known.
        depends_on_workload: Whether other dispatches may run it with other numbers of workgroups.
    """

    name: str
    workgroups: tuple[int, int, int]
    where: str | None = None
    depends_on_workload: bool = False

    @property
    def label(self) -> str:
        """A unique name of the kernel and its numbers of workgroups."""
        if not self.depends_on_workload:
            return self.name
        return "_".join(map(str, (self.name, *self.workgroups)))


@dataclass(frozen=True)
class Machine:
    """The target of kernels, by LLVM's names: a triple, and features with commas between."""

    triple: str
    features: str


@dataclass(frozen=True)
class Span:
    """A part of memory that a kernel reads or writes."""

    memory: Value
    offset: Operand
    length: Operand


@dataclass(frozen=True)
class Import:
    """Takes the memory of an array."""

    result: Value
    array: Value
    size: Operand


@dataclass(frozen=True)
class Export:
    """Makes an array of memory."""

    result: Value
    memory: Value


@dataclass(frozen=True)
class Allocate:
    """Takes fresh memory with undefined contents."""

    result: Value
    size: Operand


@dataclass(frozen=True)
class Release:
    """Gives memory back, which no later step reads."""

    memory: Value


@dataclass(frozen=True)
class Part:
    """A part of memory as memory."""

    result: Value
    memory: Value
    offset: Operand


@dataclass(frozen=True)
class Embedded:
    """Constants of the program, by their number."""

    result: Value
    number: int


@dataclass(frozen=True)
class Dispatch:
    """Runs a kernel.

    Attributes:
        kernel: Which.
        constants: Numbers of 32 bits that it takes.
        spans: Memory that it reads and writes.
    """

    kernel: Kernel
    constants: tuple[Operand, ...]
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class Copy:
    """Copies bytes between parts of memory that do not overlap."""

    source: Span
    target: Span


@dataclass(frozen=True)
class Fill:
    """Fills memory with one value of 1, 2, 4 or 8 bytes."""

    target: Span
    value: Operand


@dataclass(frozen=True)
class Load:
    """Reads one number from memory."""

    result: Value
    memory: Value
    offset: Operand


@dataclass(frozen=True)
class Store:
    """Writes one number to memory."""

    value: Operand
    memory: Value
    offset: Operand


@dataclass(frozen=True)
class Compute:
    """An operation on numbers.

    Attributes:
        name: MLIR's name of it: `arith.addi`; comparisons with their predicate: `arith.cmpi slt`.
    """

    result: Value
    name: str
    operands: tuple[Operand, ...]


@dataclass(frozen=True)
class LoadGlobal:
    """Reads a value that the program keeps."""

    result: Value
    name: str


@dataclass(frozen=True)
class StoreGlobal:
    """Replaces a value that the program keeps."""

    name: str
    value: Operand


@dataclass(frozen=True)
class Call:
    """Calls a host function, by its number."""

    number: int
    operands: tuple[Value, ...]
    results: tuple[Value, ...]


@dataclass(frozen=True)
class Target:
    """A block to go on with, and its arguments."""

    block: int
    operands: tuple[Operand, ...]


@dataclass(frozen=True)
class Jump:
    """Goes on with a block."""

    target: Target


@dataclass(frozen=True)
class Branch:
    """Goes on with one of two blocks."""

    condition: Operand
    then: Target
    otherwise: Target


@dataclass(frozen=True)
class Return:
    """Ends the function."""

    values: tuple[Operand, ...]


Step: TypeAlias = (
    Import
    | Export
    | Allocate
    | Release
    | Part
    | Embedded
    | Dispatch
    | Copy
    | Fill
    | Load
    | Store
    | Compute
    | LoadGlobal
    | StoreGlobal
    | Call
)
End: TypeAlias = Jump | Branch | Return


@dataclass
class Block:
    """Steps one after another."""

    arguments: tuple[Value, ...] = ()
    steps: list[tuple[Step, str | None]] = field(default_factory=list)
    """With the user's line of each, if it is known."""
    end: End = Return(())


@dataclass(frozen=True)
class HostFunction:
    """A function of the program; the first block takes its arguments.

    Attributes:
        name: Its symbol.
        arguments: The caller's arrays: arguments, and memory for results.
        blocks: In an order in which definitions come before their uses, except in loops.
    """

    name: str
    arguments: tuple[Value, ...]
    blocks: tuple[Block, ...]

    @property
    def is_straight(self) -> bool:
        """Whether all steps are done once, in order."""
        return len(self.blocks) == 1


@dataclass(frozen=True)
class HostProgram:
    """A whole program.

    Attributes:
        functions: The functions that can be called, by name.
        initializers: Functions to be run once, in order, before any of the others.
        globals: Kinds of the values that the program keeps, by name.
        kernels: All kernels that steps name, each once.
        constants: The bytes of embedded constants, by number.
        machine: The target of the kernels, if the program has kernels.
    """

    functions: dict[str, HostFunction]
    initializers: tuple[HostFunction, ...]
    globals: dict[str, str]
    kernels: tuple[Kernel, ...]
    constants: tuple[bytes, ...]
    machine: Machine | None = None


_GIVEN = ("result", "results")


def used_values(step: Step | End) -> Iterator[Value]:
    """Yields the values that a step, or the end of a block, reads."""
    for name in (x.name for x in dataclasses.fields(step)):
        if name not in _GIVEN:
            yield from _values_in(getattr(step, name))


def given_values(step: Step) -> Iterator[Value]:
    """Yields the values that a step defines."""
    for name in (x.name for x in dataclasses.fields(step)):
        if name in _GIVEN:
            yield from _values_in(getattr(step, name))


def _values_in(x: object) -> Iterator[Value]:
    if isinstance(x, Value):
        yield x
    elif isinstance(x, tuple):
        for item in x:
            yield from _values_in(item)
    elif isinstance(x, (Span, Target)):
        for field in dataclasses.fields(x):
            yield from _values_in(getattr(x, field.name))


def targets_of(end: End) -> tuple[Target, ...]:
    """Returns where control may go from the end of a block."""
    if isinstance(end, Branch):
        return end.then, end.otherwise
    return (end.target,) if isinstance(end, Jump) else ()


def used_elsewhere(function: HostFunction) -> set[Value]:
    """Returns the values that are used in other blocks than the defining one."""
    home = {
        value: number
        for number, block in enumerate(function.blocks)
        for step, _ in block.steps
        for value in given_values(step)
    }
    return {
        value
        for number, block in enumerate(function.blocks)
        for step in (*(step for step, _ in block.steps), block.end)
        for value in used_values(step)
        if home.get(value, number) != number
    }

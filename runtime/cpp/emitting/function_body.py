"""The steps of a function as statements of C++.

A function without control flow uses memory at places that are fixed when the model is emitted. A
function with control flow allocates and frees memory as it runs, from a heap that keeps it. Its
blocks become loops and choices, or scopes behind labels if the jumps do not fit; variables that
several blocks use are declared before all of them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from typing import TypeAlias

from axir.dialect.core.annotations import Foreign
from axir.runtime.cpp.program import host_program as host
from axir.runtime.cpp.program.host_program import given_values, used_elsewhere, used_values
from axir.runtime.cpp.program.interface import Callback
from axir.runtime.cpp.program.memory import Piece, place, update_in_place
from axir.runtime.cpp.program.structure import (
    Again,
    Choose,
    End,
    Give,
    Leave,
    Loop,
    Run,
    Tree,
    ends_always,
    structured,
)
from axir.runtime.errors import CppEmissionError

from .statements import (
    call_statement,
    dispatch_statement,
    expression,
    fill_statement,
    literal,
    number_type,
)
from .types import byte_size

_NUMBER = re.compile(r"\bnumber_\d+\b")
_ASSIGNED = re.compile(r"^\s*number_\d+ = ")
_DECLARED = re.compile(r"^[\w:]+ (number_\d+)\{\};$")
# Steps that name memory with another owner.
_POINTERS = (host.Import, host.Export, host.Embedded, host.LoadGlobal, host.Call)


class FunctionBody:
    """Writes one function.

    Args:
        function: The function.
        arrays: For each argument, the expression of a pointer to its memory.
        targets: For each result, the expressions of its final place and of the memory that is meant
            for it, and its size.
        callbacks: The callbacks of the program, by number.
        prefix: The prefix of constants' names.
        is_initializer: Whether the memory that it allocates is kept for good.
    """

    def __init__(
        self,
        function: host.HostFunction,
        arrays: Iterable[str],
        targets: Iterable[tuple[str, str, int]],
        callbacks: tuple[Callback, ...],
        prefix: str,
        is_initializer: bool = False,
    ):
        arrays, targets = list(arrays), list(targets)
        if function.is_straight and not is_initializer:
            given = {place: n for n, (_, place, _) in enumerate(targets)}
            pairs = {n: given[place] for n, place in enumerate(arrays) if place in given}
            function = update_in_place(function, pairs)
        self._function = function
        self._callbacks = callbacks
        self._prefix = prefix
        self._targets = list(targets)
        self._is_straight = function.is_straight and not is_initializer
        self._pointers: dict[host.Value, str] = dict(
            zip(function.arguments, arrays, strict=True)
        )  # memory with another owner, by the expression of a pointer
        self._names: dict[host.Value, str] = {}
        self._outer = set() if self._is_straight else used_elsewhere(function)
        self._memory_of: dict[host.Value, host.Value] = {}
        self._lines: list[str] = []
        self._where: str | None = None
        self._reached: set[int] = set()
        self.workspace = 0

    def write(self) -> list[str]:
        """Returns the lines of the body, not indented; `workspace` then says how much it needs."""
        offsets = self._plan() if self._is_straight else {}
        for value, offset in offsets.items():
            place = f" + {offset}" if offset else ""
            self._pointers[value] = f"workspace_.data(){place}"
        if self._is_straight:
            self._write_steps(self._function.blocks[0])
            self._write_end(self._function.blocks[0].end, 0)
            return self._lines
        self._declare()
        tree = structured(self._function.blocks)
        if tree is None:
            self._write_blocks()
        else:
            self._write_tree(tree)
        self._mark_unread()
        return self._lines

    def _mark_unread(self) -> None:
        """Marks declared numbers that are never read, such as sizes, as `maybe_unused`."""
        rests = [_ASSIGNED.sub("", line) for line in self._lines if not _DECLARED.match(line)]
        read = {name for rest in rests for name in _NUMBER.findall(rest)}
        for index, line in enumerate(self._lines):
            found = _DECLARED.match(line)
            if found and found[1] not in read:
                self._lines[index] = f"[[maybe_unused]] {line}"

    def _write_tree(self, tree: Tree) -> None:
        """Writes loops and choices."""
        for item in tree:
            match item:
                case Run(number):
                    self._write_steps(self._function.blocks[number])
                case Give(target):
                    self._lines += self._give(target)
                case Choose(condition, then, otherwise):
                    self._write_choice(self._number(condition), then, otherwise)
                case Loop(body):
                    self._lines += ["while (true) {", *self._indented(body), "}"]
                case Leave():
                    self._lines.append("break;")
                case Again():
                    self._lines.append("continue;")
                case End(end):
                    self._write_return(end.values)

    def _write_choice(self, test: str, then: Tree, otherwise: Tree) -> None:
        """Writes a choice; the branch that leaves the loop or the function stands first."""
        if ends_always(otherwise) and not ends_always(then):
            test, then, otherwise = f"!{test}", otherwise, then
        chosen, rest = self._indented(then), self._indented(otherwise)
        if not chosen:
            test, chosen, rest = f"!{test}", rest, chosen
        if not chosen:
            return
        if len(chosen) == 1 and ends_always(then):
            self._lines.append(f"if ({test}) {chosen[0].strip()}")
        else:
            self._lines += [f"if ({test}) {{", *chosen, "}"]
        if ends_always(then):
            self._lines += [line.removeprefix("  ") for line in rest]
        elif rest:
            self._lines[-1:] = ["} else {", *rest, "}"]

    def _indented(self, tree: Tree) -> list[str]:
        outer, self._lines = self._lines, []
        self._write_tree(tree)
        outer, self._lines = self._lines, outer
        return [f"  {line}" for line in outer]

    def _write_blocks(self) -> None:
        """Writes blocks as scopes with labels, and jumps between them."""
        scopes = []
        for number, block in enumerate(self._function.blocks):
            outer, self._lines, self._where = self._lines, [], None
            self._write_steps(block)
            self._write_end(block.end, number)
            scopes.append([*(f"  {line}" for line in self._lines), "}"])
            self._lines = outer
        for number, lines in enumerate(scopes):
            label = f"block_{number}: {{" if number in self._reached else "{"
            self._lines += [label, *lines]

    # Memory --------------------------------------------------------------------------------------

    def _plan(self) -> dict[host.Value, int]:
        """Places the function's allocations; a use of a part counts as a use of the whole."""
        steps = [step for step, _ in self._function.blocks[0].steps]
        end = len(steps)
        whole: dict[host.Value, host.Value] = {}
        sizes: dict[host.Value, int] = {}
        first: dict[host.Value, int] = {}
        last: dict[host.Value, int] = {}
        for number, step in enumerate(steps):
            for value in used_values(step):
                owner = whole.get(value, value)
                last[owner] = number
            if isinstance(step, host.Allocate):
                sizes[step.result] = self._static(step.size)
                first[step.result] = last[step.result] = number
            elif isinstance(step, (host.Part, host.Export)):
                whole[step.result] = whole.get(step.memory, step.memory)
            elif isinstance(step, host.Import):
                whole[step.result] = whole.get(step.array, step.array)
            elif isinstance(step, host.Call):
                types = self._callbacks[step.number].results
                for value, array in zip(step.results, types, strict=True):
                    sizes[value], first[value], last[value] = byte_size(array), number, number
        for value in used_values(self._function.blocks[0].end):
            last[whole.get(value, value)] = end
        values = list(sizes)
        offsets, self.workspace = place([Piece(sizes[v], first[v], last[v]) for v in values])
        return dict(zip(values, offsets, strict=True))

    def _static(self, size: host.Operand) -> int:
        if not isinstance(size, host.Constant):
            raise CppEmissionError(
                "The size of an array depends on the values of arrays, which C++ is not written "
                f"for, in {self._function.name!r}.",
                "Give the arrays of the function static shapes.",
                where=self._where,
            )
        return int(size.value)

    def _pointer(self, value: host.Value, offset: host.Operand | None = None) -> str:
        text = self._pointers.get(value) or f"{self._names[value]}.data()"
        if offset is None or (isinstance(offset, host.Constant) and offset.value == 0):
            return text
        return f"{text} + {self._number(offset)}"

    def _number(self, operand: host.Operand) -> str:
        return literal(operand) if isinstance(operand, host.Constant) else self._names[operand]

    def _size(self, operand: host.Operand) -> str:
        """Returns an expression for a size without a narrowing conversion, which braces forbid."""
        number = self._number(operand)
        is_known = isinstance(operand, host.Constant)
        return number if is_known else f"static_cast<std::size_t>({number})"

    def _memory(self, value: host.Value) -> str:
        """Returns an expression of the type `axir::Memory`."""
        pointer = self._pointers.get(value)
        return self._names[value] if pointer is None else f"axir::Memory({pointer})"

    def _argument(self, operand: host.Operand) -> str:
        is_memory = isinstance(operand, host.Value) and operand.kind == host.MEMORY
        return self._memory(operand) if is_memory else self._number(operand)  # type: ignore[arg-type]

    # Names ---------------------------------------------------------------------------------------

    def _declare(self) -> None:
        """Declares the variables that several blocks use, and the arguments of blocks."""
        for block in self._function.blocks:
            for value in block.arguments:
                self._outer.add(value)
                self._declare_one(value)
            for step, _ in block.steps:
                if isinstance(step, host.Call):
                    for value in step.results:
                        holder = self._memory_of[value] = host.Value(host.MEMORY)
                        self._declare_one(holder)
                for value in given_values(step):
                    if value in self._outer and not isinstance(step, _POINTERS):
                        self._declare_one(value)

    def _declare_one(self, value: host.Value) -> None:
        if value.kind == host.ARRAY or value in self._names:
            return
        name = self._name(value)
        if value.kind == host.MEMORY:
            self._lines.append(f"axir::Memory {name};")
        else:
            self._lines.append(f"{number_type(value.kind)} {name}{{}};")

    def _name(self, value: host.Value) -> str:
        stem = "memory" if value.kind == host.MEMORY else "number"
        name = self._names[value] = f"{stem}_{len(self._names)}"
        return name

    def _assign(self, value: host.Value, text: str) -> None:
        if value in self._names:
            self._lines.append(f"{self._names[value]} = {text};")
        elif value.kind == host.MEMORY:
            self._lines.append(f"axir::Memory {self._name(value)} = {text};")
        else:
            self._lines.append(f"const {number_type(value.kind)} {self._name(value)} = {text};")

    # Steps ---------------------------------------------------------------------------------------

    def _write_steps(self, block: host.Block) -> None:
        for step, where in block.steps:
            start = len(self._lines)
            self._write(step)
            if where is not None and where != self._where and len(self._lines) > start:
                self._lines.insert(start, f"// {os.path.basename(where)}")
                self._where = where

    def _write(self, step: host.Step) -> None:
        _WRITERS[type(step)](self, step)

    def _write_import(self, step: host.Import) -> None:
        holder = self._memory_of.get(step.array, step.array)
        if holder in self._names:
            self._names[step.result] = self._names[holder]
        else:
            self._pointers[step.result] = self._pointers[holder]

    def _write_export(self, step: host.Export) -> None:
        self._memory_of[step.result] = step.memory

    def _write_release(self, step: host.Release) -> None:
        if not self._is_straight and step.memory in self._names:
            self._lines.append(f"{self._names[step.memory]} = axir::Memory();")

    def _write_allocation(self, step: host.Allocate) -> None:
        if not self._is_straight:
            self._take(step.result, self._number(step.size))

    def _take(self, value: host.Value, size: str) -> None:
        self._assign(value, f"heap().take({size})")
        self._lines.append(f"if (!{self._names[value]}) return axir::Code::out_of_memory;")

    def _write_part(self, step: host.Part) -> None:
        if step.memory in self._pointers:
            self._pointers[step.result] = self._pointer(step.memory, step.offset)
        else:
            whole, offset = self._names[step.memory], self._number(step.offset)
            self._assign(step.result, f"{whole}.part({offset})")

    def _write_embedded(self, step: host.Embedded) -> None:
        name = f"{self._prefix}_constants_{step.number}"
        self._pointers[step.result] = f"axir::constant_bytes({name})"

    def _write_dispatch(self, step: host.Dispatch) -> None:
        spans = [(self._pointer(x.memory, x.offset), self._size(x.length)) for x in step.spans]
        constants = list(map(self._number, step.constants))
        self._lines += dispatch_statement(step.kernel.label, spans, constants)

    def _write_copy(self, step: host.Copy) -> None:
        pointers = [self._pointer(x.memory, x.offset) for x in (step.target, step.source)]
        length = self._number(step.source.length)
        self._lines.append(f"std::memcpy({', '.join(pointers)}, {length});")

    def _write_fill(self, step: host.Fill) -> None:
        pointer = self._pointer(step.target.memory, step.target.offset)
        length = self._number(step.target.length)
        text = self._number(step.value)
        self._lines.append(fill_statement(pointer, length, step.value, text))

    def _write_load(self, step: host.Load) -> None:
        pointer = self._pointer(step.memory, step.offset)
        self._assign(step.result, f"load<{number_type(step.result.kind)}>({pointer})")

    def _write_store(self, step: host.Store) -> None:
        pointer = self._pointer(step.memory, step.offset)
        kind = number_type(step.value.kind)
        self._lines.append(f"store<{kind}>({pointer}, {self._number(step.value)});")

    def _write_global_load(self, step: host.LoadGlobal) -> None:
        if step.result.kind == host.MEMORY:
            self._pointers[step.result] = f"{global_name(step.name)}.data()"
        else:
            self._assign(step.result, global_name(step.name))

    def _write_global_store(self, step: host.StoreGlobal) -> None:
        self._lines.append(f"{global_name(step.name)} = {self._argument(step.value)};")

    def _write_computation(self, step: host.Compute) -> None:
        text = expression(step, [self._number(x) for x in step.operands])
        if text is None:
            raise CppEmissionError(
                f"{step.name} of numbers on which the flow of control depends cannot be written as "
                "C++.",
                "Compute the condition of the loop or branch in another way.",
                where=self._where,
            )
        self._assign(step.result, text)

    def _write_call(self, step: host.Call) -> None:
        callback = self._callbacks[step.number]
        for value, array in zip(step.results, callback.results, strict=True):
            if not self._is_straight:
                self._take(self._memory_of[value], str(byte_size(array)))
        operands = [self._pointer(self._memory_of.get(v, v)) for v in step.operands]
        results = [self._pointer(self._memory_of.get(v, v)) for v in step.results]
        self._lines += call_statement(callback, operands, results)

    # Ends ----------------------------------------------------------------------------------------

    def _write_end(self, end: host.End, number: int) -> None:
        match end:
            case host.Return(values):
                self._write_return(values)
            case host.Jump(target):
                self._lines += self._jump(target, number)
            case host.Branch(condition, then, otherwise):
                test = self._number(condition)
                if then.block == number + 1:
                    test, then, otherwise = f"!{test}", otherwise, then
                lines = self._jump(then, -1)
                if len(lines) == 1:
                    self._lines.append(f"if ({test}) {lines[0]}")
                else:
                    self._lines += [f"if ({test}) {{", *(f"  {x}" for x in lines), "}"]
                self._lines += self._jump(otherwise, number)

    def _jump(self, target: host.Target, number: int) -> list[str]:
        """Assigns a block's arguments and jumps there; `number` is the current block's number."""
        lines = self._give(target)
        if number < 0 or target.block != number + 1:
            self._reached.add(target.block)
            lines.append(f"goto block_{target.block};")
        return lines

    def _give(self, target: host.Target) -> list[str]:
        """Gives a block its arguments."""
        arguments = self._function.blocks[target.block].arguments
        pairs = [
            (self._names[argument], self._argument(operand))
            for argument, operand in zip(arguments, target.operands, strict=True)
            if operand is not argument
        ]
        names = {name for name, _ in pairs}
        if any(text in names for _, text in pairs):  # all operands are read before any write
            lines = [f"auto next_{n} = {text};" for n, (_, text) in enumerate(pairs)]
            lines += [f"{name} = std::move(next_{n});" for n, (name, _) in enumerate(pairs)]
            return ["{", *(f"  {line}" for line in lines), "}"]
        return [f"{name} = {text};" for name, text in pairs]

    def _write_return(self, values: tuple[host.Operand, ...]) -> None:
        for value, (target, meant, size) in zip(values, self._targets, strict=True):
            assert isinstance(value, host.Value)
            pointer = self._pointer(self._memory_of.get(value, value))
            if pointer != meant or target != meant:
                self._lines.append(f"deliver({target}, {pointer}, {size});")
        self._lines.append("return axir::Code::ok;")


_Writer: TypeAlias = Callable[[FunctionBody, Foreign], None]
_WRITERS: dict[type, _Writer] = {
    host.Allocate: FunctionBody._write_allocation,
    host.Call: FunctionBody._write_call,
    host.Compute: FunctionBody._write_computation,
    host.Copy: FunctionBody._write_copy,
    host.Dispatch: FunctionBody._write_dispatch,
    host.Embedded: FunctionBody._write_embedded,
    host.Export: FunctionBody._write_export,
    host.Fill: FunctionBody._write_fill,
    host.Import: FunctionBody._write_import,
    host.Load: FunctionBody._write_load,
    host.LoadGlobal: FunctionBody._write_global_load,
    host.Part: FunctionBody._write_part,
    host.Release: FunctionBody._write_release,
    host.Store: FunctionBody._write_store,
    host.StoreGlobal: FunctionBody._write_global_store,
}


def global_name(name: str) -> str:
    """Returns the member that holds a global."""
    words = "".join(c if c.isalnum() else "_" for c in name).strip("_")
    return f"global_{words}_"

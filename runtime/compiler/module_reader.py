"""Reads a module that is kernels only: which kernel runs on which memory, in which order.

Arrays that only kernels see lie in one space, where one takes the place of others that nobody needs
any longer. What does not live here: the passes that make kernels of a module
(`axir.passes.fuse.fuse_whole_programs`, `fuse_islands`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from iree.compiler import ir

from axir.dialect.core.annotations import HostArray
from axir.dialect.core.attributes import dense_to_numpy
from axir.dialect.core.types import numpy_dtype
from axir.passes.legalize.host_functions import host_function
from axir.runtime.native.kernel_program import (
    ARGUMENT,
    CONSTANT,
    COPY,
    HOST_CALL,
    RESULT,
    KernelProgram,
    Origin,
    Place,
    Step,
)

_KERNEL = "flow.dispatch"
_CONSTANT = "stablehlo.constant"
# What gives the same bytes in the same order.
_ALIASES = (
    "stablehlo.optimization_barrier",
    "util.optimization_barrier",
    "flow.tensor.transfer",
    "stablehlo.reshape",
    "stablehlo.bitcast_convert",
)
_IGNORED = (_KERNEL, _CONSTANT, "func.return", *_ALIASES)
_ALIGNMENT = 64


@dataclass(frozen=True)
class KernelSource:
    """A module that is kernels only, read.

    Attributes:
        kernels: The functions of each kernel, and those it calls; none if nothing is computed.
        program: The program, without machine code.
    """

    kernels: Mapping[str, tuple[str, ...]]
    program: KernelProgram

    @property
    def text(self) -> bytes:
        """All functions."""
        return self.text_of(self.kernels)

    def text_of(self, names: Iterable[str]) -> bytes:
        """Returns the functions of some kernels, each once: several may call one."""
        return "\n".join(dict.fromkeys(x for name in names for x in self.kernels[name])).encode()


def read_kernels(module: ir.Module, most: int | None = None) -> KernelSource | str:
    """Reads a module whose only public function calls kernels, and functions of the host.

    Returns why it is none, if it is none.

    Nothing is wrong with a module that is more than kernels: IREE compiles it.

    Args:
        module: The module.
        most: How many kernels, of one workgroup each, there may be.
    """
    operations = list(_operations(module.operation))
    functions = [x for x in operations if x.name == "func.func" and _is_public(x)]
    if len(functions) != 1 or len(functions[0].regions[0].blocks) != 1:
        return "it has several functions, or branches"
    body = list(_operations(functions[0]))
    may_call = most is None
    kernels = [x for x in body if _is_step(x)]
    others = sorted(
        {x.name for x in body if x.name not in _IGNORED and not (may_call and _is_step(x))}
    )
    if others:
        return f"it is {len(kernels)} kernels and {', '.join(others)}"
    executables = {_symbol(x): x for x in operations if x.name == "stream.executable"}
    if most is not None:
        if len(kernels) > most:
            return f"it is {len(kernels)} kernels"
        if any(_workgroups(x) > 1 for x in executables.values()):
            return "its kernel runs in several workgroups"
    reader = _Reader(executables)
    return reader.read(kernels, body[-1])


class _Reader:
    def __init__(self, executables: dict[str, ir.Operation]):
        self._executables = executables
        self._arguments: dict[int, None] = {}
        self._constants: dict[ir.Operation, int] = {}
        self._returned: dict[ir.Value, int] = {}
        # Where results of kernels are that nobody returns: as a byte of the space.
        self._spaces: dict[ir.Value, tuple[int, int]] = {}
        self._free: list[tuple[int, int]] = []
        self._end = 0
        self._last_uses: dict[ir.Value, int] = {}

    def read(self, kernels: Sequence[ir.Operation], returned: ir.Operation) -> KernelSource | str:
        for value in map(_source, returned.operands):
            if _is_result(value):
                self._returned.setdefault(value, len(self._returned))
            elif not isinstance(value, ir.BlockArgument):
                self._constants.setdefault(value.owner.operation, len(self._constants))
        for number, kernel in enumerate(kernels):
            for value in map(_source, kernel.operands):
                self._last_uses[value] = number
                if isinstance(value, ir.BlockArgument):
                    self._arguments[value.arg_number] = None
                elif not _is_result(value):
                    owner = value.owner.operation
                    self._constants.setdefault(owner, len(self._constants))
        # In their order: calls give those of the user first, and what the function captures last.
        self._arguments = dict.fromkeys(sorted(self._arguments))
        steps: list[Step] = []
        for number, kernel in enumerate(kernels):
            steps += self._steps(number, kernel)
        returns = tuple(map(self._origin, map(_source, returned.operands)))
        program = KernelProgram(
            (),
            tuple(self._arguments),
            tuple(map(_written_constant, self._constants)),
            tuple(_type_of(x.type) for x in self._returned),
            self._end,
            returns,
            tuple(steps),
        )
        used = dict.fromkeys(step[0] for step in steps if step[0] not in (COPY, HOST_CALL))
        return KernelSource({x: tuple(_texts(self._executables[x])) for x in used}, program)

    def _steps(self, number: int, kernel: ir.Operation) -> Iterator[Step]:
        """Yields what runs for a kernel: copies of what it overwrites, and the kernel."""
        operands = list(map(_source, kernel.operands))
        ties = _ties_of(kernel)
        places = [self._place(x) for x in operands]
        made: list[Place] = []
        for result, tie in zip(kernel.results, ties, strict=True):
            if tie >= 0 and self._may_overwrite(operands, tie, result, number):
                # In the place of the operand, which is nobody else's from now on.
                self._spaces[result] = self._spaces.pop(operands[tie])
                continue
            place = self._make(result)
            if tie < 0:
                made.append(place)
            else:
                yield COPY, _bytes(result.type), (place, places[tie])
                places[tie] = place
        number_of_host = host_function(kernel)
        if number_of_host is not None:
            yield HOST_CALL, number_of_host, (*places, *made)
        else:
            name = _executable_of(kernel)
            yield name, _workgroups(self._executables[name]), (*places, *made)
        for value in {*operands, *kernel.results}:
            if value in self._spaces and self._last_uses.get(value, number) <= number:
                self._give_back(*self._spaces.pop(value))

    def _may_overwrite(
        self, operands: Sequence[ir.Value], tie: int, result: ir.Value, number: int
    ) -> bool:
        operand = operands[tie]
        return (
            operand in self._spaces
            and result not in self._returned
            and self._last_uses[operand] == number
            and operands.count(operand) == 1
        )

    def _make(self, result: ir.Value) -> Place:
        """Finds memory for what a kernel writes."""
        if result not in self._returned:
            size = -(-_bytes(result.type) // _ALIGNMENT) * _ALIGNMENT
            self._spaces[result] = self._take(size), size
        return self._place(result)

    def _take(self, size: int) -> int:
        """Returns where so many bytes are free: the smallest place, or the end."""
        fitting = [x for x in self._free if x[1] >= size]
        if not fitting:
            start, self._end = self._end, self._end + size
            return start
        start, length = min(fitting, key=lambda x: x[1])
        self._free.remove((start, length))
        if length > size:
            self._free.append((start + size, length - size))
        return start

    def _give_back(self, start: int, size: int) -> None:
        """Makes a place free, joined with those beside it."""
        for other in [x for x in self._free if x[0] + x[1] == start or start + size == x[0]]:
            self._free.remove(other)
            start, size = min(start, other[0]), size + other[1]
        self._free.append((start, size))

    def _place(self, value: ir.Value) -> Place:
        kinds = len(self._arguments), len(self._constants), len(self._returned)
        if value in self._spaces:
            return sum(kinds), self._spaces[value][0]
        if value in self._returned:
            return kinds[0] + kinds[1] + self._returned[value], 0
        if isinstance(value, ir.BlockArgument):
            return list(self._arguments).index(value.arg_number), 0
        return kinds[0] + self._constants[value.owner.operation], 0

    def _origin(self, value: ir.Value) -> Origin:
        if isinstance(value, ir.BlockArgument):
            return ARGUMENT, value.arg_number
        if value in self._returned:
            return RESULT, self._returned[value]
        return CONSTANT, self._constants[value.owner.operation]


def _source(value: ir.Value) -> ir.Value:
    """Returns the array that a value is read from."""
    while not isinstance(value, ir.BlockArgument):
        owner = value.owner.operation
        if owner.name not in _ALIASES:
            break
        value = owner.operands[ir.OpResult(value).result_number]
    return value


def _is_result(value: ir.Value) -> bool:
    return not isinstance(value, ir.BlockArgument) and _is_step(value.owner.operation)


def _is_step(operation: ir.Operation) -> bool:
    return operation.name == _KERNEL or host_function(operation) is not None


def _ties_of(step: ir.Operation) -> list[int]:
    """Returns for each result of a step in which operand's place it is, -1 for none."""
    if step.name != _KERNEL:
        return [-1] * len(step.results)
    return [ir.IntegerAttr(x).value for x in ir.ArrayAttr(step.attributes["tied_operands"])]


def _is_public(function: ir.Operation) -> bool:
    return "sym_visibility" not in function.attributes


def _symbol(operation: ir.Operation) -> str:
    return ir.StringAttr(operation.attributes["sym_name"]).value


def _executable_of(kernel: ir.Operation) -> str:
    [entry] = ir.ArrayAttr(kernel.attributes["entry_points"])
    return str(entry).partition("::")[0].removeprefix("@")


def _workgroups(executable: ir.Operation) -> int:
    export = next(_operations(executable))
    *counts, _ = _operations(export)
    return math.prod(ir.IntegerAttr(x.attributes["value"]).value for x in counts)


def _operations(parent: ir.Operation) -> Iterator[ir.Operation]:
    return (x.operation for x in parent.regions[0].blocks[0].operations)


def _texts(executable: ir.Operation) -> Iterator[str]:
    """Yields the functions of an executable, without the lines of the user's program."""
    inner = next(x for x in _operations(executable) if x.name == "builtin.module")
    for function in _operations(inner):
        yield function.get_asm(use_local_scope=True, assume_verified=True)


def _type_of(kind: ir.Type) -> tuple[str, tuple[int, ...]]:
    return str(numpy_dtype(kind.element_type)), tuple(kind.shape)


def _bytes(kind: ir.Type) -> int:
    return math.prod(kind.shape) * numpy_dtype(kind.element_type).itemsize


def _written_constant(constant: ir.Operation) -> tuple[str, tuple[int, ...], bytes]:
    dense = ir.DenseElementsAttr(constant.attributes["value"])
    host: HostArray = np.asarray(dense_to_numpy(dense), order="C")
    return str(host.dtype), host.shape, host.tobytes()

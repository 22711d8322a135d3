"""Reads the functions of a program: the operations of the stream dialect as steps.

Time points order the asynchronous work of devices. Here each step is done before the next one
begins, so time points are left out, and an operation that waits for one is replaced by its operand.
Elsewhere: the module around the functions (`module_reader.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from iree.compiler import ir

from axir.dialect.core.context import describe_location
from axir.dialect.program.function_rules import HOST
from axir.runtime.cpp.program import host_program as host
from axir.runtime.cpp.program.host_program import targets_of
from axir.runtime.errors import CppEmissionError

from .constants import UnknownConstantError, constant_bytes
from .kernel_table import KernelTable

_CALLBACK = re.compile(rf"{HOST}\.callback_(\d+)")
# Operations that only time, check or describe; the checks of arguments are the emitter's.
_IGNORED = frozenset(
    (
        "hal.buffer_view.assert",
        "hal.element_type",
        "hal.encoding_type",
        "stream.cmd.discard",
        "stream.cmd.flush",
        "stream.cmd.invalidate",
        "stream.timepoint.barrier",
        "stream.timepoint.immediate",
        "stream.timepoint.join",
        "stream.yield",
    )
)
_INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_FLOAT_PREDICATES = (
    *("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord"),
    *("ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"),
)
_IN_ORDER = ("stream.cmd.concurrent", "stream.cmd.serial")


def kind_of(type_: ir.Type) -> str | None:
    """Returns the kind of values of a type; None if such values are left out."""
    text = str(type_)
    if text.startswith("!stream.resource"):
        return host.MEMORY
    if text == "!hal.buffer_view":
        return host.ARRAY
    return text if text in host.SCALARS else None


def user_line(operation: ir.Operation) -> str | None:
    """Returns the line that an operation comes from, `file:line`, if it is known."""
    found = re.search(r'"([^"]+)":(\d+):\d+', str(operation.location))
    return f"{found[1]}:{found[2]}" if found else describe_location(operation.location)


class FunctionReader:
    """Reads one function.

    Args:
        kernels: The kernels of the module, by the symbols that dispatches name.
        globals_: Kinds of the values that the program keeps, by name.
        constants: Collects the embedded constants.
    """

    def __init__(
        self,
        kernels: KernelTable,
        globals_: Mapping[str, str],
        constants: list[bytes],
    ):
        self._kernels = kernels
        self._globals = globals_
        self._constants = constants
        self._values: dict[ir.Value, host.Operand] = {}
        self._buffers: dict[ir.Value, int] = {}
        self._block = host.Block()
        self._where: str | None = None

    def read(self, operation: ir.Operation, name: str) -> host.HostFunction:
        """Reads a function with all blocks that can be reached."""
        region = operation.regions[0]
        mlir_blocks = _ordered(region.blocks[0])
        blocks: list[host.Block] = []
        for index, mlir_block in enumerate(mlir_blocks):
            arguments = [self._define(a) for a in mlir_block.arguments]
            blocks.append(host.Block(() if index == 0 else tuple(filter(None, arguments))))
        first = tuple(self._memory(a) for a in mlir_blocks[0].arguments)
        numbers = {block: index for index, block in enumerate(mlir_blocks)}
        for block, mlir_block in zip(blocks, mlir_blocks, strict=True):
            self._block = block
            for inner in mlir_block.operations:
                self._read(inner.operation, numbers)
        return host.HostFunction(name, first, _reachable(blocks))

    # Values --------------------------------------------------------------------------------------

    def _define(self, value: ir.Value) -> host.Value | None:
        kind = kind_of(value.type)
        if kind is None:
            return None
        result = self._values[value] = host.Value(kind)
        return result

    def _result(self, operation: ir.Operation, index: int = 0) -> host.Value:
        result = self._define(operation.results[index])
        return result if result is not None else self._refuse(operation)

    def _operand(self, value: ir.Value) -> host.Operand:
        return self._values[value]

    def _memory(self, value: ir.Value) -> host.Value:
        found = self._values[value]
        assert isinstance(found, host.Value)
        return found

    def _known(self, values: Sequence[ir.Value]) -> tuple[host.Operand, ...]:
        """Returns the operands of a jump, without the values that are left out."""
        return tuple(self._operand(v) for v in values if kind_of(v.type) is not None)

    def _span(self, memory: ir.Value, offset: ir.Value, length: ir.Value) -> host.Span:
        return host.Span(self._memory(memory), self._operand(offset), self._operand(length))

    # Operations ----------------------------------------------------------------------------------

    def _read(self, operation: ir.Operation, numbers: Mapping[ir.Block, int]) -> None:
        name = operation.name
        if name in _IGNORED:
            return
        self._where = user_line(operation)
        if name in ("util.return", "cf.br", "cf.cond_br"):
            self._block.end = self._end(operation, numbers)
        elif name == "stream.cmd.execute":
            self._read_execute(operation)
        elif name in _IN_ORDER:
            self._read_body(operation)
        elif name in _READERS:
            _READERS[name](self, operation, list(operation.operands))
        elif name.startswith(("arith.", "math.")):
            self._read_computation(operation)
        else:
            self._refuse(operation)

    def _add(self, step: host.Step) -> None:
        self._block.steps.append((step, self._where))

    def _refuse(self, operation: ir.Operation) -> NoReturn:
        raise CppEmissionError(
            f"{operation.name} cannot be written as C++.",
            "Change the function where it makes this operation, or run the program with IREE's "
            "runtime: `axir compile` without `--emit cpp` writes a .vmfb.",
            where=user_line(operation),
        )

    def _end(self, operation: ir.Operation, numbers: Mapping[ir.Block, int]) -> host.End:
        operands = list(operation.operands)
        if operation.name == "util.return":
            return host.Return(self._known(operands))
        blocks = list(operation.successors)
        if operation.name == "cf.br":
            return host.Jump(host.Target(numbers[blocks[0]], self._known(operands)))
        middle = 1 + len(blocks[0].arguments)
        condition = self._operand(operands[0])
        then = host.Target(numbers[blocks[0]], self._known(operands[1:middle]))
        otherwise = host.Target(numbers[blocks[1]], self._known(operands[middle:]))
        if isinstance(condition, host.Constant):
            return host.Jump(then if condition.value else otherwise)
        return host.Branch(condition, then, otherwise)

    def _read_execute(self, operation: ir.Operation) -> None:
        for argument, value in zip(
            operation.regions[0].blocks[0].arguments, operation.operands, strict=False
        ):
            self._values[argument] = self._values[value]
        self._read_body(operation)

    def _read_body(self, operation: ir.Operation) -> None:
        for inner in operation.regions[0].blocks[0].operations:
            self._read(inner.operation, {})

    def _read_computation(self, operation: ir.Operation) -> None:
        name = operation.name
        if name == "arith.constant":
            self._values[operation.results[0]] = _constant(operation)
            return
        operands = self._known(operation.operands)
        if name == "arith.cmpi":
            name += f" {_INTEGER_PREDICATES[_integer(operation, 'predicate')]}"
        elif name == "arith.cmpf":
            name += f" {_FLOAT_PREDICATES[_integer(operation, 'predicate')]}"
        if len(operation.results) != 1 or len(operands) != len(operation.operands):
            self._refuse(operation)
        self._add(host.Compute(self._result(operation), name, operands))

    def _read_alias(self, operation: ir.Operation, operands: list[ir.Value]) -> None:
        """Aliases the results to the leading operands."""
        for result, value in zip(operation.results, operands, strict=False):
            if kind_of(result.type) is not None:
                self._values[result] = self._values[value]

    def _read_import(self, operation: ir.Operation, operands: list[ir.Value]) -> None:
        size = self._operand(operands[-1])
        self._add(host.Import(self._result(operation), self._memory(operands[0]), size))

    def _read_export(self, operation: ir.Operation, operands: list[ir.Value]) -> None:
        self._add(host.Export(self._result(operation), self._memory(operands[0])))

    def _read_allocation(self, operation: ir.Operation, operands: list[ir.Value]) -> None:
        self._add(host.Allocate(self._result(operation), self._operand(operands[0])))

    def _read_release(self, operation: ir.Operation, operands: list[ir.Value]) -> None:
        self._add(host.Release(self._memory(operands[0])))

    def _read_part(self, operation: ir.Operation, operands: list[ir.Value]) -> None:
        memory, offset = self._memory(operands[0]), self._operand(operands[2])
        self._add(host.Part(self._result(operation), memory, offset))

    def _read_dispatch(self, operation: ir.Operation, operands: list[ir.Value]) -> None:
        sizes = list(ir.DenseI32ArrayAttr(operation.attributes["operandSegmentSizes"]))
        parts, start = [], 0
        for size in sizes:
            parts.append(operands[start : start + size])
            start += size
        workload, constants, memory, _, offsets, lengths = parts
        targets = ir.ArrayAttr(operation.attributes["entry_points"])
        spans = tuple(map(self._span, memory, offsets, lengths))
        kernel = self._kernels.kernel(str(targets[0]), workload)
        self._add(host.Dispatch(kernel, self._known(constants), spans))

    def _read_copy(self, operation: ir.Operation, operands: list[ir.Value]) -> None:
        source, _, source_offset, target, _, target_offset, length = operands
        self._add(
            host.Copy(
                self._span(source, source_offset, length),
                self._span(target, target_offset, length),
            )
        )

    def _read_fill(self, operation: ir.Operation, operands: list[ir.Value]) -> None:
        target, _, offset, length, value = operands
        self._add(host.Fill(self._span(target, offset, length), self._operand(value)))

    def _read_load(self, operation: ir.Operation, operands: list[ir.Value]) -> None:
        memory, offset = self._memory(operands[0]), self._operand(operands[2])
        self._add(host.Load(self._result(operation), memory, offset))

    def _read_store(self, operation: ir.Operation, operands: list[ir.Value]) -> None:
        memory, offset = self._memory(operands[0]), self._operand(operands[2])
        self._add(host.Store(self._operand(operands[3]), memory, offset))

    def _read_global_load(self, operation: ir.Operation, operands: list[ir.Value]) -> None:
        name = ir.FlatSymbolRefAttr(operation.attributes["global"]).value
        self._add(host.LoadGlobal(self._result(operation), name))

    def _read_global_store(self, operation: ir.Operation, operands: list[ir.Value]) -> None:
        name = ir.FlatSymbolRefAttr(operation.attributes["global"]).value
        self._add(host.StoreGlobal(name, self._operand(operands[0])))

    def _read_call(self, operation: ir.Operation, operands: list[ir.Value]) -> None:
        callee = _CALLBACK.fullmatch(ir.FlatSymbolRefAttr(operation.attributes["callee"]).value)
        if callee is None:
            self._refuse(operation)
        values = tuple(map(self._memory, operands))
        results = tuple(self._result(operation, n) for n in range(len(operation.results)))
        self._add(host.Call(int(callee[1]), values, results))

    def _read_buffer(self, operation: ir.Operation, operands: list[ir.Value]) -> None:
        try:
            content = constant_bytes(str(operation.attributes["value"]))
        except UnknownConstantError as error:
            raise CppEmissionError(
                f"A constant cannot be read: {error}.",
                "Pass the array as an argument of the function.",
                where=user_line(operation),
            ) from error
        if content not in self._constants:
            self._constants.append(content)
        self._buffers[operation.results[0]] = self._constants.index(content)

    def _read_map(self, operation: ir.Operation, operands: list[ir.Value]) -> None:
        """Constants are mapped, always: the way that copies them is never gone."""
        self._values[operation.results[0]] = host.Constant("i1", True)
        whole = host.Value(host.MEMORY)
        self._add(host.Embedded(whole, self._buffers[operands[0]]))
        offset = self._operand(operands[1])
        self._add(host.Part(self._result(operation, 1), whole, offset))

    def _read_unreached(self, operation: ir.Operation, operands: list[ir.Value]) -> None:
        """Stands where constants could not be mapped."""


_READERS: dict[str, Callable[[FunctionReader, ir.Operation, list[ir.Value]], None]] = {
    "stream.cmd.copy": FunctionReader._read_copy,
    "stream.cmd.dispatch": FunctionReader._read_dispatch,
    "stream.cmd.fill": FunctionReader._read_fill,
    "stream.file.constant": FunctionReader._read_unreached,
    "stream.file.read": FunctionReader._read_unreached,
    "stream.resource.alloc": FunctionReader._read_allocation,
    "stream.resource.alloca": FunctionReader._read_allocation,
    "stream.resource.dealloca": FunctionReader._read_release,
    "stream.resource.load": FunctionReader._read_load,
    "stream.resource.store": FunctionReader._read_store,
    "stream.resource.subview": FunctionReader._read_part,
    "stream.resource.try_map": FunctionReader._read_map,
    "stream.tensor.export": FunctionReader._read_export,
    "stream.tensor.import": FunctionReader._read_import,
    "stream.timepoint.await": FunctionReader._read_alias,
    "util.buffer.constant": FunctionReader._read_buffer,
    "util.call": FunctionReader._read_call,
    "util.global.load": FunctionReader._read_global_load,
    "util.global.store": FunctionReader._read_global_store,
    "util.optimization_barrier": FunctionReader._read_alias,
}


def _integer(operation: ir.Operation, attribute: str) -> int:
    return ir.IntegerAttr(operation.attributes[attribute]).value


def _constant(operation: ir.Operation) -> host.Constant:
    attribute = operation.attributes["value"]
    kind = str(operation.results[0].type)
    if isinstance(attribute, ir.FloatAttr):
        return host.Constant(kind, attribute.value)
    if isinstance(attribute, ir.BoolAttr):
        return host.Constant(kind, bool(attribute.value))
    return host.Constant(kind, ir.IntegerAttr(attribute).value)


def _ordered(entry: ir.Block) -> list[ir.Block]:
    """Returns the blocks in an order in which each comes after its dominators."""
    finished: list[ir.Block] = []
    seen = {entry}
    path = [(entry, list(_last(entry).successors))]
    while path:
        block, successors = path[-1]
        if not successors:
            finished.append(block)
            path.pop()
            continue
        # The last one first: the order of the blocks is then the order of the branches.
        successor = successors.pop()
        if successor not in seen:
            seen.add(successor)
            path.append((successor, list(_last(successor).successors)))
    return finished[::-1]


def _last(block: ir.Block) -> ir.Operation:
    return block.operations[len(block.operations) - 1].operation


def _reachable(blocks: list[host.Block]) -> tuple[host.Block, ...]:
    """Returns the blocks that can be reached, renumbered."""
    reached: list[int] = []
    pending = [0]
    while pending:
        number = pending.pop()
        if number not in reached:
            reached.append(number)
            pending += [t.block for t in targets_of(blocks[number].end)]
    order = sorted(reached)
    numbers = {old: new for new, old in enumerate(order)}
    for number in order:
        blocks[number].end = _renumbered(blocks[number].end, numbers)
    return tuple(blocks[number] for number in order)


def _renumbered(end: host.End, numbers: Mapping[int, int]) -> host.End:
    def new(target: host.Target) -> host.Target:
        return host.Target(numbers[target.block], target.operands)

    if isinstance(end, host.Branch):
        return host.Branch(end.condition, new(end.then), new(end.otherwise))
    return host.Jump(new(end.target)) if isinstance(end, host.Jump) else end

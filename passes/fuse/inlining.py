"""Kernels in a kernel: the code of a kernel that a loop runs becomes part of the loop's kernel.

Small matrices are factored and solved by separate kernels (`dialect/ops/linalg/kernels.py`), which
are already dispatches of executables when loops are fused.
"""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir

from axir.dialect.builders.scalars import index, integer, signless
from axir.passes.legalize.regions import TRANSFORM, WORKGROUPS, operations_of
from axir.passes.legalize.rewriting import operations_in_order

from .elementwise import Code
from .emitter import Emitter, Rule
from .values import Computed, Number, Stored, Value


def executable_of(created: ir.Operation) -> str:
    """Returns the name of the executable that a dispatch runs."""
    [entry] = ir.ArrayAttr(created.attributes["entry_points"])
    return str(entry).partition("::")[0].removeprefix("@")


def erase_unused(module: ir.Module) -> None:
    """Erases the executables that no dispatch runs any longer."""
    used = {executable_of(x) for x in operations_in_order(module.operation, ("flow.dispatch",))}
    for name, executable in Code(module).executables.items():
        if name not in used:
            executable.erase()


def can_inline(created: ir.Operation, code: Code) -> bool:
    """Tells whether a dispatch runs one workgroup of a kernel, with separate memory for results.

    A kernel with several functions is not inlined. A Fourier transform becomes code for its length.
    """
    if TRANSFORM in created.attributes:
        return bool(ir.IntegerAttr(created.attributes[WORKGROUPS]).value == 1)
    executable = code.executables.get(executable_of(created))
    if executable is None or len(_functions(executable)) > 1:
        return False
    tied = ir.ArrayAttr(created.attributes["tied_operands"])
    export, _ = _parts(executable)
    *constants, _ = operations_of(export)[0]
    values = [ir.IntegerAttr(x.attributes["value"]).value for x in constants]
    return set(values) == {1} and all(ir.IntegerAttr(x).value == -1 for x in tied)


def _parts(executable: ir.Operation) -> tuple[ir.Operation, ir.Operation]:
    """Returns the export and the function of an executable."""
    export = operations_of(executable)[0][0]
    return export, _functions(executable)[0]


def _functions(executable: ir.Operation) -> list[ir.Operation]:
    module = operations_of(executable)[0][1]
    return operations_of(module)[0]


def _dispatch(emitter: Emitter, created: ir.Operation, operands: list[Value]) -> Sequence[Value]:
    inputs = [_in_memory(emitter, x) for x in operands]
    results = [_result(emitter, x) for x in created.results]
    if TRANSFORM in created.attributes:
        from axir.passes.legalize.fft.rows import transform_of  # late: few programs need it

        transform = transform_of(ir.StringAttr(created.attributes[TRANSFORM]).value)
        transform.write([x.memory for x in inputs], [x.memory for x in results[:-1]])
        return results
    _, function = _parts(emitter.code.executables[executable_of(created)])
    arguments = list(function.regions[0].blocks[0].arguments)
    bound = dict(zip(arguments, [*inputs, *results], strict=True))
    # Each part of these workspaces gets separate memory.
    spaces = [x for made, x in zip(created.results, results, strict=True) if _is_space(made)]
    known: dict[ir.Value, ir.Value] = {}
    for operation in operations_of(function)[0][:-1]:
        name = operation.name
        if name == "stream.binding.subspan":
            memory = bound[operation.operands[0]].memory.value
            kind = operation.results[0].type
            if memory.type != kind:
                assert bound[operation.operands[0]] in spaces
                memory = emitter.allocate(kind.shape, kind.element_type).memory.value
            known[operation.results[0]] = memory
        elif name == "stream.dispatch.workgroup.id":
            known[operation.results[0]] = index(0).value
        elif name == "memref.alloca":
            kind = operation.results[0].type
            own = emitter.allocate(kind.shape, kind.element_type)
            known[operation.results[0]] = own.memory.value
        else:
            known.update(zip(operation.results, _copied(operation, known).results, strict=True))
    return results


def _result(emitter: Emitter, result: ir.Value) -> Stored:
    """Returns memory for a result; a workspace, which has no readers, gets one byte."""
    shape = [1] if _is_space(result) else list(result.type.shape)
    return emitter.allocate(shape, signless(result.type.element_type))


def _is_space(result: ir.Value) -> bool:
    return signless(result.type.element_type) == integer(8) and not any(result.uses)


def _in_memory(emitter: Emitter, value: Value) -> Stored:
    if isinstance(value, Number):
        result = emitter.allocate(value.shape, value.element)
        result.memory[(0,) * len(value.shape)] = value.scalar
        return result
    stored = emitter.stored(value) if isinstance(value, Computed) else value
    assert isinstance(stored, Stored)
    return stored


def _copied(operation: ir.Operation, known: dict[ir.Value, ir.Value]) -> ir.Operation:
    copy = operation.clone()

    def rename(inner: ir.Operation) -> ir.WalkResult:
        for number, operand in enumerate(inner.operands):
            if operand in known:
                inner.operands[number] = known[operand]
        return ir.WalkResult.ADVANCE

    copy.operation.walk(rename, ir.WalkOrder.PRE_ORDER)
    return copy


RULES: dict[str, Rule] = {"flow.dispatch": _dispatch}

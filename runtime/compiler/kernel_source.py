"""`read_kernel`: a module that is one kernel becomes plain data and the text of that kernel.

What does not live here: the passes that make a kernel of a module
(`passes/fuse/fuse_whole_programs.py`), and who makes machine code of it (`invocation/native.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from iree.compiler import ir

from axir.dialect.core.annotations import HostArray
from axir.dialect.core.attributes import dense_to_numpy
from axir.dialect.core.types import numpy_dtype
from axir.runtime.native.kernel_program import ARGUMENT, CONSTANT, RESULT, KernelProgram, Origin

_KERNEL = "flow.dispatch"
# What gives the same bytes in the same order.
_SAME = ("stablehlo.optimization_barrier", "stablehlo.reshape", "stablehlo.bitcast_convert")
_IGNORED = (_KERNEL, "stablehlo.constant", "func.return", *_SAME)


@dataclass(frozen=True)
class KernelSource:
    """A module that is one kernel, read.

    Attributes:
        text: The kernel's function and those it calls; empty if nothing is computed.
        program: The program, without machine code.
    """

    text: bytes
    program: KernelProgram


def read_kernel(module: ir.Module) -> KernelSource | str:
    """Reads a module whose only public function calls one kernel; returns why not, if it does not.

    Nothing is wrong with a module that is more than a kernel: IREE compiles it.
    """
    operations = list(_operations(module.operation))
    functions = [x for x in operations if x.name == "func.func" and _is_public(x)]
    if len(functions) != 1:
        return f"it has {len(functions)} functions"
    body = list(_operations(functions[0]))
    kernels = [x for x in body if x.name == _KERNEL]
    others = sorted({x.name for x in body if x.name not in _IGNORED})
    if others or len(kernels) > 1:
        return f"it is {len(kernels)} kernels and {', '.join(others) or 'nothing else'}"
    executables = [x for x in operations if x.name == "stream.executable"]
    if any(map(_has_workgroups, executables)):
        return "its kernel runs in several workgroups"
    reader = _Reader(kernels[0] if kernels else None)
    program = reader.program(body[-1])
    text = b""
    if kernels:
        text = "\n".join(_kernel_text(executables[0])).encode()
    return KernelSource(text, program)


class _Reader:
    def __init__(self, kernel: ir.Operation | None):
        self._kernel = kernel
        self._constants: dict[ir.Operation, int] = {}

    def program(self, returned: ir.Operation) -> KernelProgram:
        kernel = self._kernel
        bindings: list[Origin] = []
        results: list[ir.Value] = []
        if kernel is not None:
            results = list(kernel.results)
            bindings = [self._origin(x) for x in kernel.operands]
            bindings += [(RESULT, number) for number in range(len(results))]
        returns = tuple(self._origin(x) for x in returned.operands)
        return KernelProgram(
            b"",
            tuple(bindings),
            tuple(map(_written_constant, self._constants)),
            tuple(_type_of(x.type) for x in results),
            returns,
        )

    def _origin(self, value: ir.Value) -> Origin:
        while True:
            if isinstance(value, ir.BlockArgument):
                return ARGUMENT, value.arg_number
            number = ir.OpResult(value).result_number
            owner = value.owner.operation
            if owner.name == _KERNEL:
                return RESULT, number
            if owner.name == "stablehlo.constant":
                return CONSTANT, self._constants.setdefault(owner, len(self._constants))
            value = owner.operands[number]


def _is_public(function: ir.Operation) -> bool:
    return "sym_visibility" not in function.attributes


def _has_workgroups(executable: ir.Operation) -> bool:
    export = next(_operations(executable))
    *counts, _ = _operations(export)
    return any(ir.IntegerAttr(x.attributes["value"]).value != 1 for x in counts)


def _operations(parent: ir.Operation) -> Iterator[ir.Operation]:
    return (x.operation for x in parent.regions[0].blocks[0].operations)


def _kernel_text(executable: ir.Operation) -> Iterator[str]:
    """Yields the functions of an executable, without the lines of the user's program."""
    inner = next(x for x in _operations(executable) if x.name == "builtin.module")
    for function in _operations(inner):
        yield function.get_asm(use_local_scope=True, assume_verified=True)


def _type_of(kind: ir.Type) -> tuple[str, tuple[int, ...]]:
    return str(numpy_dtype(kind.element_type)), tuple(kind.shape)


def _written_constant(constant: ir.Operation) -> tuple[str, tuple[int, ...], bytes]:
    dense = ir.DenseElementsAttr(constant.attributes["value"])
    host: HostArray = np.asarray(dense_to_numpy(dense), order="C")
    return str(host.dtype), host.shape, host.tobytes()

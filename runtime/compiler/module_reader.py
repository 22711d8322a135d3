"""Reads a module that consists of kernels: which kernel runs on which memory, in which order.

Elsewhere: the passes that make kernels from a module (`axir.passes.fuse.fuse_programs`,
`fuse_islands`), and the steps (`step_writer.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from iree.compiler import ir

from axir.dialect.core.annotations import HostArray
from axir.dialect.core.attributes import dense_to_numpy
from axir.dialect.core.types import numpy_dtype
from axir.passes.legalize.regions import KERNEL, WORKGROUPS, operations_of
from axir.passes.legalize.rewriting import operations_in_order
from axir.runtime.native.kernel_program import (
    ARGUMENT,
    CONSTANT,
    KINDS,
    RESULT,
    KernelProgram,
    Origin,
    Place,
)

from .module_structure import (
    ALIASES,
    Structure,
    is_argument,
    is_made,
    is_step,
    operations_of_blocks,
)
from .step_writer import StepWriter, workgroups_of

_CONSTANT = "stablehlo.constant"
_IGNORED = (_CONSTANT, "func.return", "stablehlo.return", *ALIASES)
# The exchange of slots needs the space as its first array, so the space must exist.
_LEAST_SPACE = 64


@dataclass(frozen=True)
class KernelSource:
    """A module that consists of kernels.

    Attributes:
        kernels: The functions of each kernel, and the functions that it calls; empty if nothing is
            computed.
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
    """Reads a module with one public function, which calls kernels and host functions.

    The calls may stand in loops and branches. Returns the reason if the module is not such a one.

    Such a module is not an error: IREE compiles it.

    Args:
        module: The module.
        most: How many kernels, of one workgroup each, there may be, and nothing else.
    """
    operations = list(_operations(module.operation))
    functions = [x for x in operations if x.name == "func.func" and _is_public(x)]
    if len(functions) != 1 or len(functions[0].regions[0].blocks) != 1:
        return "it has several functions, or blocks"
    [body] = operations_of(functions[0])
    steps = [x for x in body if is_step(x)]
    inner = list(body) if most is not None else operations_of_blocks(body)
    others = sorted(
        {
            x.name
            for x in inner
            if x.name not in _IGNORED and not (is_step(x) if most is None else x.name == KERNEL)
        }
    )
    if others:
        return f"it is {len(steps)} kernels and {', '.join(others)}"
    executables = {_symbol(x): x for x in operations if x.name == "stream.executable"}
    workgroups = {name: workgroups_of(x) for name, x in executables.items()}
    if most is not None:
        if len(steps) > most:
            return f"it is {len(steps)} kernels"
        if runs_several_workgroups(module):
            return "its kernel runs in several workgroups"
    program = _read(functions[0], body, workgroups)
    used = dict.fromkeys(name for name, _, _ in program.steps if name not in KINDS)
    return KernelSource({x: tuple(_texts(executables[x])) for x in used}, program)


def runs_several_workgroups(module: ir.Module) -> bool:
    """Tells whether a module has a kernel of several workgroups, or calls a kernel that has several
    in IREE's program.
    """
    found = operations_in_order(module.operation, ("stream.executable", KERNEL))
    return any(
        workgroups_of(x) > 1
        if x.name == "stream.executable"
        else WORKGROUPS in x.attributes and ir.IntegerAttr(x.attributes[WORKGROUPS]).value > 1
        for x in found
    )


def _read(
    function: ir.Operation, body: list[ir.Operation], workgroups: Mapping[str, int]
) -> KernelProgram:
    structure = Structure(function)
    ends = list(map(structure.source, body[-1].operands))
    returned = {x: n for n, x in enumerate(dict.fromkeys(filter(is_made, ends)))}
    constants = dict.fromkeys(_constants_among(ends))
    constants.update(dict.fromkeys(_constants_among(structure.read)))
    # In the order of the call: the user's arguments first, and the function's captured arrays last.
    arguments = sorted({x.arg_number for x in structure.read if is_argument(x)})
    known = {
        x: (arguments.index(x.arg_number), 0)
        for x in function.regions[0].blocks[0].arguments
        if x.arg_number in arguments
    }
    numbers = {x: number for number, x in enumerate(constants)}
    known.update((x, (len(arguments) + number, 0)) for x, number in numbers.items())
    first = len(known)
    places: dict[ir.Value, Place] = {x: (first + number, 0) for x, number in returned.items()}
    writer = StepWriter(structure, known, places, first + len(places), workgroups)
    writer.write(body)

    def origin(value: ir.Value) -> Origin:
        if isinstance(value, ir.BlockArgument):
            return ARGUMENT, value.arg_number
        return (RESULT, returned[value]) if value in returned else (CONSTANT, numbers[value])

    return KernelProgram(
        (),
        tuple(arguments),
        tuple(_written_constant(x.owner.operation) for x in constants),
        tuple(_type_of(x.type) for x in returned),
        max(writer.space.size, _LEAST_SPACE if writer.slots.places else 0),
        tuple(map(origin, ends)),
        tuple(writer.steps),
        slots=tuple(writer.slots.places),
    )


def _constants_among(values: Iterable[ir.Value]) -> Iterator[ir.Value]:
    return (x for x in values if not (isinstance(x, ir.BlockArgument) or is_made(x)))


def _is_public(function: ir.Operation) -> bool:
    return "sym_visibility" not in function.attributes


def _symbol(operation: ir.Operation) -> str:
    return ir.StringAttr(operation.attributes["sym_name"]).value


def _operations(parent: ir.Operation) -> Iterator[ir.Operation]:
    return (x.operation for x in parent.regions[0].blocks[0].operations)


def _texts(executable: ir.Operation) -> Iterator[str]:
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

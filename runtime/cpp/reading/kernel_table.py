"""The kernels of a module, and their numbers of workgroups in a dispatch.

IREE computes the number of a kernel's workgroups from the workload of a dispatch, an extent or two.
Programs of static shapes have constants as workloads, so the number is known for each dispatch.
Elsewhere: dispatches (`function_reader.py`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence

from iree.compiler import ir

from axir.dialect.core.context import describe_location
from axir.runtime.cpp.program.host_program import Kernel
from axir.runtime.errors import CppEmissionError

_CONSTANT = "arith.constant"


class KernelTable:
    """The kernels of a module by the symbols that dispatches name.

    Attributes:
        called: The kernels that were asked for, each once for each number of workgroups.
    """

    def __init__(self) -> None:
        self._exports: dict[str, tuple[ir.Operation, str | None]] = {}
        self._found: dict[tuple[str, tuple[int, int, int]], Kernel] = {}

    @property
    def called(self) -> tuple[Kernel, ...]:
        """The kernels that dispatches run."""
        return tuple(dict.fromkeys(self._found.values()))

    def add(self, symbol: str, export: ir.Operation, where: str | None) -> None:
        """Takes in a kernel.

        Args:
            symbol: The kernel's name in dispatches.
            export: The operation that declares its arguments.
            where: The user's line, if it is known.
        """
        self._exports[symbol] = export, where

    def kernel(self, symbol: str, workload: Sequence[ir.Value]) -> Kernel:
        """Returns the kernel that a dispatch runs.

        Raises:
            CppEmissionError: if the number of workgroups depends on the values of arrays.
        """
        export, where = self._exports[symbol]
        name = ir.StringAttr(export.attributes["sym_name"]).value
        counts = _workgroups(export, [_constant(value) for value in workload])
        if counts is None:
            raise CppEmissionError(
                f"The number of workgroups of the kernel {name} depends on the values of arrays, "
                "which C++ is not written for.",
                "Give the arrays of the function static shapes.",
                where=where or describe_location(export.location),
            )
        depends = _workgroups(export, []) is None
        return self._found.setdefault((symbol, counts), Kernel(name, counts, where, depends))


def _constant(value: ir.Value) -> int | None:
    """Returns the number that an integer constant is."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != _CONSTANT:
        return None
    return ir.IntegerAttr(owner.attributes["value"]).value


def _workgroups(
    export: ir.Operation, workload: Sequence[int | None]
) -> tuple[int, int, int] | None:
    """Computes how often a kernel runs along x, y and z; None if that cannot be told."""
    block = export.regions[0].blocks[0]
    _, *extents = block.arguments  # the first is the device
    numbers: dict[ir.Value, int | None] = dict(zip(extents, workload, strict=False))
    for view in block.operations:
        operation = view.operation
        if operation.name == "hal.return":
            x, y, z = (numbers.get(value) for value in operation.operands)
            return None if x is None or y is None or z is None else (x, y, z)
        numbers[operation.results[0]] = _result(operation, numbers)
    return None


def _result(operation: ir.Operation, numbers: Mapping[ir.Value, int | None]) -> int | None:
    """Evaluates an operation on integers, if its operands are known."""
    name = operation.name
    if name == _CONSTANT:
        return _constant(operation.results[0])
    operands = [numbers.get(value) for value in operation.operands]
    known = [x for x in operands if x is not None]
    if len(known) < len(operands):
        return None
    if name == "arith.select":
        chosen, x, y = known
        return x if chosen else y
    if name == "arith.cmpi":
        name = f"{name} {ir.IntegerAttr(operation.attributes['predicate']).value}"
    compute = _OPERATIONS.get(name)
    return None if compute is None else int(compute(*known))


def _quotient(x: int, y: int) -> int:
    """Returns a quotient rounded towards zero."""
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def _quotient_above(x: int, y: int) -> int:
    """Returns a quotient rounded up."""
    return -(-x // y)


# By MLIR's numbers: eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge. Extents are not negative.
_ORDERED = (operator.lt, operator.le, operator.gt, operator.ge)
_PREDICATES = (operator.eq, operator.ne, *_ORDERED, *_ORDERED)
_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    **{f"arith.cmpi {number}": compare for number, compare in enumerate(_PREDICATES)},
    "arith.addi": operator.add,
    "arith.subi": operator.sub,
    "arith.muli": operator.mul,
    "arith.divsi": _quotient,
    "arith.divui": operator.floordiv,
    "arith.ceildivsi": _quotient_above,
    "arith.ceildivui": _quotient_above,
    "arith.remui": operator.mod,
    "arith.maxsi": max,
    "arith.maxui": max,
    "arith.minsi": min,
    "arith.minui": min,
}

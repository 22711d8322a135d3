"""A kernel while it is built: the shared state of its code, and operations without a result."""

from __future__ import annotations

from typing import cast

from iree.compiler import ir

from axir.dialect.builders.errors import KernelPositionError
from axir.dialect.builders.scalars import Scalar, index
from axir.dialect.core import state as core_state


class Kernel:
    """The kernel that a thread builds.

    Args:
        entry: The block in which its code begins.

    Attributes:
        index_type: The type of positions.
        stack_bytes: Bytes of its private memory on the stack.
        workspace: The binding of its further private memory; None if unused.
        workspace_bytes: Bytes of its further private memory.
        functions: The names of the functions that it calls, with the types of their results, by
            keys that distinguish them.
    """

    __slots__ = (
        "_indices",
        "entry",
        "functions",
        "index_type",
        "stack_bytes",
        "workspace",
        "workspace_bytes",
    )

    def __init__(self, entry: ir.Block):
        self.entry = entry
        self.index_type = ir.IndexType.get()
        self.stack_bytes = 0
        self.workspace: ir.Value | None = None
        self.workspace_bytes = 0
        self.functions: dict[tuple[str | ir.Type, ...], tuple[ir.Attribute, ir.Type]] = {}
        self._indices: dict[int, ir.Value] = {}

    def index(self, number: int) -> ir.Value:
        """Returns a constant index, made once for the whole kernel."""
        found = self._indices.get(number)
        if found is None:
            with ir.InsertionPoint.at_block_begin(self.entry):
                found = self._indices[number] = index(number).value
        return found


class BuildingState(core_state.State):
    """The state of a thread, as this room knows it."""

    kernel: Kernel | None


state = cast("BuildingState", core_state.state)


def index_value(number: Scalar | int) -> ir.Value:
    """Returns an index as an MLIR value.

    Raises:
        KernelPositionError: for a number of another type.
    """
    kernel = state.kernel
    if not isinstance(number, Scalar):
        return index(number).value if kernel is None else kernel.index(number)
    if number.value.type != (ir.IndexType.get() if kernel is None else kernel.index_type):
        raise KernelPositionError(
            f"A position, or an end of a loop, is of type {number.type} and not an index.",
            "Convert it with `to_index`.",
        )
    return number.value


def effect(name: str, *operands: ir.Value) -> None:
    """Builds an operation that has no result."""
    ir.Operation.create(name, operands=operands)

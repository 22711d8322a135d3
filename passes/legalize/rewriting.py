"""The driver of passes that replace single operations."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Iterable, Sequence
from typing import ClassVar

from iree.compiler import ir

from axir.passes.base import Pass

Replacement = ir.Value | Sequence[ir.Value] | None


def find_operations(root: ir.Operation, names: Iterable[str]) -> list[ir.Operation]:
    """All operations of these names below `root`, inner before outer ones.

    A walk costs half a microsecond for each operation; iterating over blocks costs thirty times as
    much.
    """
    wanted = frozenset(names)
    found: list[ir.Operation] = []

    def visit(operation: ir.Operation) -> ir.WalkResult:
        if operation.name in wanted:
            found.append(operation)
        return ir.WalkResult.ADVANCE

    root.walk(visit)
    return found


def replace(operation: ir.Operation, replacement: ir.Value | Sequence[ir.Value]) -> None:
    """Gives the uses of an operation's results to other values and erases it."""
    values = [replacement] if isinstance(replacement, ir.Value) else replacement
    for result, value in zip(operation.results, values, strict=True):
        result.replace_all_uses_with(value)
    operation.erase()


@dataclasses.dataclass(frozen=True)
class RewritePass(Pass):
    """A pass that visits every operation of certain names once.

    What `rewrite` builds is not visited again in the same run.
    """

    operations: ClassVar[tuple[str, ...]]

    @abc.abstractmethod
    def rewrite(self, operation: ir.Operation) -> Replacement:
        """Builds what replaces `operation`, in front of it; None leaves it as it is."""

    def run(self, module: ir.Module) -> None:
        """Rewrites the operations of the module, each once."""
        for operation in find_operations(module.operation, self.operations):
            with ir.InsertionPoint(operation), operation.location:
                replacement = self.rewrite(operation)
            if replacement is not None:
                replace(operation, replacement)

"""The driver of passes that replace single operations."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar, TypeAlias

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.base import Pass

Replacement: TypeAlias = ir.Value | Sequence[ir.Value] | None

ELEMENTWISE = frozenset(("linalg.generic",)) | frozenset(
    f"stablehlo.{name}"
    for name in (
        "abs add and atan2 bitcast_convert broadcast_in_dim cbrt ceil clamp compare complex "
        "convert cosine count_leading_zeros divide exponential exponential_minus_one floor imag "
        "is_finite log log_plus_one logistic maximum minimum multiply negate not or popcnt power "
        "real reduce_precision remainder reshape round_nearest_afz round_nearest_even rsqrt "
        "select shift_left shift_right_arithmetic shift_right_logical sign sine slice sqrt "
        "subtract tan tanh transpose xor"
    ).split()
)
"""The operations that IREE computes element by element, and fuses with each other."""


CLOSED = frozenset(("linalg.generic", "stream.executable"))
"""Operations that hold scalars, and kernels that are written already."""


def find_operations(root: ir.Operation, names: Iterable[str]) -> list[ir.Operation]:
    """Returns all operations of these names below `root`, inner before outer ones.

    Operations without regions come first, in program order; operations with regions follow, in
    reverse order.
    """
    found = operations_in_order(root, names)
    with_regions = [operation for operation in found if len(operation.regions)]
    if not with_regions:
        return found
    return [operation for operation in found if not len(operation.regions)] + with_regions[::-1]


def operations_in_order(root: ir.Operation, names: Iterable[str]) -> list[ir.Operation]:
    """Returns all operations of these names below `root` in program order, outer ones first.

    A walk costs half a microsecond for each operation. `CLOSED` operations are not entered.
    """
    wanted = frozenset(names)
    found: list[ir.Operation] = []

    def visit(operation: ir.Operation) -> ir.WalkResult:
        name = operation.name
        if name in wanted:
            found.append(operation)
        return ir.WalkResult.SKIP if name in CLOSED else ir.WalkResult.ADVANCE

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def defining_operation(value: ir.Value) -> ir.Operation | None:
    """Returns the operation that a value is a result of, or None for an argument of a block."""
    owner: ir.Operation | ir.OpView | ir.Block = value.owner
    return owner.operation if isinstance(owner, (ir.Operation, ir.OpView)) else None


def constant_behind(value: ir.Value) -> ir.Operation | None:
    """Returns the constant that a value is, or repeats; None if it is computed."""
    operation = defining_operation(value)
    while operation is not None and operation.name == "stablehlo.broadcast_in_dim":
        operation = defining_operation(operation.operands[0])
    is_constant = operation is not None and operation.name == "stablehlo.constant"
    return operation if is_constant else None


def values_behind(
    value: ir.Value, sources: Callable[[ir.Value, ir.Operation], Iterable[ir.Value]]
) -> Iterator[tuple[ir.Value, ir.Operation]]:
    """Walks from a value back to its sources, and yields each value once, with its operation.

    Args:
        value: Where to begin; arguments of blocks have no sources.
        sources: Which values to go on with from a result of an operation.
    """
    pending, seen = [value], set[ir.Value]()
    while pending:
        value = pending.pop()
        operation = defining_operation(value)
        if operation is not None and value not in seen:
            seen.add(value)
            yield value, operation
            pending += sources(value, operation)


def innermost_loop_block(operation: ir.Operation) -> ir.Block | None:
    """Returns the condition or body of the innermost loop around an operation that holds it."""
    inner, outer = operation, operation.parent
    while outer is not None and outer.name != "stablehlo.while":
        inner, outer = outer, outer.parent
    return None if outer is None else inner.operation.block


def replace(operation: ir.Operation, replacement: ir.Value | Sequence[ir.Value]) -> None:
    """Replaces an operation's results by other values, and erases it."""
    values = [replacement] if isinstance(replacement, ir.Value) else replacement
    for result, value in zip(operation.results, values, strict=True):
        result.replace_all_uses_with(value)
    operation.erase()


def hidden_truths(count: int) -> list[ir.Value]:
    """Returns true booleans that are opaque to the compiler, and that it cannot merge."""
    truth = hlo.constant(True)
    barrier = ir.Operation.create(
        "util.optimization_barrier", results=[truth.type] * count, operands=[truth] * count
    )
    return list(barrier.results)


def renewed(value: ir.Value) -> ir.Value:
    """Returns the same numbers as a new array, which an operation may overwrite.

    A select copies them, by a boolean that is opaque to the compiler.
    """
    constant = constant_behind(value)
    # A select between zeros and zeros would fold away.
    is_zero = constant is not None and _is_zero(constant)
    return hlo.select(hidden_truths(1)[0], value, hlo.full_like(value, int(is_zero)))


def _is_zero(constant: ir.Operation) -> bool:
    zero = hlo.full_like(constant.results[0], 0).owner.operation
    equal = bool(zero.attributes["value"] == constant.attributes["value"])
    zero.erase()
    return equal


def stored_alone(value: ir.Value) -> ir.Value:
    """Returns a value behind a barrier for one reader: a copy if the value has other readers.

    A barrier's result shares its operand's storage, but IREE ignores this: other readers of the
    operand would find the elements that an operation wrote to the result.
    """
    is_shared = len(list(value.uses)) > 1
    return hlo.optimization_barrier(renewed(value) if is_shared else value)[0]


@dataclasses.dataclass(frozen=True)
class RewritePass(Pass):
    """A pass that visits every operation of certain names once.

    Operations that `rewrite` builds are not visited in the same run.
    """

    operations: ClassVar[tuple[str, ...]]

    @abc.abstractmethod
    def rewrite(self, operation: ir.Operation) -> Replacement:
        """Builds the replacement of `operation` in front of it; None leaves it unchanged."""

    def run(self, module: ir.Module) -> None:
        """Rewrites the operations of the module, each once."""
        for operation in find_operations(module.operation, self.operations):
            with ir.InsertionPoint(operation), operation.location:
                replacement = self.rewrite(operation)
            if replacement is not None:
                replace(operation, replacement)

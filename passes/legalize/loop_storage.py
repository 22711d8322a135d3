"""`part-loop-storage`: values that a loop changes do not begin in the same storage."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from iree.compiler import ir

from axir.dialect import stablehlo as hlo
from axir.passes.legalize.rewriting import RewritePass, find_operations, hidden_truths

# Operations that IREE merges when their operands and attributes are equal.
_MERGED = frozenset(
    f"stablehlo.{name}" for name in ("broadcast_in_dim", "reshape", "convert", "bitcast_convert")
)


@dataclasses.dataclass(frozen=True)
class PartLoopStorage(RewritePass):
    """Gives each array that a loop carries an initial value of its own.

    The fact: two carried arrays that begin as the same value, as the sums and products do that a
    loop collects in zeros, may be given the same storage when the module also contains a
    `flow.tensor.transfer`, as `protect-inputs` and `copy-returned-inputs` write them. What the
    body stores into one of them then overwrites the other. Barriers on the arrays, clones and
    transfers of them are merged again; a choice by a truth value behind a barrier is not.

    1. Look for a `flow.tensor.transfer`; without one there is nothing to do.
    2. Visit every loop. Compare its initial values: the same value, or equal constants and shapes
       of such, are one value to the compiler.
    3. From the second occurrence on, choose between the value and another constant by a truth
       value that is true, which the compiler does not know.

    Before::

        %0:2 = stablehlo.while(%a = %zeros, %b = %zeros) …

    After::

        %1 = util.optimization_barrier %true : tensor<i1>
        %2 = stablehlo.select %1, %zeros, %ones : tensor<i1>, tensor<4xf32>
        %0:2 = stablehlo.while(%a = %zeros, %b = %2) …

    Precondition: the passes have run that remove barriers (`protect-inputs`,
    `copy-returned-inputs`).
    """

    name: ClassVar[str] = "part-loop-storage"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.while",)

    def run(self, module: ir.Module) -> None:
        """Changes the loops of a module that contains transfers."""
        if find_operations(module.operation, ("flow.tensor.transfer",)):
            super().run(module)

    def rewrite(self, operation: ir.Operation) -> None:
        """Changes operands of a loop in place."""
        seen: set[Any] = set()
        repeated = []
        for index, value in enumerate(operation.operands):
            key = _identity(value)
            if key in seen and hlo.shape_of(value):
                repeated.append(index)
            seen.add(key)
        if not repeated:
            return
        hidden = hidden_truths(len(repeated))
        for index, truth in zip(repeated, hidden, strict=True):
            value = operation.operands[index]
            operation.operands[index] = hlo.select(truth, value, _other(value))


def _identity(value: ir.Value) -> Any:
    """Returns what values have in common that the compiler takes for one."""
    owner = value.owner
    if not isinstance(owner, (ir.Operation, ir.OpView)):
        return value
    operation = owner.operation
    if operation.name == "stablehlo.constant":
        return operation.attributes["value"]
    if operation.name in _MERGED:
        operands = tuple(_identity(operand) for operand in operation.operands)
        attributes = tuple(operation.attributes[name] for name in operation.attributes)
        return operation.name, value.type, attributes, operands
    return value


def _other(value: ir.Value) -> ir.Value:
    """Returns a constant array of a value's type that is not the value."""
    zero, one = hlo.full_like(value, 0), hlo.full_like(value, 1)
    return one if _identity(value) == _identity(zero) else zero

"""`store-compared`: what is compared with the largest of itself is computed once."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.base import Pass
from axir.passes.legalize.rewriting import ELEMENTWISE, operations_in_order, values_behind

_COMPARE = "stablehlo.compare"
_REDUCTIONS = ("stablehlo.reduce", "stablehlo.reduce_window")
_EXTREMA = ("stablehlo.maximum", "stablehlo.minimum")
# What gives elements of its operands as they are, or their bits.
_CHOICES = frozenset(("flow.dispatch", *_EXTREMA)) | frozenset(
    f"stablehlo.{name}"
    for name in (
        "and bitcast_convert broadcast_in_dim clamp concatenate dynamic_slice gather negate not or "
        "pad reshape reverse scatter select shift_left shift_right_logical slice sort transpose "
        "while xor"
    ).split()
)
_SUMS = frozenset(("stablehlo.add", "stablehlo.subtract"))
_PRODUCT = "stablehlo.multiply"
# Of one rounding each, wherever they are computed.
_ROUNDED = (
    _SUMS
    | _CHOICES
    | frozenset(
        f"stablehlo.{name}"
        for name in "abs ceil compare convert divide floor is_finite multiply sign sqrt".split()
    )
)


@dataclasses.dataclass(frozen=True)
class StoreCompared(Pass):
    """Keeps in memory what a program compares with a choice of its own elements.

    The fact: IREE computes elementwise operations again in each dispatch that reads them, and lets
    LLVM round the product and the sum of `x * y + z` once, where nothing else reads the product,
    or twice, where something does. The largest element was equal to none then: `s == s.max(0)` was
    false in whole columns, and derivatives of maxima, which find their places so, were zero.

    1. Visit each comparison of floating-point numbers, and follow both operands back through what
       chooses among elements: moves, maxima and minima, selections, sorts, scatters, loops.
    2. Where both come from one elementwise result that is made of products and sums, or of
       functions of numbers, let all that reads it read an optimization barrier of it.

    Before::

        %s = stablehlo.add %p, %z : tensor<3x4xf32>
        %0 = stablehlo.reduce(%s init: %i) applies stablehlo.maximum across dimensions = [0]
        %1 = stablehlo.broadcast_in_dim %0, dims = [1]
        %2 = stablehlo.compare EQ, %s, %1

    After::

        %s = stablehlo.add %p, %z : tensor<3x4xf32>
        %b = stablehlo.optimization_barrier %s
        %0 = stablehlo.reduce(%b init: %i) applies stablehlo.maximum across dimensions = [0]
        %1 = stablehlo.broadcast_in_dim %0, dims = [1]
        %2 = stablehlo.compare EQ, %b, %1

    Precondition: programs and loops that become kernels, in which each result is computed once, are
    kernels; moves are not yet.
    """

    name: ClassVar[str] = "store-compared"

    def run(self, module: ir.Module) -> None:
        """Inserts the barriers."""
        stored: dict[ir.Value, None] = {}
        for comparison in operations_in_order(module.operation, (_COMPARE,)):
            if _can_mislead(*comparison.operands):
                first, second = (_chosen_from(operand) for operand in comparison.operands)
                stored |= dict.fromkeys(x for x in first if x in second and _may_differ(x))
        for value in stored:
            operation = value.owner
            with ir.InsertionPoint.after(operation), operation.location:
                barrier = hlo.optimization_barrier(value)[0]
            value.replace_all_uses_except(barrier, barrier.owner.operation)


def _can_mislead(first: ir.Value, second: ir.Value) -> bool:
    """Tells whether two results of one origin may be compared; what is nan differs from itself."""
    return first != second and hlo.is_float(first) and bool(hlo.shape_of(first))


def _chosen_from(value: ir.Value) -> dict[ir.Value, None]:
    """Returns the results whose elements a value may have."""

    def choices(_: ir.Value, operation: ir.Operation) -> Iterable[ir.Value]:
        return operation.operands if _chooses(operation) else ()

    behind = values_behind(value, choices)
    return dict.fromkeys(x for x, operation in behind if not _chooses(operation))


def _chooses(operation: ir.Operation) -> bool:
    if operation.name not in _REDUCTIONS:
        return operation.name in _CHOICES
    return any(body.name in _EXTREMA for body in operation.regions[0].blocks[0].operations)


def _may_differ(value: ir.Value) -> bool:
    """Tells whether a result may be rounded otherwise where it is computed again."""

    def operands(_: ir.Value, operation: ir.Operation) -> Iterable[ir.Value]:
        return operation.operands if _is_elementwise(operation) else ()

    behind = values_behind(value, operands)
    names = {operation.name for _, operation in behind if _is_elementwise(operation)}
    return bool(names - _ROUNDED) or (_PRODUCT in names and bool(names & _SUMS))


def _is_elementwise(operation: ir.Operation) -> bool:
    return operation.name in ELEMENTWISE or operation.name.startswith("chlo.")

"""`store-widened`: reductions on Vulkan read arrays computed from narrower elements from memory."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.base import Pass
from axir.passes.legalize.rewriting import (
    ELEMENTWISE,
    defining_operation,
    operations_in_order,
    replace,
)

_GENERIC = "linalg.generic"
_REDUCTIONS = frozenset(
    (
        "func.call",
        "stablehlo.convolution",
        "stablehlo.dot_general",
        "stablehlo.reduce",
        "stablehlo.reduce_window",
    )
)


@dataclasses.dataclass(frozen=True)
class StoreWidened(Pass):
    """Keeps arrays that are computed from narrower elements in memory if used twice and reduced.

    The fact: if an elementwise operation has a result with wider elements than its operands, IREE
    repeats it in each dispatch that uses the result. If the dispatch has a reduction, a product or
    the like, the wide numbers get workgroup memory, and for SPIR-V this memory is written in
    another layout than it is read. Let `y` be `x.astype(float32)` of f16: `y - y.sum(0)` was wrong,
    and `y - y.sum()` did not compile ("uses 36736 bytes of shared memory").

    1. Merge equal conversions of an array, as IREE does.
    2. Visit the results of elementwise operations that have several users, or are used twice by one
       operation that is not elementwise.
    3. Find the arrays from which elementwise operations compute such a result. Only the arrays of
       the highest rank count, without axes of one element, as in IREE.
    4. If one of these arrays has narrower elements, and elementwise operations lead from the result
       to a reduction, a product, windows or a call, put an optimization barrier on it.

    Before::

        %y = stablehlo.convert %x : (tensor<70x131xf16>) -> tensor<70x131xf32>
        %sum = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0]
        …   // reads %y again

    After::

        %0 = stablehlo.convert %x : (tensor<70x131xf16>) -> tensor<70x131xf32>
        %y = stablehlo.optimization_barrier %0
        %sum = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0]

    Precondition: `protect-inputs` has run, because it would remove the barriers.
    """

    name: ClassVar[str] = "store-widened"

    def run(self, module: ir.Module) -> None:
        """Inserts the barriers."""
        _join_conversions(module.operation)
        operations = operations_in_order(module.operation, ELEMENTWISE)
        reduced = _reduced(operations)
        read: dict[ir.Value, _Read] = {}
        for operation in operations:
            leading = min((read.get(x, _read(x)) for x in operation.operands), default=_NOTHING)
            for result in operation.results:
                is_wider = leading != _NOTHING and leading[1] < _bits(result) < _WIDEST
                if is_wider and result in reduced and _is_shared(result):
                    read[result] = _read(result)
                    with ir.InsertionPoint.after(operation), operation.location:
                        (stored,) = hlo.optimization_barrier(result)
                    result.replace_all_uses_except(stored, stored.owner.operation)
                    read[stored] = _read(stored)
                else:
                    read[result] = leading


_WIDEST = 128
_Read = tuple[int, int]
"""The negative rank of those arrays read that have the highest, and the bits of their elements."""
_NOTHING: _Read = (1, 0)


def _join_conversions(root: ir.Operation) -> None:
    """Erases conversions that an earlier operation in the same block already computes."""
    made: dict[tuple[ir.Value, ir.Type], ir.Operation] = {}
    for operation in operations_in_order(root, ("stablehlo.convert",)):
        result = operation.results[0]
        first = made.setdefault((operation.operands[0], result.type), operation)
        if first != operation and first.block == operation.block:
            replace(operation, first.results[0])


def _read(value: ir.Value) -> _Read:
    """Returns the rank (negated) and the element width with which a stored array counts."""
    owner = defining_operation(value)
    if owner is not None and owner.name == "stablehlo.iota":
        return _NOTHING
    return -sum(extent != 1 for extent in hlo.shape_of(value)), _bits(value)


def _bits(value: ir.Value) -> int:
    """Returns the width of elements; complex ones, which IREE ignores, count as the widest."""
    return _WIDEST if hlo.is_complex(value) else hlo.element_type_of(value).width


def _reduced(operations: list[ir.Operation]) -> set[ir.Value]:
    """Returns the results from which elementwise operations lead to reductions."""
    reduced: set[ir.Value] = set()
    for operation in reversed(operations):
        for result in operation.results:
            users = [use.owner.operation for use in result.uses]
            if any(_is_reduction(x) or not reduced.isdisjoint(x.results) for x in users):
                reduced.add(result)
    return reduced


def _is_reduction(operation: ir.Operation) -> bool:
    if operation.name == _GENERIC:
        return "reduction" in str(operation.attributes["iterator_types"])
    return operation.name in _REDUCTIONS


def _is_shared(value: ir.Value) -> bool:
    """Tells whether a value is used by several operations, or twice by one that takes arrays."""
    users = [use.owner.operation for use in value.uses]
    return len(set(users)) > 1 or (len(users) > 1 and _is_reduction(users[0]))

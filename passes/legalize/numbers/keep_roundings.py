"""`keep-roundings`: (a + b) - a stays the rounded sum minus a."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.scalars import Scalar, bitcast, constant, integer
from axir.passes.framework.base import Pass
from axir.passes.legalize.rewriting import defining_operation

_SUMS = {
    "arith.addf": 1,
    "arith.subf": -1,
    "stablehlo.add": 1,
    "stablehlo.subtract": -1,
}  # the sign of the second operand
_NEGATIONS = frozenset(("arith.negf", "stablehlo.negate"))
_UNSIGNED = {16: np.uint16, 32: np.uint32, 64: np.uint64}
# How deeply two values are compared: a constant that is broadcast.
_DEPTH = 3

# A summand: a value, and the sign that it has in the sum.
_Term = tuple[ir.Value, int]


class KeepRoundings(Pass):
    """Hides sums from compilers that cancel a - a.

    The fact: Vulkan drivers treat floating-point sums as sums of real numbers and simplify (a + b)
    - a to b, unless SPIR-V forbids it by `NoContraction`, which IREE does not emit. Programs use
    such differences for the rounding error of a sum or the nearest integer. They then get 0 or the
    number itself: on Mesa's drivers sin, exp2 and x ** y were wrong for this reason.

    1. Look at each sum (or difference) with an operand that is also a sum.
    2. If a summand of the inner sum is the other operand of the outer one, with the opposite sign,
       bitcast the inner sum to an unsigned integer, and take its minimum with the second largest
       integer. This changes only one of the many nans, but no compiler knows that.

    Before::

        %0 = stablehlo.add %x, %y : tensor<9xf32>
        %1 = stablehlo.subtract %0, %x : tensor<9xf32>

    After::

        %0 = stablehlo.add %x, %y : tensor<9xf32>
        %2 = stablehlo.bitcast_convert %0 : (tensor<9xf32>) -> tensor<9xui32>
        %3 = stablehlo.minimum %2, %c : tensor<9xui32>
        %4 = stablehlo.bitcast_convert %3 : (tensor<9xui32>) -> tensor<9xf32>
        %1 = stablehlo.subtract %4, %x : tensor<9xf32>
    """

    name: ClassVar[str] = "keep-roundings"

    def run(self, module: ir.Module) -> None:
        """Hides the sums, also in loops over elements."""
        for operation in _sums(module):
            for number, operand in enumerate(operation.operands):
                other = operation.operands[1 - number]
                if _cancels(operation, number, operand, other):
                    with ir.InsertionPoint(operation), operation.location:
                        operation.operands[number] = hidden(operand)


def _sums(module: ir.Module) -> list[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(operation: ir.Operation) -> ir.WalkResult:
        if operation.name in _SUMS and _float_width(operation.results[0]):
            found.append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _float_width(value: ir.Value) -> int:
    """Returns the width of floating-point numbers or arrays of them, 0 for others."""
    kind = value.type
    element = kind.element_type if isinstance(kind, ir.RankedTensorType) else kind
    return element.width if isinstance(element, ir.FloatType) else 0


def _cancels(outer: ir.Operation, number: int, inner: ir.Value, other: ir.Value) -> bool:
    """Tells whether a summand of one operand cancels the other operand."""
    definition, sign = _without_signs(inner)
    if definition is None:
        return False
    second = _SUMS[outer.name]
    inner_sign, other_sign = (1, second) if number == 0 else (second, 1)
    sign *= inner_sign
    other, flipped = _positive(other)
    other_sign *= flipped
    for value, own_sign in _summands(definition):
        positive, flipped = _positive(value)
        if sign * own_sign * flipped == -other_sign and _are_same(positive, other, _DEPTH):
            return True
    return False


def _summands(operation: ir.Operation) -> list[_Term]:
    """Returns the summands of a sum, a difference or an fma, with signs."""
    if operation.name in _SUMS:
        return [(operation.operands[0], 1), (operation.operands[1], _SUMS[operation.name])]
    return [(operation.operands[2], 1)] if operation.name == "math.fma" else []


def _positive(value: ir.Value) -> _Term:
    """Returns a value without the negations around it, and the resulting sign."""
    sign = 1
    definition = defining_operation(value)
    while definition is not None and definition.name in _NEGATIONS:
        value, sign = definition.operands[0], -sign
        definition = defining_operation(value)
    return value, sign


def _without_signs(value: ir.Value) -> tuple[ir.Operation | None, int]:
    positive, sign = _positive(value)
    return defining_operation(positive), sign


def _are_same(left: ir.Value, right: ir.Value, depth: int) -> bool:
    """Tells whether two values are one value, or are computed by equal operations."""
    if left == right:
        return True
    first, second = defining_operation(left), defining_operation(right)
    if not depth or first is None or second is None or left.type != right.type:
        return False
    return (
        first.name == second.name
        and _attributes(first) == _attributes(second)
        and len(first.operands) == len(second.operands)
        and not len(first.regions)
        and all(map(_are_same, first.operands, second.operands, [depth - 1] * 8))
    )


def _attributes(operation: ir.Operation) -> dict[str, ir.Attribute]:
    return {name: operation.attributes[name] for name in operation.attributes}


def hidden(value: ir.Value) -> ir.Value:
    """Returns floats or a float equal to `value`, which compilers cannot recognize as `value`."""
    width = _float_width(value)
    bound = 2**width - 2
    if isinstance(value.type, ir.RankedTensorType):
        bits = hlo.bitcast_convert(value, _UNSIGNED[width])
        kept = hlo.minimum(bits, hlo.full_like(bits, bound))
        return hlo.bitcast_convert(kept, value.type.element_type)
    number = Scalar(value)
    bits = bitcast(number, integer(width))
    smaller = bits.apply("minu", constant(bound, integer(width)))
    return bitcast(smaller, value.type).value

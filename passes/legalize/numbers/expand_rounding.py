"""`expand-rounding`: numbers rounded to the nearest integer, halves to even ones."""

from __future__ import annotations

from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.expressions import select
from axir.dialect.builders.scalars import Scalar, convert_float, copy_sign, float32
from axir.passes.legalize.elementwise_loops import elementwise
from axir.passes.legalize.rewriting import RewritePass

_DIGITS = {32: 24, 64: 53}


def round_to_even(x: Scalar) -> Scalar:
    """Returns the nearest integer of a float or double; the even one of two.

    From 2^23 on (doubles 2^52) all numbers are integers, and a sum with that number is rounded to
    one, as numbers are: the nearest, halves to even ones.
    """
    magnitude = abs(x)
    smallest_integer = x.constant(2.0 ** (_DIGITS[x.width] - 1))
    rounded = (magnitude + smallest_integer) - smallest_integer
    return select(magnitude < smallest_integer, copy_sign(rounded, x), x)


class ExpandRounding(RewritePass):
    """Rounds by adding and subtracting a large number.

    The fact: IREE writes `math.roundeven` out as some twenty operations on the bits of a number,
    though it rounds up, down and towards zero by one instruction.

    1. Widen numbers that are narrower than f32.
    2. Add 2^23 (for f64 2^52) to the magnitude, and subtract it.
    3. Keep larger numbers and nan unchanged; give the others their sign.

    Before::

        %0 = stablehlo.round_nearest_even %x : tensor<9xf32>

    After::

        %0 = linalg.generic {…} ins(%x : tensor<9xf32>) … { ^bb0(%in: f32, %out: f32): … }
    """

    name: ClassVar[str] = "expand-rounding"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.round_nearest_even",)

    def rewrite(self, operation: ir.Operation) -> list[ir.Value]:
        """Builds the loop."""
        element = hlo.element_type_of(operation.results[0])

        def body(x: Scalar) -> Scalar:
            wide = x if x.width in _DIGITS else convert_float(x, float32())
            return convert_float(round_to_even(wide), element)

        return elementwise(operation.name, operation.operands, body, [element])

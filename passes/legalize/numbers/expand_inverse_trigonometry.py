"""`expand-inverse-trigonometry`: arc tangent of one and two arguments, arc sine, arc cosine."""

from __future__ import annotations

import math
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.expressions import is_nan, polynomial, select, sqrt
from axir.dialect.builders.scalars import Scalar, convert_float, copy_sign, float32
from axir.dialect.core.annotations import Returning
from axir.passes.legalize.doubles import arc_tangent_2_of_c
from axir.passes.legalize.elementwise_loops import elementwise
from axir.passes.legalize.rewriting import RewritePass

# (atan(t)/t - 1) / t^2 in t^2 on t <= tan(pi/8), at Chebyshev nodes; relative error 5e-8.
_ATAN = (
    -0.33333331686451945,
    0.1999952339722771,
    -0.1426336657972561,
    0.1073739696716272,
    -0.06431038710715442,
)
_TAN_PI_8 = math.tan(math.pi / 8)
# pi/4, pi/2 and pi in single precision, with their rounding errors.
_QUARTER = (0.7853981852531433, -2.1855694143368964e-08)
_HALF = (1.5707963705062866, -4.371138828673793e-08)
_WHOLE = (3.1415927410125732, -8.742277657347586e-08)


def arc_tangent_2(y: Scalar, x: Scalar) -> Scalar:
    """Returns the angle of the point (x, y), in single precision, to two units in the last place.

    Zeros and infinities as C99 (annex F.9.1.4) has them: atan2(-0, -1) = -pi, atan2(0, 0) = 0.
    """
    width, height = abs(x), abs(y)
    is_steep = height > width
    larger, smaller = select(is_steep, height, width), select(is_steep, width, height)
    # Both infinite, or both zero: the direction of the diagonal, or of the axis.
    is_even = larger == smaller
    slope = select(is_even, select(larger == 0, larger, 1), smaller / larger)
    angle = _arc_tangent_below_one(slope)
    angle = select(is_steep, (_HALF[0] - angle) + _HALF[1], angle)
    angle = select(x.is_negative(), (_WHOLE[0] - angle) + _WHOLE[1], angle)
    angle = select(is_nan(x) | is_nan(y), math.nan, angle)
    return copy_sign(angle, y)


def _arc_tangent_below_one(slope: Scalar) -> Scalar:
    """atan t for 0 <= t <= 1; above tan(pi/8) it is pi/4 + atan((t - 1) / (t + 1))."""
    is_high = slope > _TAN_PI_8
    reduced = select(is_high, (slope - 1) / (slope + 1), slope)
    square = reduced * reduced
    angle = reduced + reduced * square * polynomial(square, _ATAN)
    return select(is_high, _QUARTER[0] + (angle + _QUARTER[1]), angle)


def arc_tangent(x: Scalar) -> Scalar:
    """atan x."""
    return arc_tangent_2(x, x.constant(1))


def arc_sine(x: Scalar) -> Scalar:
    """asin x; nan where |x| > 1."""
    return arc_tangent_2(x, sqrt((1 - x) * (1 + x)))


def arc_cosine(x: Scalar) -> Scalar:
    """acos x; nan where |x| > 1."""
    return arc_tangent_2(sqrt((1 - x) * (1 + x)), x)


_FUNCTIONS: dict[str, Returning[Scalar]] = {
    "stablehlo.atan2": arc_tangent_2,
    "chlo.atan": arc_tangent,
    "chlo.asin": arc_sine,
    "chlo.acos": arc_cosine,
}


class ExpandInverseTrigonometry(RewritePass):
    """Writes out atan2, atan, asin and acos of f32, f16 and bf16, and the origin of atan2 of f64.

    The fact: IREE's atan2 is nan at (0, 0) and (inf, inf) and loses the sign of zeros. Its atan,
    asin and acos, which use atan2, are a dozen units in the last place off. In f64 IREE calls the C
    library, which is exact; but MLIR folds atan2 of constant zeros to nan, and where denormal
    numbers count as zeros the library returns -pi for atan2(5e-324, -1).

    1. Widen f16 and bf16 to f32.
    2. Divide the smaller of |x| and |y| by the larger; take the arc tangent of this slope by a
       polynomial, above tan(pi/8) relative to pi/4.
    3. Mirror the angle at the diagonal and at the axis; give it the sign of y.
    4. asin x = atan2(x, sqrt((1 - x)(1 + x))), acos x with exchanged arguments.
    5. In f64, select between atan2 of the C library and the angles of (±0, ±0); the result has the
       sign of y.

    Before::

        %0 = stablehlo.atan2 %y, %x : tensor<9xf32>

    After::

        %0 = linalg.generic {…} ins(%y, %x : tensor<9xf32>, tensor<9xf32>) …
    """

    name: ClassVar[str] = "expand-inverse-trigonometry"
    operations: ClassVar[tuple[str, ...]] = tuple(_FUNCTIONS)

    def rewrite(self, operation: ir.Operation) -> list[ir.Value] | None:
        """Builds the loop, for real numbers of up to 32 bits, and for atan2 of all."""
        element = hlo.element_type_of(operation.results[0])
        if not isinstance(element, ir.FloatType):
            return None
        if element.width > 32:
            if operation.name != "stablehlo.atan2":
                return None
            name = "stablehlo.atan2 of doubles"
            return elementwise(name, operation.operands, arc_tangent_2_of_c, [element])
        function = _FUNCTIONS[operation.name]

        def body(*operands: Scalar) -> Scalar:
            wide = (convert_float(operand, float32()) for operand in operands)
            return convert_float(function(*wide), element)

        return elementwise(operation.name, operation.operands, body, [element])

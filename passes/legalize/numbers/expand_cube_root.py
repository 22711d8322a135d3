"""`expand-cube-root`: cube roots of real numbers."""

from __future__ import annotations

import math
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.expressions import select
from axir.dialect.builders.scalars import (
    Scalar,
    bitcast,
    convert_float,
    copy_sign,
    extend_unsigned,
    float64,
    fused_multiply_add,
    operation,
    truncate,
)
from axir.passes.legalize.elementwise_loops import elementwise
from axir.passes.legalize.rewriting import RewritePass

# The high word of the double cbrt(x) is about a third of the high word of x plus this.
_THIRD_OF_BIAS = 715094163
_HALLEY_STEPS = 3


def cube_root(x: Scalar) -> Scalar:
    """Returns the cube root of a double, to one unit in the last place.

    The first guess, a third of the bits, is within 5 %; each step of Halley's method triples the
    number of right digits, and a step of Newton's with an exact residual rounds.
    """
    magnitude = abs(x)
    # Cubes of numbers near the ends of the range would overflow.
    is_small, is_large = magnitude < 1e-200, magnitude > 1e200
    scaled = magnitude * _scale(is_small, is_large, x.constant(2.0**300))
    # Arithmetic may treat denormal numbers as zeros, unlike comparisons.
    is_regular = (scaled > 0) & (scaled < math.inf)
    regular = select(is_regular, scaled, 1)
    high = truncate(regular.bits() >> 32, 32)  # positive, so that signed quotients are right
    third = operation("arith.divsi", (high, high.constant(3))) + _THIRD_OF_BIAS
    root = bitcast(extend_unsigned(third, 64) << 32, float64())
    for _ in range(_HALLEY_STEPS):
        cube = root * root * root
        root = root * (cube + 2 * regular) / (2 * cube + regular)
    square = root * root
    square_rest = fused_multiply_add(root, root, -square)
    cube = square * root
    cube_rest = fused_multiply_add(square, root, -cube) + square_rest * root
    root = root - ((cube - regular) + cube_rest) / (3 * square)
    root = root * _scale(is_large, is_small, x.constant(2.0**100))
    return copy_sign(select(is_regular, root, magnitude), x)


def _scale(grows: Scalar, shrinks: Scalar, factor: Scalar) -> Scalar:
    """Returns the factor, its inverse, or one."""
    return select(grows, factor, select(shrinks, 1 / factor, 1))


class ExpandCubeRoot(RewritePass):
    """Writes out cube roots.

    The fact: IREE does not compile cbrt of f64; its f32 one is 11 units in the last place off and
    nan for infinities.

    1. Widen to f64.
    2. Guess by a third of the bits, then three steps of Halley's method and one of Newton's.
    3. Zeros, infinities and nan are their own cube roots; the result has the sign of x.

    Before::

        %0 = stablehlo.cbrt %x : tensor<9xf32>

    After::

        %0 = linalg.generic {…} ins(%x : tensor<9xf32>) … { ^bb0(%in: f32, %out: f32): … }
    """

    name: ClassVar[str] = "expand-cube-root"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.cbrt",)

    def rewrite(self, operation: ir.Operation) -> list[ir.Value]:
        """Builds the loop."""
        element = hlo.element_type_of(operation.results[0])

        def body(x: Scalar) -> Scalar:
            return convert_float(cube_root(convert_float(x, float64())), element)

        return elementwise(operation.name, operation.operands, body, [element])

"""`saturate-conversions` and `keep-denormal-halves`: conversions of floats."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np
from iree.compiler import ir

from axir.dialect import stablehlo as hlo
from axir.dialect.types import numpy_dtype
from axir.passes.legalize.elementwise import elementwise
from axir.passes.legalize.rewriting import RewritePass
from axir.passes.legalize.scalar import (
    Scalar,
    absolute,
    bitcast,
    convert_float,
    float32,
    select,
)


@dataclasses.dataclass(frozen=True)
class SaturateConversions(RewritePass):
    """Defines the conversion of floats to integers outside the integer's range.

    The fact: IREE converts what is out of range as the processor likes: nan becomes the smallest
    i32, 1000.0 becomes -24 as i8, -1.0 becomes 255 as ui8. JAX saturates, and turns nan into 0.

    1. Convert as before.
    2. Where x >= 2^bits, the first value too large (a power of two, hence exact in every float
       type that reaches it; otherwise infinity stands for it), take the largest integer.
    3. Where x <= the smallest integer, take that.
    4. Where x is nan, take 0.

    Conversion to truth values (x != 0) is right already.

    Before::

        %0 = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xi32>

    After::

        %1 = stablehlo.select %too_large, %largest, %0
        %2 = stablehlo.select %too_small, %smallest, %1
        %3 = stablehlo.select %is_nan, %zero, %2
    """

    name: ClassVar[str] = "saturate-conversions"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.convert",)

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds the selects for a conversion from a float to an integer of two bits or more."""
        operand, result = operation.operands[0], operation.results[0]
        target = hlo.element_type_of(result)
        if not hlo.is_float(operand) or not isinstance(target, ir.IntegerType):
            return None
        if target.width == 1:
            return None
        limits = np.iinfo(numpy_dtype(target))
        converted = hlo.convert(operand, target)
        for is_outside, replacement in (
            (hlo.compare(operand, _bound(operand, limits.max + 1), "GE"), limits.max),
            (hlo.compare(operand, _bound(operand, limits.min), "LE"), limits.min),
            (hlo.compare(operand, operand, "NE"), 0),
        ):
            converted = hlo.select(is_outside, hlo.full_like(converted, replacement), converted)
        return converted


def _bound(operand: ir.Value, bound: int) -> ir.Value:
    """A power of two, or zero, as a float; infinity where the float type does not reach it."""
    with np.errstate(over="ignore"):
        return hlo.full_like(operand, float(bound))


@dataclasses.dataclass(frozen=True)
class KeepDenormalHalves(RewritePass):
    """Converts f64 to f16 by way of f32.

    The fact: IREE's conversion from f64 to f16 turns numbers below 6e-5 into 0, which as f16 are
    denormal, unless the CPU has arithmetic in f16; that from f32 to f16 does not.

    1. Round to f32, toward zero; where that loses something, set the last bit ("round to odd").
    2. Round to f16. As f32 has two bits more than twice those of f16, the result is what one
       rounding gives (S. Boldo and G. Melquiond, Emulation of a FMA, 2008).

    Before::

        %0 = stablehlo.convert %x : (tensor<9xf64>) -> tensor<9xf16>

    After::

        %0 = linalg.generic {…} ins(%x : tensor<9xf64>) … { ^bb0(%in: f64, %out: f16): … }
    """

    name: ClassVar[str] = "keep-denormal-halves"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.convert",)

    def rewrite(self, operation: ir.Operation) -> list[ir.Value] | None:
        """Builds the loop, for conversions from f64 to f16."""
        operand, result = operation.operands[0], operation.results[0]
        half = hlo.element_type_of(result)
        if not isinstance(hlo.element_type_of(operand), ir.F64Type):
            return None
        if not isinstance(half, ir.F16Type):
            return None

        def body(x: Scalar) -> Scalar:
            return convert_float(_round_to_odd(x), half)

        return elementwise(self.name, [operand], body, [half])


def _round_to_odd(x: Scalar) -> Scalar:
    """A double as a single, with the last bit set if it is not exact."""
    nearest = convert_float(x, float32())
    back = convert_float(nearest, x.type)
    is_beyond = absolute(back) > absolute(x)
    toward_zero = nearest.bits() - select(is_beyond, nearest.bits().constant(1), 0)
    is_inexact = back.differs(x)
    return bitcast(select(is_inexact, toward_zero | 1, toward_zero), float32())

"""`divide-by-signed`: quotients of unsigned integers, by dividing signed ones."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.rewriting import RewritePass

_SIGNED = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}


class DivideBySigned(RewritePass):
    """Divides unsigned integers with operations on signed ones.

    The fact: for SPIR-V IREE does not compile quotients and remainders of unsigned integers where
    each thread has one element ("bitwidth emulation is not implemented yet on unsigned op").

    1. For a divisor of 2^(w-1) or more the quotient is 0 or 1. For other divisors halve the
       dividend, which is then not negative, divide, and double the quotient: it is correct, or one
       too small (H. Warren, Hacker's Delight, 9-3).
    2. By zero the quotient is all ones and the remainder the dividend, as everywhere.

    Before::

        %0 = stablehlo.divide %x, %y : tensor<4xui32>

    After::

        %1 = stablehlo.shift_right_logical %x, %one : tensor<4xui32>
        ...
        %5 = stablehlo.divide %2, %3 : tensor<4xi32>
    """

    name: ClassVar[str] = "divide-by-signed"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.divide", "stablehlo.remainder")

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds the formula, for unsigned integers."""
        x, y = operation.operands
        if not hlo.is_unsigned(x):
            return None
        width = hlo.element_type_of(x).width
        one, zero = hlo.full_like(x, 1), hlo.full_like(x, 0)
        half = _signed(hlo.shift_right_logical(x, one), width)
        is_large = hlo.compare(y, hlo.full_like(y, 2 ** (width - 1)), "GE")
        # A divisor that is not needed must not be zero or negative either.
        divisor = hlo.select(hlo.or_(is_large, hlo.compare(y, zero, "EQ")), one, y)
        halves = _unsigned(hlo.divide(half, _signed(divisor, width)), x)
        small = hlo.select(is_large, zero, hlo.shift_left(halves, one))
        rest = hlo.subtract(x, hlo.multiply(small, y))
        is_short = hlo.compare(rest, y, "GE")
        is_zero = hlo.compare(y, zero, "EQ")
        if operation.name == "stablehlo.divide":
            quotient = hlo.add(small, hlo.select(is_short, one, zero))
            return hlo.select(is_zero, hlo.full_like(x, 2**width - 1), quotient)
        remainder = hlo.subtract(rest, hlo.select(is_short, y, zero))
        return hlo.select(is_zero, x, remainder)


def _signed(x: ir.Value, width: int) -> ir.Value:
    return hlo.bitcast_convert(x, _SIGNED[width])


def _unsigned(x: ir.Value, like: ir.Value) -> ir.Value:
    return hlo.bitcast_convert(x, hlo.element_type_of(like))

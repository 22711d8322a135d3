"""Sums of two doubles, and the pieces that logarithms and exponentials are made of.

A pair (high, low) stands for high + low, where low is what the double high lacks. The formulas are
T. J. Dekker's (1971), with fused multiply-adds.
"""

from __future__ import annotations

from axir.dialect.builders.expressions import select
from axir.dialect.builders.scalars import Scalar, bitcast, fused_multiply_add, to_float

# (atanh(s)/s - 1) / s^2 in s^2; relative error 2e-22.
ATANH = (
    0.3333333333333333,
    0.2,
    0.1428571428571425,
    0.11111111111126576,
    0.09090909087504616,
    0.07692308122312976,
    0.06666633655072883,
    0.058839172555775476,
    0.052185969555950736,
    0.05455528121999531,
)
# (2^f - 1) / f on [-1/2, 1/2]; relative error 3e-19.
EXP2_MINUS_ONE = (
    0.6931471805599453,
    0.24022650695910072,
    0.055504108664821625,
    0.00961812910762848,
    0.001333355814640647,
    0.00015403530393370734,
    1.5252733841556773e-05,
    1.3215486808705563e-06,
    1.0178057087733941e-07,
    7.0548973041554995e-09,
    4.4558179083360645e-10,
    2.5729324177362305e-11,
)
ROUNDING = 1.5 * 2.0**52  # adding it to a double leaves the nearest integer in the low bits

THIRD_REST = 1.850371707708594e-17  # 1/3 less the nearest double

Double = tuple[Scalar, Scalar]  # a sum: a double, and what it lacks


def product(x: Double, y: Double) -> Double:
    """Returns the product of two sums of two doubles, without that of their rests."""
    product = x[0] * y[0]
    return product, fused_multiply_add(x[0], y[0], -product) + (x[0] * y[1] + x[1] * y[0])


def split_mantissa(x: Scalar, mantissa_bits: int, root_half: int) -> tuple[Scalar, Scalar]:
    """x = mantissa 2^exponent with the mantissa in [sqrt(1/2), sqrt(2)], for x > 0.

    The bits of a denormal number, taken for an integer, are the number but for a power of two.
    """
    bits = x.bits()
    is_denormal = bits < (1 << mantissa_bits)
    bits = select(is_denormal, to_float(bits, x.type).bits(), bits)
    smallest_exponent = -149 if mantissa_bits == 23 else -1074
    exponent = (bits - root_half).shift_right_signed(mantissa_bits)
    mantissa = bitcast(bits - (exponent << mantissa_bits), x.type)
    return mantissa, exponent + select(is_denormal, bits.constant(smallest_exponent), 0)

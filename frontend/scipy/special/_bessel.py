"""Modified Bessel functions of `axir.scipy.special`."""

from __future__ import annotations

from axir.dialect.ops.elementwise.arithmetic import abs as absolute
from axir.dialect.ops.elementwise.arithmetic import mul, sign
from axir.dialect.ops.elementwise.transcendental import exp
from axir.dialect.ops.special.special_functions import bessel_i0e, bessel_i1e

from ._common import unary_function

i0e = unary_function("i0e", bessel_i0e, "Modified Bessel function I0, times exp(-|x|).")
i1e = unary_function("i1e", bessel_i1e, "Modified Bessel function I1, times exp(-|x|).")
i0 = unary_function(
    # Not abs, which has a slope at zero, where this function has none.
    "i0",
    lambda x: mul(exp(mul(x, sign(x))), bessel_i0e(x)),
    "Modified Bessel function I0.",
)
i1 = unary_function(
    "i1", lambda x: mul(exp(absolute(x)), bessel_i1e(x)), "Modified Bessel function I1."
)

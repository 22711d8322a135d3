"""The normal distribution in `axir.scipy.special`: tails and quantiles; Box and Cox' transforms."""

from __future__ import annotations

import math

from axir.dialect.core.annotations import ArrayLike, UserObject
from axir.dialect.ops.elementwise.arithmetic import (
    and_,
    div,
    eq,
    ge,
    gt,
    le,
    mul,
    neg,
    select_n,
    square,
    sub,
)
from axir.dialect.ops.elementwise.conversion import stop_gradient
from axir.dialect.ops.elementwise.transcendental import erf_inv, erfc, exp, expm1, log, log1p, sqrt
from axir.dialect.ops.special.integrals import erfcx
from axir.dialect.program.rules import Value

from ._common import real_arguments, weak_constant

_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


def _lower_tail(x: Value) -> Value:
    return mul(weak_constant(0.5, x), erfc(mul(weak_constant(-math.sqrt(0.5), x), x)))


def log_ndtr(x: ArrayLike, series_order: int = 3) -> Value:
    """Returns the logarithm of the normal distribution function, also far out in the tails.

    Above 0 from the upper tail, below as log(erfcx(-x / sqrt(2)) / 2) - x**2 / 2 (DLMF 7.2).

    Args:
        x: Array of real numbers.
        series_order: Has no effect: there is no series of which terms could be left out.

    >>> from axir.scipy.special import log_ndtr
    >>> log_ndtr(100.0)
    Array(-0., dtype=float32, weak_type=True)
    """
    (x,) = real_arguments("log_ndtr", x)
    zero, half, root = (weak_constant(value, x) for value in (0, 0.5, math.sqrt(0.5)))
    is_high = gt(x, zero)
    upper = log1p(neg(_lower_tail(neg(select_n(is_high, zero, x)))))
    low = select_n(is_high, x, zero)
    tail = log(mul(half, erfcx(neg(mul(root, low)))))
    return select_n(is_high, sub(tail, mul(half, square(low))), upper)


def ndtri(p: ArrayLike) -> Value:
    """Returns the quantiles of the standard normal distribution, the inverse of `ndtr`.

    In the middle by the inverse error function. In the tails Newton's method solves for the
    logarithm of the probability, starting at sqrt(-2 log p).

    Args:
        p: Probabilities; 0 gives -inf, 1 gives inf, and what is not in [0, 1] nan.

    >>> from axir.scipy.special import ndtri
    >>> ndtri(0.5)
    Array(0., dtype=float32, weak_type=True)
    """
    (p,) = real_arguments("ndtri", p)
    zero, one, half = weak_constant(0, p), weak_constant(1, p), weak_constant(0.5, p)
    is_upper = gt(p, half)
    tail = select_n(is_upper, p, sub(one, p))
    is_middle = gt(tail, weak_constant(0.1, p))
    centered = select_n(is_middle, zero, sub(p, half))
    middle = mul(weak_constant(math.sqrt(2), p), erf_inv(mul(weak_constant(2, p), centered)))
    is_far = and_(gt(tail, zero), le(tail, weak_constant(0.1, p)))
    logarithm = log(select_n(is_far, weak_constant(0.05, p), tail))
    x = neg(sqrt(mul(weak_constant(-2, p), logarithm)))
    for step in range(6):
        # The last steps carry the derivatives, the second ones included.
        x = _newton_step(x, logarithm) if step >= 4 else stop_gradient(_newton_step(x, logarithm))
    far = select_n(is_upper, x, neg(x))
    value = select_n(is_middle, far, middle)
    value = select_n(eq(p, zero), value, weak_constant(-math.inf, p))
    value = select_n(eq(p, one), value, weak_constant(math.inf, p))
    return select_n(and_(ge(p, zero), le(p, one)), weak_constant(math.nan, p), value)


def _newton_step(x: Value, logarithm: Value) -> Value:
    """Returns a step toward log ndtr(x) = logarithm, for x < 0."""
    current = log(_lower_tail(x))
    exponent = sub(neg(mul(weak_constant(0.5, x), square(x))), weak_constant(_HALF_LOG_TWO_PI, x))
    return sub(x, mul(sub(current, logarithm), exp(sub(current, exponent))))


def boxcox(x: ArrayLike, lmbda: UserObject) -> Value:
    """Returns (x**lmbda - 1) / lmbda, which is log(x) for lmbda = 0.

    >>> from axir.scipy.special import boxcox
    >>> boxcox(1.0, 0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    x, power = real_arguments("boxcox", x, lmbda)
    return _transform(log(x), power)


def boxcox1p(x: ArrayLike, lmbda: UserObject) -> Value:
    """Returns ((1 + x)**lmbda - 1) / lmbda, which is log(1 + x) for lmbda = 0.

    >>> from axir.scipy.special import boxcox1p
    >>> boxcox1p(0.0, 2.0)
    Array(0., dtype=float32, weak_type=True)
    """
    x, power = real_arguments("boxcox1p", x, lmbda)
    return _transform(log1p(x), power)


def _transform(logarithm: Value, power: Value) -> Value:
    zero, one = weak_constant(0, power), weak_constant(1, power)
    is_zero = eq(power, zero)
    safe = select_n(is_zero, power, one)
    return select_n(is_zero, div(expm1(mul(safe, logarithm)), safe), logarithm)

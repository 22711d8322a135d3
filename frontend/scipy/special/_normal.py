"""The normal distribution in `axir.scipy.special`: tails, quantiles; Box and Cox' transforms."""

from __future__ import annotations

import math

from axir.dialect.core.array import ArrayLike
from axir.dialect.ops.elementwise.arithmetic import div, mul, neg, square, sub
from axir.dialect.ops.elementwise.comparison import eq, gt, select_n
from axir.dialect.ops.elementwise.transcendental import erfc, expm1, log, log1p
from axir.dialect.ops.special.integrals import erfcinv as inverse_complement
from axir.dialect.ops.special.integrals import erfcx
from axir.dialect.ops.special.integrals import ndtri as quantile
from axir.dialect.program.rules import Value

from ._common import evaluated_by, real_arguments, weak_constant


def _lower_tail(x: Value) -> Value:
    return mul(weak_constant(0.5, x), erfc(mul(weak_constant(-math.sqrt(0.5), x), x)))


def log_ndtr(x: ArrayLike, series_order: int = 3) -> Value:
    """Returns the logarithm of the normal distribution function, also far out in the tails.

    Above 0 from the upper tail, below as log(erfcx(-x / sqrt(2)) / 2) - x**2 / 2 (DLMF 7.2).

    Args:
        x: Array of real numbers.
        series_order: Ignored, because no series is truncated.

    >>> from axir.scipy.special import log_ndtr
    >>> log_ndtr(100.0)
    Array(-0., dtype=float32, weak_type=True)
    """
    return _log_ndtr(*real_arguments("log_ndtr", x))


@evaluated_by("log_ndtr")
def _log_ndtr(x: Value) -> Value:
    zero, half, root = (weak_constant(value, x) for value in (0, 0.5, math.sqrt(0.5)))
    is_high = gt(x, zero)
    upper = log1p(neg(_lower_tail(neg(select_n(is_high, zero, x)))))
    low = select_n(is_high, x, zero)
    tail = log(mul(half, erfcx(neg(mul(root, low)))))
    return select_n(is_high, sub(tail, mul(half, square(low))), upper)


def ndtri(p: ArrayLike) -> Value:
    """Returns the quantiles of the standard normal distribution, the inverse of `ndtr`.

    Args:
        p: Probabilities; 0 gives -inf, 1 gives inf, values outside [0, 1] give nan.

    >>> from axir.scipy.special import ndtri
    >>> ndtri(0.5)
    Array(0., dtype=float32, weak_type=True)
    """
    return quantile(*real_arguments("ndtri", p))


def erfcinv(y: ArrayLike) -> Value:
    """Returns the inverse of the complementary error function, exact also for small `y`.

    Args:
        y: Array of real numbers; 0 gives inf, 2 gives -inf, values outside [0, 2] give nan.
            Compiled programs take denormal numbers for 0, here as everywhere.

    >>> from axir.scipy.special import erfcinv
    >>> erfcinv(0.5)
    Array(0.47693628, dtype=float32, weak_type=True)
    """
    return inverse_complement(*real_arguments("erfcinv", y))


def boxcox(x: ArrayLike, lmbda: object) -> Value:
    """Returns (x**lmbda - 1) / lmbda, which is log(x) for lmbda = 0.

    >>> from axir.scipy.special import boxcox
    >>> boxcox(1.0, 0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return _boxcox(*real_arguments("boxcox", x, lmbda))


@evaluated_by("boxcox")
def _boxcox(x: Value, power: Value) -> Value:
    return _transform(log(x), power)


def boxcox1p(x: ArrayLike, lmbda: object) -> Value:
    """Returns ((1 + x)**lmbda - 1) / lmbda, which is log(1 + x) for lmbda = 0.

    >>> from axir.scipy.special import boxcox1p
    >>> boxcox1p(0.0, 2.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return _boxcox1p(*real_arguments("boxcox1p", x, lmbda))


@evaluated_by("boxcox1p")
def _boxcox1p(x: Value, power: Value) -> Value:
    return _transform(log1p(x), power)


def _transform(logarithm: Value, power: Value) -> Value:
    zero, one = weak_constant(0, power), weak_constant(1, power)
    is_zero = eq(power, zero)
    safe = select_n(is_zero, power, one)
    return select_n(is_zero, div(expm1(mul(safe, logarithm)), safe), logarithm)

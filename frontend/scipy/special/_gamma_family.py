"""Gamma, beta, zeta and hypergeometric functions of `axir.scipy.special`, incomplete ones too."""

from __future__ import annotations

import functools
import math
import operator

import numpy as np

from axir.dialect.core.annotations import HostArray, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.late_modules import scipy_special
from axir.dialect.ops.elementwise.arithmetic import add, div, floor, mul, neg, sub
from axir.dialect.ops.elementwise.arithmetic import max as larger
from axir.dialect.ops.elementwise.arithmetic import min as smaller
from axir.dialect.ops.elementwise.comparison import and_, eq, gt, lt, ne, or_, select_n
from axir.dialect.ops.elementwise.family import match_scalars, scipy_function
from axir.dialect.ops.elementwise.transcendental import exp, log, log1p
from axir.dialect.ops.special import hypergeometric
from axir.dialect.ops.special import special_functions as lax
from axir.dialect.ops.special.gamma_formulas import STIRLING
from axir.dialect.program.rules import Value
from axir.numpy._arguments.promotion import dtype_argument
from axir.numpy._arrays.creation import asarray

from ._common import (
    evaluated_by,
    real_arguments,
    unary_function,
    weak_constant,
)

gammaln = unary_function(
    "gammaln", lax.lgamma, "Logarithm of the absolute value of the gamma function."
)
digamma = unary_function(
    "digamma", lax.digamma, "Derivative of `gammaln`; nan at 0, -1, -2 and so on."
)


@evaluated_by("loggamma")
def _loggamma(x: Value) -> Value:
    return select_n(lt(x, weak_constant(0, x)), lax.lgamma(x), _nan(x))


loggamma = unary_function(
    "loggamma",
    _loggamma,
    "Logarithm of the gamma function; nan for negative numbers.",
)


def _nan(x: Value) -> Value:
    return weak_constant(math.nan, x)


@evaluated_by("gammasgn")
def _sign_of_gamma(x: Value) -> Value:
    """1 or -1; nan at the negative integers, and the sign of the zero at zeros."""
    one = weak_constant(1, x)
    whole = floor(x)
    half = mul(weak_constant(0.5, x), whole)
    is_odd = ne(half, floor(half))
    negative = select_n(is_odd, one, neg(one))
    negative = select_n(eq(x, whole), negative, _nan(x))
    at_zero = select_n(lt(div(one, x), weak_constant(0, x)), one, neg(one))
    value = select_n(lt(x, weak_constant(0, x)), one, negative)
    return select_n(ne(x, x), select_n(eq(x, weak_constant(0, x)), value, at_zero), x)


gammasgn = unary_function(
    "gammasgn",
    _sign_of_gamma,
    "Sign of the gamma function: 1 or -1, and nan at the negative integers.",
)


@evaluated_by("gamma")
def _gamma(x: Value) -> Value:
    return mul(_sign_of_gamma(x), exp(lax.lgamma(x)))


gamma = unary_function("gamma", _gamma, "The gamma function.")


def factorial(n: ArrayLike, exact: bool = False) -> Value:
    """Returns n!, which is gamma(n + 1); 0 for negative n.

    Args:
        n: Array of real numbers.
        exact: Must be False: the result is a float.

    Raises:
        NotImplementedError: for `exact=True`.

    >>> from axir.scipy.special import factorial
    >>> factorial(4.0).round()
    Array(24., dtype=float32, weak_type=True)
    """
    if exact:
        raise NotImplementedError("factorial: exact=True needs integers of any length.")
    return _factorial(*real_arguments("factorial", n))


@evaluated_by("factorial")
def _factorial(n: Value) -> Value:
    zero = weak_constant(0, n)
    return select_n(lt(n, zero), exp(lax.lgamma(add(n, weak_constant(1, n)))), zero)


def _stirling_rest(x: Value) -> Value:
    """Returns the remainder of Stirling's formula for log gamma(x), for x >= 10 (DLMF 5.11.1)."""
    inverse = div(weak_constant(1, x), x)
    square = mul(inverse, inverse)
    total = weak_constant(STIRLING[-1], x)
    for coefficient in STIRLING[-2::-1]:
        total = add(mul(total, square), weak_constant(coefficient, x))
    return mul(total, inverse)


def betaln(a: ArrayLike, b: ArrayLike) -> Value:
    """Returns the logarithm of the absolute value of the beta function.

    For large arguments it uses Stirling's series, because their log gammas would cancel.

    >>> from axir.scipy.special import betaln
    >>> betaln(1.0, 1.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return _betaln(*real_arguments("betaln", a, b))


@evaluated_by("betaln")
def _betaln(a: Value, b: Value) -> Value:
    low, high = smaller(a, b), larger(a, b)
    ten, half = weak_constant(10, a), weak_constant(0.5, a)
    is_far = and_(gt(high, ten), gt(low, weak_constant(0, a)))
    direct = sub(add(lax.lgamma(a), lax.lgamma(b)), lax.lgamma(add(a, b)))
    # The remainders of the Stirling formulas of b and a + b, both large.
    far, near = select_n(is_far, ten, high), select_n(is_far, weak_constant(1, a), low)
    both = add(near, far)
    rest = sub(_stirling_rest(far), _stirling_rest(both))
    shrinking = mul(sub(far, half), log1p(div(near, far)))
    by_gamma = sub(add(lax.lgamma(near), near), mul(near, log(both)))
    large = larger(near, ten)
    by_series = add(
        sub(mul(sub(large, half), log(div(large, both))), mul(half, log(both))),
        add(_stirling_rest(large), weak_constant(0.5 * math.log(2 * math.pi), a)),
    )
    leading = select_n(gt(near, ten), by_gamma, by_series)
    value = select_n(is_far, direct, sub(add(leading, rest), shrinking))
    # gamma(b) / a^b where a is infinite.
    infinite = weak_constant(math.inf, a)
    limit = select_n(gt(low, weak_constant(0, a)), infinite, neg(infinite))
    return select_n(and_(eq(high, infinite), eq(low, low)), value, limit)


def beta(a: ArrayLike, b: ArrayLike) -> Value:
    """Returns the beta function, gamma(a) gamma(b) / gamma(a + b).

    >>> from axir.scipy.special import beta
    >>> beta(1.0, 2.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return _beta(*real_arguments("beta", a, b))


@evaluated_by("beta")
def _beta(a: Value, b: Value) -> Value:
    signs = mul(mul(_sign_of_gamma(a), _sign_of_gamma(b)), _sign_of_gamma(add(a, b)))
    return mul(signs, exp(_betaln(a, b)))


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Value:
    """Returns the regularized incomplete beta function I(x; a, b), differentiable in x.

    >>> from axir.scipy.special import betainc
    >>> betainc(1.0, 2.0, 0.5)
    Array(0.75, dtype=float32, weak_type=True)
    """
    return lax.betainc(*real_arguments("betainc", a, b, x))


def gammainc(a: ArrayLike, x: ArrayLike) -> Value:
    """Returns the regularized lower incomplete gamma function P(a, x).

    >>> from axir.scipy.special import gammainc
    >>> gammainc(1.0, 0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return lax.igamma(*real_arguments("gammainc", a, x))


def gammaincc(a: ArrayLike, x: ArrayLike) -> Value:
    """Returns the regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x).

    >>> from axir.scipy.special import gammaincc
    >>> gammaincc(1.0, 0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return lax.igammac(*real_arguments("gammaincc", a, x))


def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Value:
    """Returns Hurwitz' zeta function, the sum of (k + q)**-x over k = 0, 1, ...

    Args:
        x: The exponent; nan below 1.
        q: The first term; 1 by default, which makes it Riemann's zeta function.

    >>> from axir.scipy.special import zeta
    >>> zeta(1.0, 2.0)
    Array(inf, dtype=float32, weak_type=True)
    """
    return lax.zeta(*real_arguments("zeta", x, 1.0 if q is None else q))


def polygamma(n: ArrayLike, x: ArrayLike) -> Value:
    """Returns derivative number n of `digamma`.

    >>> from axir.scipy.special import polygamma
    >>> polygamma(0, 1.0)
    Array(-0.5772157, dtype=float32, weak_type=True)
    """
    return lax.polygamma(*real_arguments("polygamma", n, x))


def multigammaln(a: ArrayLike, d: UserObject) -> Value:
    """Returns the logarithm of the multivariate gamma function of dimension d.

    Source: d (d - 1) / 4 log pi plus the sum of log gamma(a - j / 2) over j < d (DLMF 35.3.4).

    Raises:
        TypeError: if d is not a static integer.

    >>> from axir.scipy.special import multigammaln
    >>> multigammaln(1.0, 1)
    Array(0., dtype=float32, weak_type=True)
    """
    (a,) = real_arguments("multigammaln", a)
    size = operator.index(d)

    def reference(a: HostArray) -> HostArray:
        is_inside = size >= 1 and np.all(2 * a > size - 1)
        return scipy_function("multigammaln")(a, size) if is_inside else np.full_like(a, np.nan)

    return evaluated_by(reference)(functools.partial(_multigammaln, size))(a)


def _multigammaln(size: int, a: Value) -> Value:
    total = weak_constant(0.25 * size * (size - 1) * math.log(math.pi), a)
    for j in range(size):
        total = add(total, lax.lgamma(sub(a, weak_constant(0.5 * j, a))))
    return total


def poch(z: ArrayLike, m: ArrayLike) -> Value:
    """Returns Pochhammer's rising factorial gamma(z + m) / gamma(z).

    >>> from axir.scipy.special import poch
    >>> poch(3.0, 0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return _poch(*real_arguments("poch", z, m))


def _poch_of_positive(z: HostArray, m: HostArray) -> HostArray:
    """SciPy's function; nan, which leaves it to the formula, if a z is not positive."""
    return scipy_function("poch")(z, m) if (z > 0).all() else np.full_like(z, np.nan)


@evaluated_by(_poch_of_positive)
def _poch(z: Value, m: Value) -> Value:
    upper = add(z, m)
    size = exp(sub(lax.lgamma(upper), lax.lgamma(z)))
    value = mul(mul(_sign_of_gamma(upper), _sign_of_gamma(z)), size)
    return select_n(eq(m, weak_constant(0, m)), value, weak_constant(1, m))


def comb(N: object, k: object, *, repetition: bool = False) -> Value:
    """Returns the number of ways to choose k of N things, as a float; 0 if impossible.

    Args:
        N: Number of things.
        k: How many are taken.
        repetition: Whether things may be taken repeatedly.

    >>> from axir.scipy.special import comb
    >>> comb(4.0, 2.0).round()
    Array(6., dtype=float32, weak_type=True)
    """
    n, k = real_arguments("comb", N, k)
    one, zero = weak_constant(1, n), weak_constant(0, n)
    if repetition:
        n = sub(add(n, k), one)
    size = lax.lgamma(add(n, one))
    size = sub(size, add(lax.lgamma(add(k, one)), lax.lgamma(add(sub(n, k), one))))
    is_none = or_(or_(lt(k, zero), lt(n, zero)), gt(k, n))
    value = select_n(is_none, exp(size), zero)
    return select_n(and_(eq(n, neg(one)), eq(k, zero)), value, one) if repetition else value


def bernoulli(n: UserObject) -> Value:
    """Returns the Bernoulli numbers B0 to Bn, with B1 = -1/2.

    Source: B_2k = (-1)^(k+1) 2 (2k)! zeta(2k) / (2 pi)^2k (DLMF 25.6.2).

    Args:
        n: Static integer, at least 0.

    Raises:
        ParameterError: for a negative n.

    >>> from axir.scipy.special import bernoulli
    >>> bernoulli(1)
    Array([ 1. , -0.5], dtype=float32)
    """
    count = operator.index(n)
    if count < 0:
        raise ParameterError(f"bernoulli: n must be at least 0, but is {count}.")
    return asarray(scipy_special.bernoulli(count)[: count + 1], dtype_argument("bernoulli", float))


# Hypergeometric functions -------------------------------------------------------------------------


def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Value:
    """Returns Kummer's confluent hypergeometric function 1F1(a; b; x).

    Derivatives in a and b differentiate its series, which is limited to |x| of some thousands.

    Args:
        a: First parameter.
        b: Second parameter; infinite at 0, -1, -2 ... unless a is a greater one of them.
        x: Where.

    >>> from axir.scipy.special import hyp1f1
    >>> hyp1f1(1.0, 2.0, 0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return _hyp1f1(*real_arguments("hyp1f1", a, b, x))


@evaluated_by("hyp1f1")
def _hyp1f1(a: Value, b: Value, x: Value) -> Value:
    return hypergeometric.hyp1f1.bind(*match_scalars(a, b, x))


def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Value:
    """Returns Gauss' hypergeometric function 2F1(a, b; c; x) of a real x.

    Derivatives in a, b and c differentiate its series, for x from -5000 to 0.9998.

    Args:
        a: First parameter.
        b: Second parameter.
        c: Third parameter; infinite at 0, -1, -2 ... unless a or b is a greater one of them.
        x: Where; infinite above 1 unless a or b is 0, -1, -2 ...

    >>> from axir.scipy.special import hyp2f1
    >>> hyp2f1(1.0, 1.0, 1.0, 0.5)
    Array(2., dtype=float32, weak_type=True)
    """
    return _hyp2f1(*real_arguments("hyp2f1", a, b, c, x))


@evaluated_by("hyp2f1")
def _hyp2f1(a: Value, b: Value, c: Value, x: Value) -> Value:
    return hypergeometric.hyp2f1.bind(*match_scalars(a, b, c, x))

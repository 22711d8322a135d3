"""Elementary functions of `axir.scipy.special`: error function, entropies, softmaxes."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from axir.custom_derivatives import SymbolicZero, custom_jvp
from axir.dialect.core.annotations import Axes, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.ops.elementwise import transcendental as lax
from axir.dialect.ops.elementwise.arithmetic import add, div, mul, neg, sub
from axir.dialect.ops.elementwise.comparison import and_, eq, ge, gt, lt, not_, select_n
from axir.dialect.program.rules import Value
from axir.nn._normalization import log_softmax as log_softmax_along
from axir.nn._normalization import softmax as softmax_along
from axir.numpy._arguments.promotion import constant, promote_inexact
from axir.numpy._reductions.logsumexp import logsumexp as logsumexp

from ._common import evaluated_by, real_arguments, unary_function, weak_constant

erf = unary_function(
    "erf", lax.erf, "Error function: 2 / sqrt(pi) times the integral of exp(-t**2) to x."
)
erfc = unary_function(
    "erfc", lax.erfc, "Complementary error function, 1 - erf(x) without cancellation."
)
erfinv = unary_function("erfinv", lax.erf_inv, "Inverse of the error function, on (-1, 1).")


def expit(x: ArrayLike) -> Value:
    """Logistic function 1 / (1 + exp(-x)).

    >>> from axir.scipy.special import expit
    >>> expit(0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return lax.logistic(*promote_inexact("expit", x))


@evaluated_by("logit")
def _logit(x: Value) -> Value:
    return sub(lax.log(x), lax.log1p(neg(x)))


logit = unary_function("logit", _logit, "Inverse of the logistic function: log(x / (1 - x)).")


@evaluated_by("ndtr", is_strong=True)
def _ndtr(x: Value) -> Value:
    return mul(constant(0.5, x.dtype), lax.erfc(mul(x, constant(-math.sqrt(0.5), x.dtype))))


ndtr = unary_function("ndtr", _ndtr, "Distribution function of the standard normal distribution.")


# Products with logarithms ----------------------------------------------------------------------


def xlogy(x: ArrayLike, y: ArrayLike) -> Value:
    """Returns x log(y), which is 0 where x is 0, whatever y (unless it is NaN).

    >>> from axir.scipy.special import xlogy
    >>> xlogy(0.0, 0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return _xlogy(*real_arguments("xlogy", x, y))


@evaluated_by("xlogy")
def _xlogy(x: Value, y: Value) -> Value:
    return _times_log(x, y)


def xlog1py(x: ArrayLike, y: ArrayLike) -> Value:
    """Returns x log(1 + y), which is 0 where x is 0, whatever y (unless it is NaN).

    >>> from axir.scipy.special import xlog1py
    >>> xlog1py(0.0, -1.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return _xlog1py(*real_arguments("xlog1py", x, y))


@evaluated_by("xlog1py")
def _xlog1py(x: Value, y: Value) -> Value:
    return _times_log1p(x, y)


def _product_of_logarithm(
    x: Value, y: Value, logarithm: Callable[[Value], Value], is_regular: Value
) -> Value:
    """Multiplies x by a logarithm, which is left out where x is 0 and y outside its domain."""
    is_regular = and_(is_regular, lt(y, weak_constant(math.inf, y)))
    is_zero = and_(eq(x, weak_constant(0, x)), eq(y, y))
    return mul(x, logarithm(select_n(and_(is_zero, not_(is_regular)), y, weak_constant(1, y))))


def _slope(x: Value, y: Value, lowest: int) -> Value:
    """Returns x over the distance of y from the lowest, 0 where both are 0.

    Elsewhere it is the quotient, also for an x of 0, because the derivative by x is not 0.
    """
    distance = sub(y, weak_constant(lowest, y))
    is_open = and_(eq(x, weak_constant(0, x)), eq(distance, weak_constant(0, y)))
    quotient = div(x, select_n(is_open, distance, weak_constant(1, y)))
    return select_n(is_open, quotient, weak_constant(0, x))


def _with_partials(
    logarithm: Callable[[Value], Value], lowest: int
) -> Callable[[Value, Value], Value]:
    """Returns x times a logarithm of y, with a derivative without the masked case.

    The derivative by x is the logarithm also where x is 0.
    """

    @custom_jvp
    def product(x: Value, y: Value) -> Value:
        return _product_of_logarithm(x, y, logarithm, gt(y, weak_constant(lowest, y)))

    def rule(
        primals: tuple[Value, Value], tangents: tuple[object, object]
    ) -> tuple[Value, UserObject]:
        (x, y), (dx, dy) = primals, tangents
        terms = []
        if type(dx) is not SymbolicZero:
            terms.append(mul(dx, logarithm(y)))
        if type(dy) is not SymbolicZero:
            terms.append(mul(dy, _slope(x, y, lowest)))
        out = product(x, y)
        if not terms:
            return out, SymbolicZero.from_primal_value(out)
        return out, functools.reduce(add, terms)

    product.defjvp(rule, symbolic_zeros=True)
    return product


_times_log, _times_log1p = _with_partials(lax.log, 0), _with_partials(lax.log1p, -1)


def entr(x: ArrayLike) -> Value:
    """Returns -x log(x) for x > 0, 0 for 0, and -inf for negative x: the terms of an entropy.

    >>> from axir.scipy.special import entr
    >>> entr(1.0)
    Array(-0., dtype=float32, weak_type=True)
    """
    return _entr(*real_arguments("entr", x))


@evaluated_by("entr")
def _entr(x: Value) -> Value:
    return _minus_x_log_x(x)


@custom_jvp
def _minus_x_log_x(x: Value) -> Value:
    is_negative = lt(x, weak_constant(0, x))
    safe = select_n(is_negative, x, weak_constant(1, x))
    return select_n(is_negative, neg(_xlogy(safe, safe)), weak_constant(-math.inf, x))


@_minus_x_log_x.defjvp
def _entr_jvp(primals: tuple[Value], tangents: tuple[Value]) -> tuple[Value, Value]:
    (x,), (dx,) = primals, tangents
    slope = neg(add(lax.log(x), weak_constant(1, x)))
    return _minus_x_log_x(x), mul(dx, slope)


def rel_entr(p: ArrayLike, q: ArrayLike) -> Value:
    """Returns p log(p / q) for p, q > 0, 0 for p = 0 and q >= 0, and infinity elsewhere.

    nan where p or q is nan.

    >>> from axir.scipy.special import rel_entr
    >>> rel_entr(0.0, 2.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return _rel_entr(*real_arguments("rel_entr", p, q))


@evaluated_by("rel_entr")
def _rel_entr(p: Value, q: Value) -> Value:
    zero, one = weak_constant(0, p), weak_constant(1, p)
    is_regular = and_(gt(p, zero), gt(q, zero))
    is_zero = and_(eq(p, zero), ge(q, zero))
    safe_p, safe_q = select_n(is_regular, one, p), select_n(is_regular, one, q)
    regular = mul(safe_p, sub(lax.log(safe_p), lax.log(safe_q)))
    is_number = and_(eq(p, p), eq(q, q))
    beyond = select_n(is_number, weak_constant(math.nan, p), weak_constant(math.inf, p))
    return select_n(is_regular, select_n(is_zero, beyond, zero), regular)


def kl_div(p: ArrayLike, q: ArrayLike) -> Value:
    """Returns rel_entr(p, q) - p + q: the terms of the Kullback-Leibler divergence.

    >>> from axir.scipy.special import kl_div
    >>> kl_div(1.0, 1.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return _kl_div(*real_arguments("kl_div", p, q))


@evaluated_by("kl_div")
def _kl_div(p: Value, q: Value) -> Value:
    return add(sub(_rel_entr(p, q), p), q)


# Along axes ------------------------------------------------------------------------------------


def softmax(x: ArrayLike, /, *, axis: Axes = None) -> Value:
    """Returns exponentials, scaled so that they sum to one along axes, by default all.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.special import softmax
    >>> softmax(jnp.array([0.0, 0.0]))
    Array([0.5, 0.5], dtype=float32)
    """
    return softmax_along(x, axis)


def log_softmax(x: ArrayLike, /, *, axis: Axes = None) -> Value:
    """Returns the logarithm of `softmax`, without underflow.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.special import log_softmax
    >>> log_softmax(jnp.array([1000.0, 0.0]))
    Array([    0., -1000.], dtype=float32)
    """
    return log_softmax_along(x, axis)

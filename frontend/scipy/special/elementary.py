"""Elementary functions of `axir.scipy.special`: error function, entropies, softmaxes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from axir.dialect import dtypes
from axir.dialect.array import ConcreteArray
from axir.dialect.ops import transcendental as lax
from axir.dialect.ops.conversion import convert_element_type, real, stop_gradient
from axir.dialect.ops.elementwise import abs as absolute
from axir.dialect.ops.elementwise import (
    add,
    and_,
    eq,
    ge,
    gt,
    is_finite,
    lt,
    mul,
    ne,
    neg,
    not_,
    select_n,
    sign,
    sub,
)
from axir.dialect.types import ShapedArray
from axir.numpy.checks import canonical_axes, spread
from axir.numpy.elementwise import evaluate
from axir.numpy.promotion import broadcast_arguments, constant, promote_inexact
from axir.numpy.reductions import max as largest
from axir.numpy.reductions import sum as total
from axir.scipy.special.common import real_arguments, unary_function, weak_constant

Value = Any

erf = unary_function(
    "erf", lax.erf, "Error function: 2 / sqrt(pi) times the integral of exp(-t**2) to x."
)
erfc = unary_function(
    "erfc", lax.erfc, "Complementary error function, 1 - erf(x) without cancellation."
)
erfinv = unary_function("erfinv", lax.erf_inv, "Inverse of the error function, on (-1, 1).")


def expit(x: Any) -> Value:
    """Logistic function 1 / (1 + exp(-x)).

    >>> from axir.scipy.special import expit
    >>> expit(0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return lax.logistic(*promote_inexact("expit", x))


def _logit(x: Value) -> Value:
    return sub(lax.log(x), lax.log1p(neg(x)))


logit = unary_function("logit", _logit, "Inverse of the logistic function: log(x / (1 - x)).")


def _ndtr(x: Value) -> Value:
    return mul(constant(0.5, x.dtype), lax.erfc(mul(x, constant(-math.sqrt(0.5), x.dtype))))


ndtr = unary_function("ndtr", _ndtr, "Distribution function of the standard normal distribution.")


# Products with logarithms ----------------------------------------------------------------------


def xlogy(x: Any, y: Any) -> Value:
    """Returns x log(y), which is 0 where x is 0, whatever y (unless it is NaN).

    >>> from axir.scipy.special import xlogy
    >>> xlogy(0.0, 0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    x, y = real_arguments("xlogy", x, y)
    return _product_of_logarithm(x, y, lax.log, gt(y, weak_constant(0, y)))


def xlog1py(x: Any, y: Any) -> Value:
    """Returns x log(1 + y), which is 0 where x is 0, whatever y (unless it is NaN).

    >>> from axir.scipy.special import xlog1py
    >>> xlog1py(0.0, -1.0)
    Array(0., dtype=float32, weak_type=True)
    """
    x, y = real_arguments("xlog1py", x, y)
    return _product_of_logarithm(x, y, lax.log1p, gt(y, weak_constant(-1, y)))


def _product_of_logarithm(
    x: Value, y: Value, logarithm: Callable[[Value], Value], is_regular: Value
) -> Value:
    """Multiplies x by a logarithm, which is left out where x is 0 and y outside its domain."""
    is_regular = and_(is_regular, lt(y, weak_constant(math.inf, y)))
    is_zero = and_(eq(x, weak_constant(0, x)), eq(y, y))
    return mul(x, logarithm(select_n(and_(is_zero, not_(is_regular)), y, weak_constant(1, y))))


def entr(x: Any) -> Value:
    """Returns -x log(x) for x > 0, 0 for 0, and -inf for negative x: the terms of an entropy.

    >>> from axir.scipy.special import entr
    >>> entr(1.0)
    Array(-0., dtype=float32, weak_type=True)
    """
    (x,) = real_arguments("entr", x)
    is_negative = lt(x, weak_constant(0, x))
    safe = select_n(is_negative, x, weak_constant(1, x))
    return select_n(is_negative, neg(xlogy(safe, safe)), weak_constant(-math.inf, x))


def rel_entr(p: Any, q: Any) -> Value:
    """Returns p log(p / q) for p, q > 0, 0 for p = 0 and q >= 0, and infinity elsewhere.

    >>> from axir.scipy.special import rel_entr
    >>> rel_entr(0.0, 2.0)
    Array(0., dtype=float32, weak_type=True)
    """
    p, q = real_arguments("rel_entr", p, q)
    zero, one = weak_constant(0, p), weak_constant(1, p)
    is_regular = and_(gt(p, zero), gt(q, zero))
    is_zero = and_(eq(p, zero), ge(q, zero))
    safe_p, safe_q = select_n(is_regular, one, p), select_n(is_regular, one, q)
    regular = mul(safe_p, sub(lax.log(safe_p), lax.log(safe_q)))
    return select_n(is_regular, select_n(is_zero, weak_constant(math.inf, p), zero), regular)


def kl_div(p: Any, q: Any) -> Value:
    """Returns rel_entr(p, q) - p + q: the terms of the Kullback-Leibler divergence.

    >>> from axir.scipy.special import kl_div
    >>> kl_div(1.0, 1.0)
    Array(0., dtype=float32, weak_type=True)
    """
    p, q = real_arguments("kl_div", p, q)
    return add(sub(rel_entr(p, q), p), q)


# Along axes ------------------------------------------------------------------------------------


# Concrete arrays of these dtypes are evaluated by NumPy in one step instead of op by op.
_DIRECT = frozenset((dtypes.float32, dtypes.float64))


def _evaluated_logsumexp(a: ConcreteArray, axis: Any, keepdims: bool) -> Value:
    axes = canonical_axes("logsumexp", axis, a.ndim)
    extents = [1 if d in axes else extent for d, extent in enumerate(a.shape)]
    shape = tuple([n for d, n in enumerate(extents) if keepdims or d not in axes])

    def compute(x: np.ndarray) -> Any:
        shift = np.maximum.reduce(x, axis=axes, keepdims=True)
        shift = np.where(np.isfinite(shift), shift, 0)
        added = np.add.reduce(np.exp(x - shift), axis=axes, keepdims=True)
        return (np.log(added) + shift).reshape(shape)

    return evaluate("logsumexp", compute, ShapedArray(shape, a.dtype), a)


def logsumexp(
    a: Any,
    axis: Any = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: Any = None,
) -> Any:
    """Returns the logarithm of the sum of exponentials along axes, without overflow.

    Args:
        a: Array; integers become floats.
        axis: Axis or tuple of axes; all by default.
        b: Factors of the exponentials, broadcast against `a`.
        keepdims: Whether the axes stay, with extent 1.
        return_sign: Whether to return the logarithm of the absolute value of the sum, and its sign;
            without it a negative sum gives NaN.
        where: Bool array of the elements that take part, broadcast against `a`.

    Returns:
        An array without the axes, -inf where there are no elements; with `return_sign` a pair.

    Raises:
        AxisError: for an axis out of range.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.special import logsumexp
    >>> logsumexp(jnp.array([1000.0, 0.0]))
    Array(1000., dtype=float32)
    """
    name = "logsumexp"
    if (
        type(a) is ConcreteArray and b is None and where is None and not return_sign
        and a.type.dtype in _DIRECT and a.type.size
    ):  # fmt: skip
        return _evaluated_logsumexp(a, axis, keepdims)
    if b is None:
        (a,) = promote_inexact(name, a)
    else:
        a, b = broadcast_arguments(name, *promote_inexact(name, a, b))
        # What is not counted must not decide about the shift.
        a = select_n(ne(b, constant(0, b.dtype)), constant(-np.inf, a.dtype), a)
    shift = _shift(a, axis, keepdims=True, where=where)
    exponentials = lax.exp(sub(a, spread(convert_element_type(shift, a.dtype), a.shape)))
    if b is not None:
        exponentials = mul(exponentials, b)
    added = total(exponentials, axis, keepdims=keepdims, where=where)
    shift = shift if keepdims else _shift(a, axis, keepdims=False, where=where)
    signs = sign(added)
    is_complex = dtypes.is_complex(added.dtype)
    if return_sign or not is_complex:
        added = absolute(added)
    result = add(lax.log(added), convert_element_type(shift, added.dtype))
    if return_sign:
        return result, signs
    if b is not None and not is_complex:
        is_negative = lt(signs, constant(0, signs.dtype))
        return select_n(is_negative, result, constant(np.nan, result.dtype))
    return result


def _shift(a: Value, axis: Any, keepdims: bool, where: Any) -> Value:
    """Returns the largest (real part of the) elements; zero where that is not finite."""
    parts = stop_gradient(real(a) if dtypes.is_complex(a.dtype) else a)
    peak = largest(parts, axis, keepdims=keepdims, initial=-np.inf, where=where)
    return select_n(is_finite(peak), constant(0, peak.dtype), peak)


def softmax(x: Any, /, *, axis: Any = None) -> Value:
    """Returns exponentials, scaled so that they sum to one along axes, by default all.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.special import softmax
    >>> softmax(jnp.array([0.0, 0.0]))
    Array([0.5, 0.5], dtype=float32)
    """
    from axir.nn.normalization import softmax as along_axes

    return along_axes(x, axis)


def log_softmax(x: Any, /, *, axis: Any = None) -> Value:
    """Returns the logarithm of `softmax`, without underflow.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.special import log_softmax
    >>> log_softmax(jnp.array([1000.0, 0.0]))
    Array([    0., -1000.], dtype=float32)
    """
    from axir.nn.normalization import log_softmax as along_axes

    return along_axes(x, axis)

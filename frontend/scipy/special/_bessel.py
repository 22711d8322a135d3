"""Bessel functions of `axir.scipy.special`."""

from __future__ import annotations

import functools
import math
import operator

import numpy as np

import axir.numpy as jnp
from axir.custom_derivatives import custom_jvp
from axir.dialect.core.array import ArrayLike, ConcreteArray
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.arithmetic import abs as absolute
from axir.dialect.ops.elementwise.arithmetic import mul, sign
from axir.dialect.ops.elementwise.family import scipy_function
from axir.dialect.ops.special.special_functions import bessel_i0e, bessel_i1e
from axir.dialect.program.rules import Value
from axir.lax import scan
from axir.numpy._functions.applied_functions import times_exp

from ._common import evaluated_by, is_known, real_arguments, unary_function

i0e = unary_function("i0e", bessel_i0e, "Modified Bessel function I0, times exp(-|x|).")
i1e = unary_function("i1e", bessel_i1e, "Modified Bessel function I1, times exp(-|x|).")


@evaluated_by("i0")
def _i0(x: Value) -> Value:
    # Not abs: it has a slope at zero, and the slope of this function there is 0.
    return times_exp(bessel_i0e(x), mul(x, sign(x)))


@evaluated_by("i1")
def _i1(x: Value) -> Value:
    return times_exp(bessel_i1e(x), absolute(x))


i0 = unary_function("i0", _i0, "Modified Bessel function I0.")
i1 = unary_function("i1", _i1, "Modified Bessel function I1.")


def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Value:
    """Returns the Bessel functions of the first kind of the orders 0 to v.

    Near 0 by their continued fraction, evaluated backwards, and the sum of the even ones, which is
    1 (DLMF 10.10.1, 10.12.4). Far away orders 0 and 1 by Hankel's expansion (10.17.3), and from
    there upwards by the recurrence.

    Args:
        z: Array of real numbers.
        v: The greatest order, static.
        n_iter: Steps of the continued fraction at least; as many as are needed are made anyway.

    Returns:
        Array of shape (v + 1, *z.shape).

    Raises:
        DTypeError: for complex numbers.
        ParameterError: for a negative order.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.special import bessel_jn
    >>> bessel_jn(jnp.array(0.0), v=2)
    Array([1., 0., 0.], dtype=float32)
    """
    (x,) = real_arguments("bessel_jn", z)
    greatest = operator.index(v)
    if greatest < 0:
        raise ParameterError(f"bessel_jn: the order v must be at least 0, but is {greatest}.")
    if is_known(x) and x.dtype.itemsize >= 4 and np.isfinite(x.host()).all():
        orders = np.arange(greatest + 1, dtype=x.dtype).reshape(-1, *[1] * x.ndim)
        values = np.asarray(scipy_function("jv")(orders, x.host()), x.dtype)
        return ConcreteArray(ShapedArray(values.shape, x.dtype), values)
    return _bessel_jn(greatest, operator.index(n_iter), x)


@functools.partial(custom_jvp, nondiff_argnums=(0, 1))
def _bessel_jn(greatest: int, steps: int, x: Value) -> Value:
    size, far = abs(x), max(25.0, float(greatest))
    is_far = size >= far
    near = _bessel_near(greatest, steps, jnp.where(is_far, 1.0, size), far)
    above = _bessel_far(greatest, jnp.where(is_far, size, far))
    values = jnp.where(is_far, above, near)
    is_odd = jnp.reshape(jnp.arange(greatest + 1) % 2 == 1, (-1, *[1] * x.ndim))
    return jnp.where(is_odd & (x < 0), -values, values)


@_bessel_jn.defjvp
def _bessel_tangent(
    greatest: int, steps: int, primals: tuple[Value], tangents: tuple[Value]
) -> tuple[Value, Value]:
    # DLMF 10.6.1; the function of order -1 is the negated function of order 1.
    values = _bessel_jn(greatest + 1, steps, *primals)
    below = jnp.concatenate([-values[1:2], values[:-2]])
    return values[:-1], 0.5 * (below - values[1:]) * tangents[0]


def _bessel_near(greatest: int, steps: int, x: Value, far: float) -> Value:
    def step(state: tuple[Value, Value], k: Value) -> tuple[tuple[Value, Value], Value]:
        ratio, total = state
        rest = 2 * k - x * ratio
        ratio = x / jnp.where(rest == 0, _LEAST, rest)  # J_k / J_{k-1}
        return (ratio, ratio * (jnp.where(k % 2 == 0, 1, 0) + total)), ratio

    count = max(steps, math.ceil(far + 12 * far ** (1 / 3)) + 5)
    zero = jnp.zeros_like(x)
    orders = jnp.arange(1, count + 1, dtype=x.dtype)
    (_, total), ratios = scan(step, (zero, zero), orders, reverse=True)
    first = 1 / (1 + 2 * total)
    factors = jnp.concatenate([first[None], ratios[:greatest]])
    return jnp.cumprod(factors, axis=0)


_LEAST = 1e-30
# Coefficients of 1 / x^k in Hankel's expansions of the orders 0 and 1 (DLMF 10.17.1).
_HANKEL = [
    [
        math.prod((4 * order**2 - (2 * j - 1) ** 2) / (8 * j) for j in range(1, k + 1))
        for k in range(18)
    ]
    for order in (0, 1)
]


def _bessel_far(greatest: int, x: Value) -> Value:
    inverse = 1 / x
    square = -jnp.square(inverse)
    even, odd = [], []
    for coefficients in _HANKEL:
        even.append(jnp.polyval(jnp.array(coefficients[-2::-2], x.dtype), square))
        odd.append(inverse * jnp.polyval(jnp.array(coefficients[::-2], x.dtype), square))
    sine, cosine, scale = jnp.sin(x), jnp.cos(x), jnp.sqrt(inverse / math.pi)
    plus, minus = (sine + cosine) * scale, (sine - cosine) * scale
    first = [plus * even[0] - minus * odd[0], minus * even[1] + plus * odd[1]]
    # At infinity the angle is undefined, but the size is 0.
    first = [jnp.where(x == math.inf, 0, value) for value in first]

    def step(state: tuple[Value, Value], k: Value) -> tuple[tuple[Value, Value], Value]:
        before, current = state
        following = 2 * k * inverse * current - before
        return (current, following), following

    if greatest < 2:
        return jnp.stack(first[: greatest + 1])
    orders = jnp.arange(1, greatest, dtype=x.dtype)
    return jnp.concatenate([jnp.stack(first), scan(step, (first[0], first[1]), orders)[1]])

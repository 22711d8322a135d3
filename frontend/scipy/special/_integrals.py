"""Error functions' relatives and functions that are integrals, of `axir.scipy.special`."""

from __future__ import annotations

from axir.dialect.core import dtypes
from axir.dialect.core.array import ArrayLike
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.special import integrals as lax
from axir.dialect.program.rules import Value
from axir.numpy._arguments.promotion import promote_inexact

from ._common import real_arguments, unary_function

erfcx = unary_function(
    "erfcx", lax.erfcx, "Scaled complementary error function, exp(x**2) erfc(x)."
)
dawsn = unary_function(
    "dawsn", lax.dawsn, "Dawson's integral: exp(-x**2) times the integral of exp(t**2) to x."
)
exp1 = unary_function(
    "exp1",
    lax.exp1,
    "Exponential integral E1: of exp(-t) / t from x on; nan for negative numbers.",
)
expi = unary_function(
    "expi", lax.expi, "Exponential integral Ei: the principal value of that of exp(t) / t up to x."
)
spence = unary_function(
    "spence",
    lax.spence,
    "Spence's function, the dilogarithm of 1 - x: the integral of log(t) / (1 - t) from 1 to x.",
)


def wofz(z: ArrayLike) -> Value:
    """Returns Faddeeva's function exp(-z**2) erfc(-iz), a complex array.

    >>> from axir.scipy.special import wofz
    >>> wofz(0.0)
    Array(1.+0.j, dtype=complex64, weak_type=True)
    """
    (value,) = promote_inexact("wofz", z)
    if not dtypes.is_complex(value.dtype):
        dtype = dtypes.complex128 if value.dtype == dtypes.float64 else dtypes.complex64
        value = convert_element_type(value, dtype, value.weak_type)
    return lax.wofz(value)


def expn(n: ArrayLike, x: ArrayLike) -> Value:
    """Returns the generalized exponential integral: of exp(-x t) / t**n from 1 on.

    Args:
        n: The order, an integer: 0, 1, 2, ...; nan for others.
        x: Where; nan for negative numbers.

    >>> from axir.scipy.special import expn
    >>> expn(3, 0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return lax.expn(*real_arguments("expn", n, x))


def sici(x: ArrayLike) -> tuple[Value, Value]:
    """Returns the integrals of sin(t) / t from 0 to x, and of -cos(t) / t from |x| on.

    >>> from axir.scipy.special import sici
    >>> sici(0.0)
    (Array(0., dtype=float32, weak_type=True), Array(-inf, dtype=float32, weak_type=True))
    """
    (x,) = real_arguments("sici", x)
    return lax.sine_integral(x), lax.cosine_integral(x)


def fresnel(x: ArrayLike) -> tuple[Value, Value]:
    """Returns the integrals of sin(pi t**2 / 2) and cos(pi t**2 / 2) from 0 to x.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.special import fresnel
    >>> fresnel(jnp.float32(jnp.inf))
    (Array(0.5, dtype=float32), Array(0.5, dtype=float32))
    """
    (x,) = real_arguments("fresnel", x)
    return lax.fresnel_sine(x), lax.fresnel_cosine(x)


def owens_t(h: ArrayLike, a: ArrayLike) -> Value:
    """Returns Owen's T function.

    The probability of X > h and 0 < Y < a X for independent standard normal numbers X and Y.

    >>> from axir.scipy.special import owens_t
    >>> owens_t(0.0, 1.0)
    Array(0.125, dtype=float32, weak_type=True)
    """
    return lax.owens_t(*real_arguments("owens_t", h, a))

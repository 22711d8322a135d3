"""Elementwise exponentials, logarithms, roots, trigonometric and hyperbolic functions, and angles.

Integers become floats. Elsewhere: powers (`arithmetic.py`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from axir.custom_derivatives import SymbolicZero, custom_jvp
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import UserFunction, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.ops.elementwise import arithmetic as elementwise
from axir.dialect.ops.elementwise import transcendental as lax
from axir.dialect.ops.elementwise.arithmetic import add, div, is_finite, mul, neg, square, sub
from axir.dialect.ops.elementwise.comparison import and_, eq, gt, not_, or_, select_n
from axir.dialect.ops.elementwise.conversion import complex_, convert_element_type
from axir.dialect.ops.elementwise.conversion import conj as complex_conjugate
from axir.dialect.ops.elementwise.conversion import imag as imaginary
from axir.dialect.ops.elementwise.conversion import real as real_part
from axir.dialect.ops.elementwise.family import full
from axir.dialect.program.rules import Value
from axir.numpy._arguments.promotion import (
    array_argument,
    broadcast_arguments,
    constant,
    promote_inexact,
    require_real,
)

from .arithmetic import maximum
from .elementwise import COMPLEX, FLOAT, binary, evaluated_by, unary

__all__ = [
    "acos", "acosh", "angle", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2",
    "arctanh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "conj", "conjugate", "cos",
    "cosh", "deg2rad", "degrees", "exp", "exp2", "expm1", "hypot", "imag", "log", "log1p", "log2",
    "log10", "logaddexp", "logaddexp2", "rad2deg", "radians", "real", "sin", "sinc", "sinh", "sqrt",
    "tan", "tanh",
]  # fmt: skip


def _like(value: float, x: Value) -> Value:
    return constant(value, x.type.dtype, True)


# Exponentials, logarithms, roots ---------------------------------------------------------------

exp = unary("exp", lax.exp, "Exponential, the base being e.")
exp2 = unary("exp2", lax.exp2, "Power of two.")
expm1 = unary("expm1", lax.expm1, "exp(x) - 1, exact also for small x.")
log = unary("log", lax.log, "Natural logarithm; NaN for negative reals.")
log1p = unary("log1p", lax.log1p, "log(1 + x), exact also for small x.")
sqrt = unary("sqrt", lax.sqrt, "Square root; NaN for negative reals.")
cbrt = unary("cbrt", lax.cbrt, "Real cube root.", domain=FLOAT)


def _scaled_logarithm(base: float) -> UserObject:
    def apply(x: Value) -> Value:
        if dtypes.is_complex(x.dtype):
            # A real divisor divides both parts exactly alike.
            value = lax.log(x)
            divisor = constant(math.log(base), dtypes.real_dtype(x.dtype))
            return complex_(div(real_part(value), divisor), div(imaginary(value), divisor))
        return div(lax.log(x), constant(math.log(base), x.dtype))

    return apply


log2 = unary("log2", _scaled_logarithm(2.0), "Logarithm to the base of two.")
log10 = unary("log10", _scaled_logarithm(10.0), "Logarithm to the base of ten.")


def _difference(x: Value, y: Value) -> Value:
    """Returns x - y, which is zero also for equal infinities."""
    return select_n(eq(x, y), sub(x, y), _like(0.0, x))


def _distance(x: Value, y: Value) -> Value:
    """Returns |x - y|, which is zero also for equal infinities."""
    return elementwise.abs(_difference(x, y))


def _with_shares(function: Callable[[Value, Value], Value], scale: float) -> UserFunction:
    """Returns the logarithm of a sum of two powers with its derivative: the share of each power.

    The formula has kinks where x = y. They cancel in the sum, but not in the derivatives of its
    parts.

    Args:
        function: Computes the logarithm.
        scale: The natural logarithm of the base.
    """
    function = custom_jvp(function)

    def rule(
        primals: tuple[Value, Value], tangents: tuple[object, object]
    ) -> tuple[Value, UserObject]:
        x, y = primals
        out = function(x, y)
        is_infinite = and_(eq(x, y), not_(is_finite(x)))
        gap = select_n(is_infinite, sub(x, y), _like(0.0, x))
        gap = gap if scale == 1 else mul(gap, _like(scale, x))
        moved = [
            mul(lax.logistic(part), tangent)
            for part, tangent in zip((gap, neg(gap)), tangents, strict=True)
            if type(tangent) is not SymbolicZero
        ]
        if not moved:
            return out, SymbolicZero.from_primal_value(out)
        return out, functools.reduce(add, moved)

    function.defjvp(rule, symbolic_zeros=True)
    return function


@functools.partial(_with_shares, scale=1.0)
def _log_of_sum(x: Value, y: Value) -> Value:
    return add(elementwise.max(x, y), lax.log1p(lax.exp(neg(_distance(x, y)))))


@functools.partial(_with_shares, scale=math.log(2.0))
def _log2_of_sum(x: Value, y: Value) -> Value:
    excess = div(lax.log1p(lax.exp2(neg(_distance(x, y)))), _like(math.log(2.0), x))
    return add(elementwise.max(x, y), excess)


@evaluated_by(np.logaddexp, (dtypes.float32, dtypes.float64))
def _logaddexp(x: Value, y: Value) -> Value:
    # The larger one plus log(1 + exp(-|x - y|)) overflows nowhere.
    if dtypes.is_complex(x.dtype):
        largest = maximum(x, y)
        smallest = sub(add(x, y), largest)
        return add(largest, lax.log1p(lax.exp(_difference(smallest, largest))))
    return _log_of_sum(x, y)


@evaluated_by(np.logaddexp2, (dtypes.float32, dtypes.float64))
def _logaddexp2(x: Value, y: Value) -> Value:
    if dtypes.is_complex(x.dtype):
        scale = constant(math.log(2.0), x.dtype, True)
        return div(_logaddexp(mul(x, scale), mul(y, scale)), scale)
    return _log2_of_sum(x, y)


logaddexp = binary(
    "logaddexp", _logaddexp, "log(exp(x) + exp(y)), without overflow.", promotion=promote_inexact
)
logaddexp2 = binary(
    "logaddexp2", _logaddexp2, "log2(2**x + 2**y), without overflow.", promotion=promote_inexact
)


@evaluated_by(np.hypot, (dtypes.float32, dtypes.float64))
def _hypot(x: Value, y: Value) -> Value:
    require_real("hypot", x)
    x, y = elementwise.abs(x), elementwise.abs(y)
    larger, smaller = elementwise.max(x, y), elementwise.min(x, y)
    one, zero = _like(1.0, x), _like(0.0, x)
    # Scaled by the larger side, so that no square overflows.
    is_plain = and_(gt(larger, zero), elementwise.is_finite(larger))
    ratio = div(smaller, select_n(is_plain, one, larger))
    length = mul(larger, lax.sqrt(add(one, square(select_n(is_plain, zero, ratio)))))
    infinite = or_(eq(x, _like(math.inf, x)), eq(y, _like(math.inf, y)))
    return select_n(infinite, length, _like(math.inf, x))


hypot = binary(
    "hypot",
    _hypot,
    "Length of the hypotenuse, sqrt(x**2 + y**2), without overflow.",
    promotion=promote_inexact,
)

# Trigonometric and hyperbolic functions --------------------------------------------------------

sin = unary("sin", lax.sin, "Sine of an angle in radians.")
cos = unary("cos", lax.cos, "Cosine of an angle in radians.")
tan = unary("tan", lax.tan, "Tangent of an angle in radians.")
arcsin = asin = unary("arcsin", lax.asin, "Angle in [-pi/2, pi/2] of a given sine; else NaN.")
arccos = acos = unary("arccos", lax.acos, "Angle in [0, pi] of a given cosine; else NaN.")
arctan = atan = unary("arctan", lax.atan, "Angle in [-pi/2, pi/2] of a given tangent.")
arctan2 = atan2 = binary(
    "arctan2",
    lax.atan2,
    "Angle in [-pi, pi] of the point with ordinate x and abscissa y.",
    promotion=promote_inexact,
    domain=FLOAT,
)
sinh = unary("sinh", lax.sinh, "Hyperbolic sine.")
cosh = unary("cosh", lax.cosh, "Hyperbolic cosine.")
tanh = unary("tanh", lax.tanh, "Hyperbolic tangent.")
arcsinh = asinh = unary("arcsinh", lax.asinh, "Inverse of the hyperbolic sine.")
arccosh = acosh = unary("arccosh", lax.acosh, "Inverse of the hyperbolic cosine; NaN below one.")
arctanh = atanh = unary("arctanh", lax.atanh, "Inverse of the hyperbolic tangent.")
deg2rad = radians = unary(
    "deg2rad", lambda x: mul(x, _like(math.pi / 180, x)), "Degrees in radians."
)
rad2deg = degrees = unary(
    "rad2deg", lambda x: mul(x, _like(180 / math.pi, x)), "Radians in degrees."
)


def _sinc(x: Value) -> Value:
    angle = mul(x, _like(math.pi, x))
    at_zero = eq(angle, _like(0.0, x))
    safe = select_n(at_zero, angle, _like(1.0, x))
    # The series at zero has the right derivatives there, up to the fifth order.
    squared = square(angle)
    series = add(
        sub(_like(1.0, x), mul(squared, _like(1 / 6, x))),
        mul(square(squared), _like(1 / 120, x)),
    )
    return select_n(at_zero, div(lax.sin(safe), safe), series)


sinc = unary("sinc", _sinc, "sin(pi x) / (pi x), one at zero.")

# Complex numbers -------------------------------------------------------------------------------


def real(val: ArrayLike, /) -> Value:
    """Returns the real part, elementwise; real numbers are returned unchanged.

    >>> import axir.numpy as jnp
    >>> jnp.real(jnp.array([1 + 2j]))
    Array([1.], dtype=float32)
    """
    val = array_argument("real", val)
    if not dtypes.is_complex(val.dtype):
        return val
    return _as_weak_as(val, real_part(val))


def imag(val: ArrayLike, /) -> Value:
    """Returns the imaginary part, elementwise; zero for real numbers.

    >>> import axir.numpy as jnp
    >>> jnp.imag(jnp.array([1 + 2j]))
    Array([2.], dtype=float32)
    """
    val = array_argument("imag", val)
    if not dtypes.is_complex(val.dtype):
        return full(val.shape, 0, val.dtype)
    return _as_weak_as(val, imaginary(val))


def _as_weak_as(x: Value, part: Value) -> Value:
    return convert_element_type(part, part.dtype, True) if x.weak_type else part


def conjugate(x: ArrayLike, /) -> Value:
    """Returns the complex conjugate, elementwise; real numbers stay.

    >>> import axir.numpy as jnp
    >>> jnp.conj(jnp.array([1 + 2j]))
    Array([1.-2.j], dtype=complex64)
    """
    x = array_argument("conjugate", x)
    return complex_conjugate(x) if x.dtype in COMPLEX else x


conj = conjugate


def angle(z: ArrayLike, deg: bool = False) -> Value:
    """Returns the angle of complex numbers in the plane, in (-pi, pi].

    Args:
        z: Array or scalar; negative reals have the angle pi.
        deg: Whether to return degrees instead of radians.

    >>> import axir.numpy as jnp
    >>> jnp.angle(jnp.array([1j, -1.0]))
    Array([1.5707964, 3.1415927], dtype=float32)
    """
    (z,) = promote_inexact("angle", z)
    ordinate, abscissa = broadcast_arguments("angle", imag(z), real(z))
    result = _as_weak_as(z, lax.atan2(ordinate, abscissa))
    return rad2deg(result) if deg else result

"""Elementwise arithmetic: sums, products, quotients, remainders, powers, extrema, rounding.

Elsewhere: exponentials and trigonometry (`exponential.py`), comparisons and logic (`logic.py`), the
parts of floats (`floats.py`).
"""

from __future__ import annotations

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import Array, ArrayLike, ConcreteArray
from axir.dialect.core.errors import DTypeError
from axir.dialect.ops.elementwise import arithmetic as lax
from axir.dialect.ops.elementwise import comparison
from axir.dialect.ops.elementwise.conversion import (
    convert_element_type,
    stop_gradient,
)
from axir.dialect.ops.elementwise.transcendental import integer_pow
from axir.dialect.ops.elementwise.transcendental import pow as real_power
from axir.dialect.program.op_table import name_parameters
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Tracer
from axir.numpy._arguments.promotion import (
    array_argument,
    broadcast_arguments,
    constant,
    promote_arguments,
    promote_inexact,
    promote_numeric,
    require_real,
)

from .elementwise import FLOAT, INTEGER, NUMBER, binary, evaluated_by, unary
from .logic import greater, isnan, logical_or

__all__ = [
    "abs", "absolute", "add", "divide", "divmod", "fabs", "float_power", "floor_divide", "fmax",
    "fmin", "fmod", "gcd", "lcm", "maximum", "minimum", "mod", "multiply", "negative", "positive",
    "pow", "power", "reciprocal", "remainder", "sign", "square", "subtract", "true_divide",
]  # fmt: skip

TO_NEAREST_EVEN = lax.TO_NEAREST_EVEN


REAL = (*INTEGER, *FLOAT)


def like(value: object, x: Value) -> Array:
    """Returns a scalar of the dtype of `x`, weak so that `x` decides on the result."""
    return constant(value, x.type.dtype, True)


# Sums, products, quotients ---------------------------------------------------------------------

add = binary(
    "add", lax.add, "Sum; of bools their logical or.",
    promotion=promote_arguments, domain=NUMBER, on_bool=comparison.or_,
)  # fmt: skip
subtract = binary("subtract", lax.sub, "Difference.", promotion=promote_arguments, domain=NUMBER)
multiply = binary(
    "multiply", lax.mul, "Product; of bools their logical and.",
    promotion=promote_arguments, domain=NUMBER, on_bool=comparison.and_,
)  # fmt: skip
true_divide = divide = binary(
    "divide", lax.div, "Quotient; that of integers is a float.", promotion=promote_inexact
)
negative = unary("negative", lax.neg, "Negative.", promotion=promote_arguments, domain=NUMBER)


@evaluated_by(np.floor_divide, FLOAT)
def _floor_divide(x: Value, y: Value) -> Value:
    require_real("floor_divide", x)
    if dtypes.is_unsigned(x.dtype):
        return lax.div(x, y)
    if dtypes.is_integer(x.dtype):
        quotient = lax.div(x, y)
        is_rounded = comparison.ne(lax.rem(x, y), like(0, x))
        is_negative = comparison.ne(lax.sign(x), lax.sign(y))
        lowered = lax.sub(quotient, like(1, x))
        return comparison.select_n(comparison.and_(is_rounded, is_negative), quotient, lowered)
    # x - fmod(x, y) is a multiple of y up to rounding, which the last step but one removes. That of
    # the remainder, fmod(x, y) + y, would be infinite where y is.
    truncated, zero = lax.rem(x, y), like(0, x)
    quotient = lax.div(lax.sub(x, truncated), y)
    lowered = lax.sub(quotient, like(1, x))
    quotient = comparison.select_n(_is_rounded_up(truncated, y), quotient, lowered)
    whole = lax.round(quotient, TO_NEAREST_EVEN)
    ratio = stop_gradient(lax.div(stop_gradient(x), stop_gradient(y)))
    signed = comparison.select_n(comparison.eq(whole, zero), whole, lax.mul(ratio, zero))
    return comparison.select_n(comparison.eq(y, zero), signed, ratio)


def _is_rounded_up(truncated: Value, y: Value) -> Value:
    """Tells where x / y is above its floor when it is truncated, which leaves a rest."""
    zero = like(0, y)
    has_other_sign = comparison.ne(comparison.lt(truncated, zero), comparison.lt(y, zero))
    return comparison.and_(has_other_sign, comparison.ne(truncated, zero))


@evaluated_by(np.fmod, REAL)
def _fmod(x: Value, y: Value) -> Value:
    truncated = lax.rem(x, y)
    if not dtypes.is_integer(x.dtype):
        return truncated
    zero = like(0, x)  # as in NumPy, nothing is left of a division by zero
    return comparison.select_n(comparison.eq(y, zero), truncated, zero)


@evaluated_by(np.remainder, REAL)
def _remainder(x: Value, y: Value) -> Value:
    require_real("remainder", x)
    truncated, zero = _fmod(x, y), like(0, x)
    if dtypes.is_unsigned(x.dtype):
        return truncated
    moved = comparison.select_n(_is_rounded_up(truncated, y), truncated, lax.add(truncated, y))
    if dtypes.is_integer(x.dtype):
        return moved
    # A zero has the sign of the divisor, as in NumPy, and the tangent of the remainder that it
    # replaces.
    signed = lax.mul(zero, lax.sign(stop_gradient(y)))
    signed = lax.sub(signed, lax.sub(stop_gradient(moved), moved))
    return comparison.select_n(comparison.eq(moved, zero), moved, signed)


floor_divide = binary(
    "floor_divide",
    _floor_divide,
    "Quotient rounded down to an integer.",
    promotion=promote_numeric,
    domain=REAL,
)
remainder = mod = binary(
    "remainder",
    _remainder,
    "Remainder of floor division, with the sign of the divisor.",
    promotion=promote_numeric,
    domain=REAL,
)
fmod = binary(
    "fmod",
    _fmod,
    "Remainder of division toward zero, with the sign of the dividend.",
    promotion=promote_numeric,
    domain=REAL,
)


def divmod(x: ArrayLike, y: ArrayLike, /) -> tuple[Value, Value]:
    """Returns quotient and remainder of floor division, elementwise.

    Args:
        x: Dividends, array or scalar.
        y: Divisors; the shapes broadcast.

    >>> import axir.numpy as jnp
    >>> jnp.divmod(jnp.array([7, -7]), 2)
    (Array([ 3, -4], dtype=int32), Array([1, 1], dtype=int32))
    """
    return floor_divide(x, y), remainder(x, y)


reciprocal = unary("reciprocal", lambda x: lax.div(like(1, x), x), "One divided by the argument.")

# Powers ----------------------------------------------------------------------------------------

square = unary("square", lax.square, "Square.", promotion=promote_numeric, domain=NUMBER)


def power(x: ArrayLike, y: ArrayLike, /) -> Value:
    """Raises to a power, elementwise.

    A Python integer as exponent means repeated multiplication, which works for all dtypes.

    Args:
        x: Bases, array or scalar.
        y: Exponents; the shapes broadcast.

    Returns:
        Array of the dtype that both promote to. Powers of integers are integers and wrap around;
        with a negative exponent (of an array) they are rounded toward zero.

    Raises:
        DTypeError: for integers with a negative Python integer as exponent.

    >>> import axir.numpy as jnp
    >>> jnp.power(jnp.array([1, 2, 3]), 2)
    Array([1, 4, 9], dtype=int32)
    """
    if type(y) is int:
        return _static_power(x, y)
    # The power of a scalar to an array of integers is no scalar.
    exponent = array_argument("power", y, 1)
    is_strong = dtypes.is_integer(exponent.dtype) and not exponent.weak_type
    x, y = promote_numeric("power", x, y)
    if is_strong and y.weak_type:
        y = convert_element_type(y, y.dtype)
    x, y = broadcast_arguments("power", x, y)
    if dtypes.is_integer(x.dtype):
        return _integer_power(x, y)
    return real_power(x, y)


pow = power


def _static_power(x: ArrayLike, exponent: int) -> Value:
    if (type(x) is not ConcreteArray and type(x) is not Tracer) or x.type.dtype == dtypes.bool_:
        (x,) = promote_numeric("power", x)
    if exponent < 0 and dtypes.is_integer(x.type.dtype):
        raise DTypeError(
            f"Integers cannot be raised to negative powers: the base is {x.type}, the exponent "
            f"{exponent}.",
            "Make the base a float: x.astype(float) ** exponent.",
        )
    return integer_pow(x, exponent)


def _integer_power(x: Value, y: Value) -> Value:
    """Multiplies along the binary digits of the exponents (Knuth, TAOCP 4.6.3)."""
    one, zero = like(1, x), like(0, x)
    if type(y) is ConcreteArray:
        digits = int(y.host().max(initial=1)).bit_length()
    else:
        digits = 8 * y.dtype.itemsize - (not dtypes.is_unsigned(y.dtype))
    base, exponent, result = x, y, one
    for digit in range(digits):
        is_set = comparison.ne(comparison.and_(exponent, one), zero)
        result = comparison.select_n(is_set, result, lax.mul(result, base))
        if digit < digits - 1:
            base = lax.mul(base, base)
            exponent = comparison.shift_right_logical(exponent, one)
    if dtypes.is_unsigned(y.dtype):
        return result
    vanishes = comparison.and_(comparison.lt(y, zero), comparison.ne(lax.abs(x), one))
    return comparison.select_n(vanishes, result, zero)


def float_power(x: ArrayLike, y: ArrayLike, /) -> Value:
    """Raises to a power in floating point, elementwise: integers become floats first.

    >>> import axir.numpy as jnp
    >>> jnp.float_power(jnp.array([1, 2]), -1)
    Array([1. , 0.5], dtype=float32)
    """
    return power(*promote_inexact("float_power", x, y))


# Extrema and absolute values -------------------------------------------------------------------


def _choose(name: str, is_better: UserObject, of_ordered: UserObject) -> UserObject:
    def choose(x: Value, y: Value) -> Value:
        if not dtypes.is_complex(x.dtype):
            return of_ordered(x, y)
        # As NumPy, complex numbers compare by real part, then by imaginary part.
        prefers_first = logical_or(is_better(x, y), isnan(x))
        return comparison.select_n(*_one_shape(prefers_first, y, x))

    choose.__name__ = name
    return choose


def _one_shape(*values: Value) -> list[Value]:
    return broadcast_arguments("maximum", *values)


def _complex_greater(x: Value, y: Value) -> Value:
    return greater(x, y)


_ORDERED = (dtypes.bool_, *INTEGER, *FLOAT)
maximum = binary(
    "maximum",
    _choose("maximum", _complex_greater, lax.max),
    "Larger element; NaN if one is NaN.",
    promotion=promote_arguments,
    domain=_ORDERED,
)
minimum = binary(
    "minimum",
    _choose("minimum", lambda x, y: _complex_greater(y, x), lax.min),
    "Smaller element; NaN if one is NaN.",
    promotion=promote_arguments,
    domain=_ORDERED,
)


def _ignoring_nan(is_better: UserObject) -> UserObject:
    def choose(x: Value, y: Value) -> Value:
        takes_first = comparison.or_(is_better(x, y), isnan(y))
        return comparison.select_n(*_one_shape(takes_first, y, x))

    return choose


fmax = binary(
    "fmax",
    _ignoring_nan(_complex_greater),
    "Larger element; the other one if one is NaN.",
    promotion=promote_arguments,
    domain=(*INTEGER, *FLOAT),
)
fmin = binary(
    "fmin",
    _ignoring_nan(lambda x, y: _complex_greater(y, x)),
    "Smaller element; the other one if one is NaN.",
    promotion=promote_arguments,
    domain=(*INTEGER, *FLOAT),
)


def _absolute(x: Value) -> Value:
    if dtypes.is_unsigned(x.dtype) or x.dtype == dtypes.bool_:
        return x
    result = lax.abs(x)
    return convert_element_type(result, result.dtype, True) if x.weak_type else result


absolute = abs = unary(
    "absolute",
    _absolute,
    "Absolute value; of complex numbers their modulus.",
    promotion=promote_arguments,
    domain=NUMBER,
)


def fabs(x: ArrayLike, /) -> Value:
    """Returns the absolute values of real numbers as floats."""
    (x,) = promote_inexact("fabs", x)
    require_real("fabs", x)
    return lax.abs(x)


sign = unary(
    "sign",
    lax.sign,
    "Sign: -1, 0 or 1; of complex numbers their direction x / |x|.",
    promotion=promote_arguments,
    domain=NUMBER,
)


def positive(x: ArrayLike, /) -> Value:
    """Returns the argument itself, as an array."""
    return array_argument("positive", x)


name_parameters(fmax, "x1", "x2")
name_parameters(fmin, "x1", "x2")


# Divisors --------------------------------------------------------------------------------------


def _integers(name: str, x: ArrayLike, y: ArrayLike) -> list[Value]:
    x, y = promote_arguments(name, x, y)
    if not dtypes.is_integer(x.dtype):
        raise DTypeError(f"jnp.{name} takes integers, not {x.dtype}.", "Cast with x.astype(int).")
    x, y = broadcast_arguments(name, x, y)
    return [_absolute(x), _absolute(y)]


def gcd(x1: ArrayLike, x2: ArrayLike) -> Value:
    """Returns the greatest common divisors, elementwise, by Euclid's algorithm.

    Args:
        x1: Integers, array or scalar.
        x2: Integers; the shapes broadcast.

    Raises:
        DTypeError: unless both are integers.

    >>> import axir.numpy as jnp
    >>> jnp.gcd(jnp.array([12, 18]), 8)
    Array([4, 2], dtype=int32)
    """
    x, y = _integers("gcd", x1, x2)
    zero, one = like(0, x), like(1, x)
    # Consecutive Fibonacci numbers take longest: 1.44 divisions per bit.
    for _ in range(int(1.4405 * 8 * x.dtype.itemsize) + 1):
        is_done = comparison.eq(y, zero)
        if type(is_done) is ConcreteArray and is_done.host().all():
            break
        divisor = comparison.select_n(is_done, y, one)
        rest = comparison.select_n(is_done, lax.rem(x, divisor), zero)
        x, y = comparison.select_n(is_done, y, x), rest
    return lax.add(x, y) if x.shape != y.shape else x


def lcm(x1: ArrayLike, x2: ArrayLike) -> Value:
    """Returns the least common multiples, elementwise.

    Args:
        x1: Integers, array or scalar.
        x2: Integers; the shapes broadcast.

    >>> import axir.numpy as jnp
    >>> jnp.lcm(4, 6)
    Array(12, dtype=int32, weak_type=True)
    """
    x, y = _integers("lcm", x1, x2)
    divisor = gcd(x, y)
    is_zero = comparison.eq(divisor, like(0, divisor))
    safe = comparison.select_n(is_zero, divisor, like(1, divisor))
    return lax.mul(x, lax.div(y, safe))

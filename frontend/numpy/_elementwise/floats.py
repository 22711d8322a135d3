"""The parts of floating-point numbers: sign, mantissa, exponent, fraction, neighbours."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import DTypeError
from axir.dialect.ops.elementwise import arithmetic as lax
from axir.dialect.ops.elementwise import comparison
from axir.dialect.ops.elementwise.conversion import bitcast_convert_type, convert_element_type
from axir.dialect.ops.elementwise.family import full
from axir.dialect.ops.elementwise.transcendental import exp2
from axir.dialect.ops.indexing.static_slicing import index_in_dim
from axir.dialect.program.rules import Value
from axir.numpy._arguments.checks import reject_out
from axir.numpy._arguments.promotion import (
    array_argument,
    broadcast_arguments,
    constant,
    promote_arguments,
    promote_inexact,
    require_real,
)

from .elementwise import FLOAT, binary, unary

__all__ = [
    "copysign", "frexp", "heaviside", "ldexp", "modf", "nextafter", "signbit", "spacing",
]  # fmt: skip

_REAL = (*dtypes.SIGNED, *dtypes.UNSIGNED, *FLOAT)


def _like(value: object, x: Value) -> Value:
    return constant(value, x.type.dtype, True)


def _sign_bit(x: Value) -> Value:
    require_real("signbit", x)
    if not dtypes.is_float(x.dtype):
        return comparison.lt(x, _like(0, x)) if x.dtype in dtypes.SIGNED else _nowhere(x)
    signed = np.dtype(f"int{8 * x.dtype.itemsize}")
    bits = bitcast_convert_type(x, signed) if signed != dtypes.int64 else _high_word(x)
    return comparison.lt(bits, constant(0, bits.dtype))


def _nowhere(x: Value) -> Value:
    return full(x.shape, False, dtypes.bool_)


def _high_word(x: Value) -> Value:
    # The sign is in the second 32-bit word; 64-bit integers may be switched off.
    return index_in_dim(bitcast_convert_type(x, dtypes.int32), 1, -1, keepdims=False)


signbit = unary(
    "signbit",
    _sign_bit,
    "Whether the sign bit is set, as in -0.0.",
    promotion=promote_arguments,
    domain=_REAL,
)


def _copy_sign(x: Value, y: Value) -> Value:
    require_real("copysign", x)
    magnitude = lax.abs(x)
    choices = broadcast_arguments("copysign", _sign_bit(y), magnitude, lax.neg(magnitude))
    return comparison.select_n(*choices)


copysign = binary(
    "copysign", _copy_sign, "Magnitude of x with the sign of y.", promotion=promote_inexact
)
nextafter = binary(
    "nextafter",
    lax.nextafter,
    "Next representable number after x in the direction of y.",
    promotion=promote_inexact,
    domain=FLOAT,
)


def spacing(x: ArrayLike, /) -> Value:
    """Returns the distance to the next representable number away from zero, with the sign of `x`.

    >>> import axir.numpy as jnp
    >>> jnp.spacing(jnp.float32(1))
    Array(1.1920929e-07, dtype=float32)
    """
    (x,) = promote_inexact("spacing", x)
    infinity = copysign(_like(np.inf, x), x)
    return lax.sub(lax.nextafter(x, infinity), x)


def _heaviside(x: Value, y: Value) -> Value:
    require_real("heaviside", x)
    zero, one = _like(0.0, x), _like(1.0, x)
    step = comparison.select_n(
        comparison.lt(x, zero), comparison.select_n(comparison.gt(x, zero), x, one), zero
    )
    return comparison.select_n(*broadcast_arguments("heaviside", comparison.eq(x, zero), step, y))


heaviside = binary(
    "heaviside",
    _heaviside,
    "Step function: 0 below zero, 1 above, y at zero.",
    promotion=promote_inexact,
)


def modf(x: ArrayLike, /, out: None = None) -> tuple[Value, Value]:
    """Returns fractional and integer parts, both with the sign of `x`.

    >>> import axir.numpy as jnp
    >>> jnp.modf(jnp.array([1.5, -2.25]))
    (Array([ 0.5 , -0.25], dtype=float32), Array([ 1., -2.], dtype=float32))
    """
    reject_out("modf", out)
    (x,) = promote_inexact("modf", x)
    require_real("modf", x)
    whole = copysign(lax.round_toward_zero(x), x)
    is_infinite = comparison.eq(lax.abs(x), _like(np.inf, x))
    fraction = comparison.select_n(is_infinite, lax.sub(x, whole), _like(0.0, x))
    return copysign(fraction, x), whole


def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Value:
    """Returns x1 * 2**x2, elementwise, which undoes `frexp`.

    Args:
        x1: Real numbers, array or scalar.
        x2: Integer exponents; the shapes broadcast.

    Raises:
        DTypeError: if the exponents are not integers.

    >>> import axir.numpy as jnp
    >>> jnp.ldexp(jnp.array([0.5, 0.75]), jnp.array([1, 2]))
    Array([1., 3.], dtype=float32)
    """
    (x,) = promote_inexact("ldexp", x1)
    exponent = array_argument("ldexp", x2, 1)
    require_real("ldexp", x)
    if dtypes.is_inexact(exponent.dtype):
        raise DTypeError(f"jnp.ldexp: exponents must be integers, not {exponent.dtype}.")
    x, exponent = broadcast_arguments("ldexp", x, convert_element_type(exponent, dtypes.int32))
    if x.dtype.itemsize < 4:
        wide = convert_element_type(x, dtypes.float32)
        return convert_element_type(ldexp(wide, exponent), x.dtype)
    # In three steps, since 2**exponent may overflow where the product does not. Exponents are
    # clipped to the largest exponent of a quotient of two numbers. This keeps the steps finite and
    # nonzero, and changes no result.
    limit = constant(3 * (int(ml_dtypes.finfo(x.dtype).maxexp) - 4), dtypes.int32)
    exponent = lax.clamp(lax.neg(limit), exponent, limit)
    third = lax.div(exponent, constant(3, dtypes.int32))
    rest = lax.sub(exponent, lax.mul(third, constant(2, dtypes.int32)))
    factor, last = (exp2(convert_element_type(e, x.dtype)) for e in (third, rest))
    result = lax.mul(lax.mul(lax.mul(x, factor), factor), last)
    return convert_element_type(result, result.dtype)


def frexp(x: ArrayLike, /) -> tuple[Value, Value]:
    """Returns mantissa in [0.5, 1) and exponent, so that x = mantissa * 2**exponent.

    Args:
        x: Real numbers, array or scalar. Zero, infinity and NaN are their own mantissa, with the
            exponent 0.

    >>> import axir.numpy as jnp
    >>> jnp.frexp(jnp.array([1.0, 6.0]))
    (Array([0.5 , 0.75], dtype=float32), Array([1, 3], dtype=int32))
    """
    (x,) = promote_inexact("frexp", x)
    require_real("frexp", x)
    if x.dtype.itemsize == 2:
        mantissa, exponent = frexp(convert_element_type(x, dtypes.float32))
        return convert_element_type(mantissa, x.dtype), exponent
    x = convert_element_type(x, x.dtype)
    info = ml_dtypes.finfo(x.dtype)
    # Denormal numbers become normal first.
    is_small = comparison.lt(lax.abs(x), _like(float(info.smallest_normal), x))
    scale = _like(2.0**info.nmant, x)
    scaled = comparison.select_n(is_small, x, lax.mul(x, scale))
    is_special = comparison.or_(comparison.eq(x, _like(0.0, x)), comparison.not_(lax.is_finite(x)))
    exponent = _binary_exponent(scaled, info)
    one = constant(1, dtypes.int32)
    normal = comparison.select_n(is_special, exponent, one)
    shift = comparison.select_n(
        is_small, constant(0, dtypes.int32), constant(info.nmant, dtypes.int32)
    )
    mantissa = ldexp(scaled, lax.neg(normal))
    zero = constant(0, dtypes.int32)
    return (
        comparison.select_n(is_special, mantissa, x),
        comparison.select_n(is_special, lax.sub(normal, shift), zero),
    )


def _binary_exponent(x: Value, info: UserObject) -> Value:
    """Reads the exponent of normal numbers from their bits, as for a mantissa in [0.5, 1)."""
    if x.dtype == dtypes.float64:
        word, mantissa_bits = _high_word(x), info.nmant - 32
    else:
        word, mantissa_bits = bitcast_convert_type(x, dtypes.int32), info.nmant
    biased = comparison.shift_right_logical(word, constant(mantissa_bits, dtypes.int32))
    biased = comparison.and_(biased, constant(2 ** (info.bits - info.nmant - 1) - 1, dtypes.int32))
    # Exponent field 1 stands for 2**minexp, which has exponent minexp + 1 for a mantissa in [0.5,
    # 1).
    return lax.add(biased, constant(int(info.minexp), dtypes.int32))

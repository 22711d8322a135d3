"""Elementwise rounding: to integers, and to decimals."""

from __future__ import annotations

import builtins

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ParameterError
from axir.dialect.ops.elementwise import arithmetic as lax
from axir.dialect.ops.elementwise import comparison
from axir.dialect.ops.elementwise.conversion import (
    complex_,
    convert_element_type,
    imag,
    real,
)
from axir.dialect.program.op_table import name_parameters
from axir.dialect.program.rules import Value
from axir.numpy._arguments.checks import reject_out
from axir.numpy._arguments.promotion import (
    array_argument,
    cast,
    promote_arguments,
    require_real,
)

from .arithmetic import (
    REAL,
    TO_NEAREST_EVEN,
    add,
    floor_divide,
    like,
    multiply,
    remainder,
    subtract,
)
from .elementwise import FLOAT, unary

__all__ = ["around", "ceil", "fix", "floor", "rint", "round", "trunc"]


def _rounded(operation: UserObject) -> UserObject:
    def apply(x: Value) -> Value:
        return operation(x) if dtypes.is_inexact(x.dtype) else x

    return apply


def _toward_zero(x: Value) -> Value:
    require_real("trunc", x)
    return lax.round_toward_zero(x)


floor = unary(
    "floor",
    _rounded(lax.floor),
    "Largest integer that is not larger.",
    promotion=promote_arguments,
    domain=REAL,
)


ceil = unary(
    "ceil",
    _rounded(lax.ceil),
    "Smallest integer that is not smaller.",
    promotion=promote_arguments,
    domain=REAL,
)


trunc = unary(
    "trunc",
    _rounded(_toward_zero),
    "Integer part: what is left without the fraction.",
    promotion=promote_arguments,
    domain=REAL,
)


fix = unary("fix", _toward_zero, "Integer part, as a float.", domain=FLOAT)


def _to_even(x: Value) -> Value:
    if dtypes.is_complex(x.dtype):
        return complex_(_to_even(real(x)), _to_even(imag(x)))
    return lax.round(x, TO_NEAREST_EVEN)


rint = unary("rint", _to_even, "Nearest integer as a float; halves go to the even one.")


def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Value:
    """Rounds to a number of decimals; halves go to the even digit.

    Args:
        a: Array or scalar.
        decimals: How many decimals stay; negative: how many digits before the point become zero.
        out: Must be None.

    Returns:
        Array of the dtype of `a`; integers stay integers.

    >>> import axir.numpy as jnp
    >>> jnp.round(jnp.array([0.5, 1.5, 2.25]))
    Array([0., 2., 2.], dtype=float32)
    """
    reject_out("round", out)
    a = array_argument("round", a)
    try:
        decimals = decimals.__index__()
    except AttributeError:
        raise ParameterError(f"jnp.round: decimals must be an integer, not {decimals!r}.") from None
    if not dtypes.is_inexact(a.dtype):
        return a if decimals >= 0 else _round_integers(a, 10**-decimals)
    if decimals == 0:
        return _to_even(a)
    # In float16 a power of ten overflows soon.
    wide = convert_element_type(a, dtypes.float32) if a.dtype.itemsize == 2 else a
    factor = cast(10.0 ** builtins.abs(decimals), wide.dtype, True)
    scale, unscale = (lax.mul, lax.div) if decimals > 0 else (lax.div, lax.mul)
    rounded = unscale(_to_even(scale(wide, factor)), factor)
    return convert_element_type(rounded, a.dtype, a.weak_type)


around = round


def _round_integers(x: Value, unit: int) -> Value:
    if x.dtype == dtypes.bool_:
        return x
    rest = remainder(x, unit)
    lower = subtract(x, rest)
    doubled = multiply(rest, 2)
    is_odd = comparison.eq(remainder(floor_divide(lower, unit), 2), like(1, x))
    is_half = comparison.eq(doubled, like(unit, x))
    goes_up = comparison.or_(
        comparison.gt(doubled, like(unit, x)), comparison.and_(is_half, is_odd)
    )
    return comparison.select_n(goes_up, lower, add(lower, unit))


name_parameters(trunc, "x")

"""Elementwise comparisons, logic and bits, and tests of what kind of number an element is.

Elsewhere: reductions such as `all` and `any` (`frontend/numpy/_reductions/reductions.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Options, UserObject
from axir.dialect.core.array import Array, ArrayLike
from axir.dialect.ops.elementwise import arithmetic as lax
from axir.dialect.ops.elementwise import comparison
from axir.dialect.ops.elementwise.conversion import convert_element_type, imag, real
from axir.dialect.ops.elementwise.family import full
from axir.dialect.program.op_table import name_parameters
from axir.dialect.program.rules import Value
from axir.numpy._arguments.checks import reject_out
from axir.numpy._arguments.promotion import (
    array_argument,
    broadcast_arguments,
    constant,
    promote_arguments,
    promote_inexact,
    promote_numeric,
    require_real,
)

from .elementwise import BOOL, FLOAT, INTEGER, NUMBER, binary, unary

__all__ = [ "bitwise_and", "bitwise_count", "bitwise_invert",
    "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "equal", "greater", "greater_equal", "invert", "isclose", "iscomplex", "isfinite", "isinf",
    "isnan", "isneginf", "isposinf", "isreal", "left_shift", "less", "less_equal", "logical_and",
    "logical_not", "logical_or", "logical_xor", "not_equal", "right_shift",
]  # fmt: skip

# Comparisons -----------------------------------------------------------------------------------

equal = binary(
    "equal",
    comparison.eq,
    "Whether elements are equal.",
    promotion=promote_arguments,
    domain=NUMBER,
)
not_equal = binary(
    "not_equal",
    comparison.ne,
    "Whether elements differ.",
    promotion=promote_arguments,
    domain=NUMBER,
)


def _ordering(operation: Callable[..., Value], strict: Callable[..., Value]) -> UserObject:
    def apply(x: Value, y: Value) -> Value:
        if not dtypes.is_complex(x.dtype):
            return operation(x, y)
        # As NumPy, complex numbers compare by real part, then by imaginary part.
        first, second = strict(real(x), real(y)), operation(imag(x), imag(y))
        return comparison.or_(first, comparison.and_(comparison.eq(real(x), real(y)), second))

    return apply


_REAL = (*INTEGER, *FLOAT)
greater = binary(
    "greater",
    _ordering(comparison.gt, comparison.gt),
    "Whether x > y.",
    promotion=promote_arguments,
    domain=_REAL,
)
greater_equal = binary(
    "greater_equal",
    _ordering(comparison.ge, comparison.gt),
    "Whether x >= y.",
    promotion=promote_arguments,
    domain=_REAL,
)
less = binary(
    "less",
    _ordering(comparison.lt, comparison.lt),
    "Whether x < y.",
    promotion=promote_arguments,
    domain=_REAL,
)
less_equal = binary(
    "less_equal",
    _ordering(comparison.le, comparison.lt),
    "Whether x <= y.",
    promotion=promote_arguments,
    domain=_REAL,
)

# Logic -----------------------------------------------------------------------------------------


def as_bool(name: str, x: ArrayLike, position: int = 0) -> Value:
    """Returns whether the elements of an argument differ from zero."""
    x = array_argument(name, x, position)
    dtype = x.type.dtype
    return x if dtype == dtypes.bool_ else comparison.ne(x, constant(0, dtype, True))


def promote_bool(name: str, *args: Options) -> list[Value]:
    """Turns arguments into bools: whether they differ from zero."""
    return [as_bool(name, x, position) for position, x in enumerate(args)]


def _logical(
    name: str, operation: UserObject, summary: str
) -> Callable[[UserObject, UserObject], Value]:
    return binary(name, operation, summary, promotion=promote_bool, domain=BOOL)


logical_and = _logical("logical_and", comparison.and_, "Whether both differ from zero.")
logical_or = _logical("logical_or", comparison.or_, "Whether at least one differs from zero.")
logical_xor = _logical("logical_xor", comparison.xor, "Whether exactly one differs from zero.")
logical_not = unary(
    "logical_not",
    comparison.not_,
    "Whether elements are zero.",
    promotion=promote_bool,
    domain=BOOL,
)

# Bits ------------------------------------------------------------------------------------------


def _bitwise(
    name: str, operation: UserObject, summary: str
) -> Callable[[UserObject, UserObject], Value]:
    return binary(
        name, operation, summary, promotion=promote_arguments, domain=INTEGER, on_bool=operation
    )


bitwise_and = _bitwise("bitwise_and", comparison.and_, "Bits set in both integers.")
bitwise_or = _bitwise("bitwise_or", comparison.or_, "Bits set in at least one of two integers.")
bitwise_xor = _bitwise("bitwise_xor", comparison.xor, "Bits set in exactly one of two integers.")
bitwise_not = bitwise_invert = invert = unary(
    "invert",
    comparison.not_,
    "Integer with all bits flipped.",
    promotion=promote_arguments,
    domain=(*BOOL, *INTEGER),
)


def _shift_right(x: Value, y: Value) -> Value:
    is_unsigned = dtypes.is_unsigned(x.dtype)
    return (comparison.shift_right_logical if is_unsigned else comparison.shift_right_arithmetic)(
        x, y
    )


left_shift = bitwise_left_shift = binary(
    "left_shift",
    comparison.shift_left,
    "Integer with its bits shifted left by y places.",
    promotion=promote_numeric,
    domain=INTEGER,
)
right_shift = bitwise_right_shift = binary(
    "right_shift",
    _shift_right,
    "Integer with its bits shifted right by y places, keeping the sign.",
    promotion=promote_numeric,
    domain=INTEGER,
)


def _count_bits(x: Value) -> Value:
    magnitude = lax.abs(x) if np.issubdtype(x.dtype, np.signedinteger) else x
    return convert_element_type(comparison.population_count(magnitude), dtypes.uint8)


bitwise_count = unary(
    "bitwise_count",
    _count_bits,
    "Number of bits set in the absolute value of an integer.",
    promotion=promote_numeric,
    domain=INTEGER,
)

# Kinds of numbers ------------------------------------------------------------------------------


def _everywhere(value: bool, x: Value) -> Array:
    return full(x.shape, value, dtypes.bool_)


def _is_finite(x: Value) -> Value:
    if dtypes.is_complex(x.dtype):
        return comparison.and_(lax.is_finite(real(x)), lax.is_finite(imag(x)))
    return lax.is_finite(x) if dtypes.is_float(x.dtype) else _everywhere(True, x)


def _is_infinite(x: Value) -> Value:
    if dtypes.is_complex(x.dtype):
        return comparison.or_(_is_infinite(real(x)), _is_infinite(imag(x)))
    if not dtypes.is_float(x.dtype):
        return _everywhere(False, x)
    return comparison.eq(lax.abs(x), constant(math.inf, x.dtype))


def _is_nan(x: Value) -> Value:
    return comparison.ne(x, x) if dtypes.is_inexact(x.dtype) else _everywhere(False, x)


def _test(name: str, operation: UserObject, summary: str) -> Callable[[UserObject], Value]:
    return unary(name, operation, summary, promotion=promote_arguments, domain=dtypes.ALL)


isfinite = _test("isfinite", _is_finite, "Whether elements are neither infinite nor NaN.")
isinf = _test("isinf", _is_infinite, "Whether elements are infinite.")
isnan = _test("isnan", _is_nan, "Whether elements are NaN.")


def _is_infinity(name: str, value: float) -> Callable[..., Value]:
    def apply(x: Value) -> Value:
        require_real(name, x)
        if not dtypes.is_float(x.dtype):
            return _everywhere(False, x)
        return comparison.eq(x, constant(value, x.dtype))

    return apply


_is_plus_infinity = _test("isposinf", _is_infinity("isposinf", math.inf), "")
_is_minus_infinity = _test("isneginf", _is_infinity("isneginf", -math.inf), "")


def isposinf(x: ArrayLike, /, out: None = None) -> Value:
    """Tells of each element whether it is +inf.

    Args:
        x: Array of real numbers.
        out: Must be None: arrays are immutable.

    >>> import axir.numpy as jnp
    >>> jnp.isposinf(jnp.array([jnp.inf, 1.0]))
    Array([ True, False], dtype=bool)
    """
    reject_out("isposinf", out)
    return _is_plus_infinity(x)


def isneginf(x: ArrayLike, /, out: None = None) -> Value:
    """Tells of each element whether it is -inf; see `isposinf`.

    >>> import axir.numpy as jnp
    >>> jnp.isneginf(jnp.array([-jnp.inf, 1.0]))
    Array([ True, False], dtype=bool)
    """
    reject_out("isneginf", out)
    return _is_minus_infinity(x)


def _has_imaginary_part(x: Value) -> Value:
    if not dtypes.is_complex(x.dtype):
        return _everywhere(False, x)
    part = imag(x)
    return comparison.ne(part, constant(0.0, part.dtype))


iscomplex = _test("iscomplex", _has_imaginary_part, "Whether the imaginary part is not zero.")
isreal = _test("isreal", lambda x: comparison.not_(_has_imaginary_part(x)), "Whether it is zero.")
name_parameters(iscomplex, "x")
name_parameters(isreal, "x")

# Closeness and equality ------------------------------------------------------------------------


def isclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Value:
    """Tells elementwise whether |a - b| <= atol + rtol |b|.

    Args:
        a: Array or scalar.
        b: Array or scalar, the reference; the shapes broadcast.
        rtol: Relative tolerance.
        atol: Absolute tolerance.
        equal_nan: Whether NaN is close to NaN.

    Returns:
        Array of bools. Infinities are close to themselves only, and random keys to equal ones.

    >>> import axir.numpy as jnp
    >>> jnp.isclose(jnp.array([1.0, 1.1]), 1.0)
    Array([ True, False], dtype=bool)
    """
    if any(dtypes.is_key(x.dtype) for x in (a, b) if isinstance(x, Array)):
        return equal(a, b)
    a, b = promote_inexact("isclose", a, b)
    a, b = broadcast_arguments("isclose", a, b)
    magnitude = dtypes.real_dtype(a.dtype)
    rtol, atol = (_tolerance(x, magnitude) for x in (rtol, atol))
    distance = lax.abs(lax.sub(a, b))
    limit = lax.add(atol, lax.mul(rtol, lax.abs(b)))
    both_finite = comparison.and_(_is_finite(a), _is_finite(b))
    is_close = comparison.and_(both_finite, comparison.le(distance, limit))
    result = comparison.or_(is_close, comparison.eq(a, b))
    if equal_nan:
        result = comparison.or_(result, comparison.and_(_is_nan(a), _is_nan(b)))
    return result


def _tolerance(x: ArrayLike, dtype: np.dtype) -> Value:
    return convert_element_type(array_argument("isclose", x), dtype)

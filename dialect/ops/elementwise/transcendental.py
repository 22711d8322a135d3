"""Elementwise ops, part two: exponentials, powers, trigonometric and hyperbolic functions, erf.

At complex zeros, infinities and nan, the values follow C99 (annex G), including the signs of zeros,
as in NumPy. JAX's signs often differ, and with them its side of a branch cut.

Derivatives are the textbook ones (DLMF chapters 4 and 7). As in `arithmetic.py`, each declaration
holds the specific parts of the op.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.errors import DTypeError
from axir.dialect.program.op_table import Traceable
from axir.dialect.program.operation import Sample
from axir.dialect.program.rules import Operand, Value

from . import integer_evaluation as bits
from .arithmetic import add, div, mul, neg, square, sub
from .comparison import and_, eq, select_n
from .conversion import convert_element_type
from .family import (
    FLOAT,
    INEXACT,
    NUMBER,
    as_value,
    binary,
    full,
    scipy_special,
    unary,
    via_float32,
)
from .samples import EDGES, Sampling, edge_values, random_values

# Exponentials and logarithms -------------------------------------------------------------------

exp = unary(
    "exp",
    np.exp,
    hlo.exponential,
    INEXACT,
    jvp=[lambda dx, out, x: mul(dx, out)],
    has_accuracy=True,
)
exp2 = unary(
    "exp2",
    np.exp2,
    lambda x: _lower_exp2(x),
    INEXACT,
    jvp=[lambda dx, out, x: mul(dx, mul(math.log(2), out))],
    has_accuracy=True,
)
log = unary(
    "log",
    np.log,
    hlo.log,
    INEXACT,
    jvp=[lambda dx, out, x: div(dx, x)],
    samples=Sampling(low=0.2, high=3.0),
    has_accuracy=True,
)


def _expm1(x: np.ndarray) -> np.ndarray:
    if x.dtype.kind != "c":
        return np.expm1(x)
    # NumPy's formula gives nan where a part of the result is infinite.
    result = np.expm1(x)
    return np.where(np.isfinite(result), result, np.exp(x) - 1)


expm1 = unary(
    "expm1",
    via_float32(_expm1),
    hlo.exponential_minus_one,
    INEXACT,
    jvp=[lambda dx, out, x: mul(dx, add(out, 1))],
    has_accuracy=True,
)


def _log1p(x: np.ndarray) -> np.ndarray:
    if x.dtype.kind != "c":
        return np.log1p(x)
    # If |1 + x| is near 1, its logarithm comes from the excess of the square, which NumPy rounds
    # off.
    result = np.log1p(x)
    real, imag = x.real, x.imag
    exact = 0.5 * np.log1p(imag * imag + real * (2 + real))
    is_near = np.maximum(np.abs(real), np.abs(imag)) < 0.5
    near = np.empty_like(result)
    near.real, near.imag = exact, result.imag
    return np.where(is_near, near, result)


log1p = unary(
    "log1p",
    via_float32(_log1p),
    hlo.log_plus_one,
    INEXACT,
    jvp=[lambda dx, out, x: div(dx, add(x, 1))],
    samples=Sampling(low=-0.7, high=3.0),
    has_accuracy=True,
)


def _logistic(x: np.ndarray) -> np.ndarray:
    if x.dtype.kind != "c":
        return 1 / (1 + np.exp(-x))
    # Uses the exponential that does not grow; it is the result once it vanishes.
    is_right = ~np.signbit(x.real)
    decaying = np.exp(np.where(is_right, -x, x))
    result = bits.divide(np.where(is_right, 1, decaying).astype(x.dtype), 1 + decaying)
    result = np.where(~is_right & (decaying == 0), decaying, result)
    result.imag = np.where(x.imag == 0, x.imag, result.imag)
    return result


logistic = unary(
    "logistic",
    via_float32(_logistic),
    hlo.logistic,
    INEXACT,
    jvp=[lambda dx, out, x: mul(dx, mul(out, sub(1, out)))],
    has_accuracy=True,
)


def _lower_exp2(x: ir.Value) -> ir.Value:
    if hlo.is_complex(x):
        # Not a product of complex numbers, in which an infinite part makes the other one nan.
        parts = (hlo.real(x), hlo.imag(x))
        scaled = [hlo.multiply(part, hlo.full_like(part, math.log(2))) for part in parts]
        return hlo.exponential(hlo.complex(*scaled))
    # The power of two keeps the full accuracy; exp(x log 2) would lose it for large x.
    if hlo.element_type_of(x) in _narrow_types():
        wide = hlo.convert(x, dtypes.float32)
        return hlo.convert(hlo.power(hlo.full_like(wide, 2), wide), hlo.element_type_of(x))
    return hlo.power(hlo.full_like(x, 2), x)


def _narrow_types() -> tuple[np.dtype, ...]:
    return (hlo.as_element_type(dtypes.bfloat16), hlo.as_element_type(dtypes.float16))


# Powers and roots ------------------------------------------------------------------------------


def _pow_tangent_base(dx: Value, out: Value, x: Value, y: Value) -> Value:
    # x ** (y - 1) would be infinite at x = 0, y = 0, where the derivative is 0. Elsewhere y = 0 is
    # no exception, else the derivative in y of this one would be wrong.
    is_origin = and_(eq(x, 0), eq(y, 0))
    step = select_n(is_origin, full((), -1, y.dtype), full((), 1, y.dtype))
    return mul(dx, mul(y, pow(x, add(y, step))))


def _pow_tangent_exponent(dy: Value, out: Value, x: Value, y: Value) -> Value:
    safe = select_n(eq(x, 0), x, full((), 1, x.dtype))
    return mul(dy, mul(log(safe), out))


_pow = binary(
    "pow",
    np.power,
    hlo.power,
    INEXACT,
    jvp=[_pow_tangent_base, _pow_tangent_exponent],
    samples=Sampling(
        low=0.3,
        high=2.5,
        edges=(*EDGES, 2.0, 3.0, -2.0, -0.5),
        tolerance=64.0,
        # The signs and nan of exp(y log x) follow from its formula; no two libraries agree.
        has_complex_edges=False,
    ),
)


def pow(x: Operand, y: Operand) -> Value:
    """Raises to a power; integer exponents take the dtype of the base.

    Args:
        x: Bases, float or complex.
        y: Exponents of the same dtype, or integers.
    """
    if type(y) not in (bool, int, float, complex):
        y = as_value(y)
        if dtypes.is_integer(y.dtype):
            x = as_value(x)
            y = convert_element_type(y, x.dtype)
    return _pow(x, y)


sqrt = unary(
    "sqrt",
    np.sqrt,
    hlo.sqrt,
    INEXACT,
    jvp=[lambda dx, out, x: div(dx, mul(2, out))],
    samples=Sampling(low=0.2),
    has_accuracy=True,
)
rsqrt = unary(
    "rsqrt",
    via_float32(lambda x: bits.divide(np.ones_like(x), np.sqrt(x))),
    hlo.rsqrt,
    INEXACT,
    jvp=[lambda dx, out, x: mul(dx, mul(-0.5, div(out, x)))],
    samples=Sampling(low=0.2),
    has_accuracy=True,
)
cbrt = unary(
    "cbrt",
    np.cbrt,
    hlo.cbrt,
    FLOAT,
    jvp=[lambda dx, out, x: mul(dx, mul(1 / 3, integer_pow(out, -2)))],
    samples=Sampling(low=0.2, tolerance=64.0),
    has_accuracy=True,
)


_Number = TypeVar("_Number")


def _power_by_squaring(
    x: _Number,
    exponent: int,
    multiply: Callable[[_Number, _Number], _Number],
    one: _Number,
    divide: Callable[[_Number, _Number], _Number],
) -> _Number:
    """Multiplies along the binary digits of the exponent (Knuth, TAOCP 4.6.3)."""
    if exponent < 0:
        return divide(one, _power_by_squaring(x, -exponent, multiply, one, divide))
    result = None
    while exponent:
        if exponent & 1:
            result = x if result is None else multiply(result, x)
        exponent >>= 1
        if exponent:
            x = multiply(x, x)
    return one if result is None else result


def _evaluate_integer_pow(x: np.ndarray, *, y: int) -> np.ndarray:
    return _power_by_squaring(x, y, np.multiply, np.ones_like(x), bits.divide)


def _lower_integer_pow(x: ir.Value, *, y: int) -> ir.Value:
    return _power_by_squaring(x, y, hlo.multiply, hlo.full_like(x, 1), hlo.divide)


def _integer_pow_tangent(dx: Value, x: Value, y: int) -> Value:
    if y == 0:
        return mul(dx, 0)
    return mul(dx, mul(y, integer_pow(x, y - 1)))


def _integer_pow_samples() -> list[Sample]:
    generator = np.random.default_rng(1)
    samples = []
    for dtype in NUMBER:
        x = random_values(generator, (2, 3), dtype, 0.5, 1.5)
        powers: tuple[int, ...] = (2, 7) if dtypes.is_integer(dtype) else (-2, 3)
        if dtype in (dtypes.int32, dtypes.float32, dtypes.complex128):
            powers += (0, 1)
        samples += [Sample((x,), {"y": y}) for y in powers]
        edges = edge_values(EDGES, dtype)  # integers overflow, zeros and infinities divide
        samples += [Sample((edges,), {"y": y}, is_smooth=False) for y in (3, -1)]
    for shape in [(), (0, 2), (1, 2, 1, 1, 2, 1)]:
        samples.append(Sample((np.full(shape, 1.5, np.float32),), {"y": 3}))
    return samples


_integer_pow = unary(
    "integer_pow",
    _evaluate_integer_pow,
    _lower_integer_pow,
    NUMBER,
    parameters={"y": int},
    samples=_integer_pow_samples,
    jvp=[lambda dx, out, x, *, y: _integer_pow_tangent(dx, x, y)],
)


def integer_pow(x: Operand, y: int) -> Value:
    """Raises a number to a static integer power by repeated multiplication."""
    x = as_value(x)
    if y < 0 and dtypes.is_integer(x.dtype):
        raise DTypeError(
            f"Integers cannot be raised to negative powers, but got integer_pow({x.aval}, {y}).",
            "Make the base a float: x.astype(float).",
        )
    is_itself = y == 1 and x.dtype != dtypes.bool_
    return x if is_itself else _integer_pow.primitive.bind(x, y=int(y))


# Trigonometric functions and their inverses ----------------------------------------------------

_ANGLES = (*EDGES, 100.0, 1e5)

sin = unary(
    "sin",
    np.sin,
    hlo.sine,
    INEXACT,
    jvp=[lambda dx, out, x: mul(dx, cos(x))],
    samples=Sampling(edges=_ANGLES),
    has_accuracy=True,
)
cos: Traceable = unary(
    "cos",
    np.cos,
    hlo.cosine,
    INEXACT,
    jvp=[lambda dx, out, x: neg(mul(dx, sin(x)))],
    samples=Sampling(edges=_ANGLES),
    has_accuracy=True,
)
tan = unary(
    "tan",
    np.tan,
    hlo.tan,
    INEXACT,
    jvp=[lambda dx, out, x: mul(dx, add(1, square(out)))],
    samples=Sampling(low=-1.2, high=1.2),
    has_accuracy=True,
)
asin = unary(
    "asin",
    via_float32(np.arcsin),
    hlo.asin,
    INEXACT,
    jvp=[lambda dx, out, x: div(dx, sqrt(sub(1, square(x))))],
    samples=Sampling(low=-0.8, high=0.8, has_half_nan=False),
)
acos = unary(
    "acos",
    via_float32(np.arccos),
    hlo.acos,
    INEXACT,
    jvp=[lambda dx, out, x: neg(div(dx, sqrt(sub(1, square(x)))))],
    samples=Sampling(low=-0.8, high=0.8, has_half_nan=False),
)
atan = unary(
    "atan",
    via_float32(np.arctan),
    hlo.atan,
    INEXACT,
    jvp=[lambda dx, out, x: div(dx, add(1, square(x)))],
    samples=Sampling(low=-0.8, high=0.8, has_half_nan=False),
)


def _evaluate_atan2(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype.kind != "c":
        return np.arctan2(x, y)
    # The angle of y + i x, continued to complex x and y (DLMF 4.23.26).
    return -1j * np.log((y + 1j * x) / np.sqrt(x * x + y * y))


def _lower_atan2(x: ir.Value, y: ir.Value) -> ir.Value:
    if not hlo.is_complex(x):
        return hlo.atan2(x, y)
    unit = hlo.full_like(x, 1j)
    length = hlo.sqrt(hlo.add(hlo.multiply(x, x), hlo.multiply(y, y)))
    turn = hlo.log(hlo.divide(hlo.add(y, hlo.multiply(unit, x)), length))
    return hlo.complex(hlo.imag(turn), hlo.negate(hlo.real(turn)))


atan2 = binary(
    "atan2",
    via_float32(_evaluate_atan2),
    _lower_atan2,
    INEXACT,
    jvp=[
        lambda dx, out, x, y: mul(dx, div(y, add(square(x), square(y)))),
        lambda dy, out, x, y: mul(dy, div(neg(x), add(square(x), square(y)))),
    ],
    # No standard defines the continuation; signs of zeros and nan follow from its formula.
    samples=Sampling(low=0.3, has_complex_edges=False),
)

# Hyperbolic functions and their inverses -------------------------------------------------------

sinh = unary(
    "sinh",
    via_float32(np.sinh),
    hlo.sinh,
    INEXACT,
    jvp=[lambda dx, out, x: mul(dx, cosh(x))],
)
cosh: Traceable = unary(
    "cosh",
    via_float32(np.cosh),
    hlo.cosh,
    INEXACT,
    jvp=[lambda dx, out, x: mul(dx, sinh(x))],
)
tanh = unary(
    "tanh",
    via_float32(np.tanh),
    hlo.tanh,
    INEXACT,
    jvp=[lambda dx, out, x: mul(dx, sub(1, square(out)))],
    has_accuracy=True,
)
asinh = unary(
    "asinh",
    via_float32(np.arcsinh),
    hlo.asinh,
    INEXACT,
    jvp=[lambda dx, out, x: div(dx, sqrt(add(square(x), 1)))],
    samples=Sampling(low=-0.8, high=0.8, has_half_nan=False),
)
acosh = unary(
    "acosh",
    via_float32(np.arccosh),
    hlo.acosh,
    INEXACT,
    # Two roots, not the root of a product, so that the branch cut of complex numbers is right.
    jvp=[lambda dx, out, x: div(dx, mul(sqrt(sub(x, 1)), sqrt(add(x, 1))))],
    samples=Sampling(low=1.3, high=3.0, edges=(*EDGES, 2.0), has_half_nan=False),
)
atanh = unary(
    "atanh",
    via_float32(np.arctanh),
    hlo.atanh,
    INEXACT,
    jvp=[lambda dx, out, x: div(dx, sub(1, square(x)))],
    samples=Sampling(low=-0.8, high=0.8, has_half_nan=False),
)

# The error function ----------------------------------------------------------------------------


def _gaussian(x: Value, factor: float) -> Value:
    return mul(factor, exp(neg(square(x))))


erf = unary(
    "erf",
    scipy_special("erf"),
    hlo.erf,
    FLOAT,
    jvp=[lambda dx, out, x: mul(dx, _gaussian(x, 2 / math.sqrt(math.pi)))],
)
erfc = unary(
    "erfc",
    scipy_special("erfc"),
    hlo.erfc,
    FLOAT,
    jvp=[lambda dx, out, x: mul(dx, _gaussian(x, -2 / math.sqrt(math.pi)))],
    has_accuracy=True,
)
_erfinv = scipy_special("erfinv")
erf_inv = unary(
    # SciPy loses the sign of zero.
    "erf_inv",
    lambda x: np.copysign(_erfinv(x), x),
    hlo.erf_inv,
    FLOAT,
    jvp=[lambda dx, out, x: mul(dx, mul(math.sqrt(math.pi) / 2, exp(square(out))))],
    samples=Sampling(low=-0.9, high=0.9, tolerance=64.0),
)

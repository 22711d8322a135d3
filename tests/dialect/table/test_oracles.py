"""The evaluator of elementwise ops against NumPy in wider types, Python's integers, and mpmath.

Oracles of the other families stand with their tests in `tests/dialect/ops/`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from support.op_cases import Case, cases_of, differences

from axir.dialect.core import dtypes
from axir.dialect.core.extended_dtypes import words_of

# NumPy functions, applied to float64 or, for 64-bit operands, to long double.
_NUMPY: dict[str, Callable[..., Any]] = {
    "neg": np.negative, "add": np.add, "sub": np.subtract, "mul": np.multiply,
    "div": np.true_divide, "rem": np.fmod, "abs": np.abs, "square": np.square, "floor": np.floor,
    "max": np.maximum, "min": np.minimum, "ceil": np.ceil, "is_finite": np.isfinite,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "exp": np.exp, "exp2": np.exp2, "log": np.log, "expm1": np.expm1,
    "log1p": np.log1p, "pow": np.power, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
    "cbrt": np.cbrt, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh,
    "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "logistic": lambda x: 1 / (1 + np.exp(-x)), "sign": lambda x: x / np.abs(x),
    "real": np.real, "imag": np.imag, "conj": np.conj, "stop_gradient": np.positive,
    "clamp": lambda low, x, high: np.minimum(np.maximum(x, low), high),
    "integer_pow": lambda x, y: np.power(x, np.longdouble(y)),
}  # fmt: skip
_WIDE = {"f": np.float64, "c": np.complex128}
_WIDEST = {np.dtype(np.float64): np.longdouble, np.dtype(np.complex128): np.clongdouble}


def _floored(x: int, y: int) -> int:
    return abs(x) // abs(y) * (-1 if (x < 0) != (y < 0) else 1)


# Functions of Python integers; the results wrap around. `bits` is the width of the operands.
_INTEGERS: dict[str, Callable[..., Any]] = {
    "neg": operator.neg, "add": operator.add, "sub": operator.sub, "mul": operator.mul,
    "abs": abs, "square": lambda x: x * x, "sign": lambda x: (x > 0) - (x < 0),
    "div": lambda x, y: _floored(x, y) if y else -1,
    "rem": lambda x, y: x - y * _floored(x, y) if y else x,
    "max": max, "min": min, "eq": operator.eq, "ne": operator.ne, "lt": operator.lt,
    "le": operator.le, "gt": operator.gt, "ge": operator.ge, "not": operator.invert,
    "and": operator.and_, "or": operator.or_, "xor": operator.xor,
    "population_count": lambda x, bits: (x % 2**bits).bit_count(),
    "clz": lambda x, bits: bits - (x % 2**bits).bit_length(),
    "shift_left": lambda x, y, bits: x << y if 0 <= y < bits else 0,
    "shift_right_logical": lambda x, y, bits: x % 2**bits >> y if 0 <= y < bits else 0,
    "shift_right_arithmetic": lambda x, y, bits: _signed(x, bits) >> (y if 0 <= y < bits else bits),
    "mulhi": lambda x, y, bits: (x * y) >> bits, "stop_gradient": lambda x: x,
    "clamp": lambda low, x, high: min(max(x, low), high),
    "integer_pow": lambda x, y: x**y if y >= 0 else (_floored(1, x**-y) if x else -1),
}  # fmt: skip
_WITH_BITS = {
    "population_count", "clz", "shift_left", "shift_right_logical", "shift_right_arithmetic",
    "mulhi",
}  # fmt: skip


def _signed(x: int, bits: int) -> int:
    return (x + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


# Functions of real numbers in 30 digits, for samples away from the edges.
_MPMATH: dict[str, Callable[..., Any]] = {
    "erf": mpmath.erf, "erfc": mpmath.erfc, "erf_inv": mpmath.erfinv,
    "bessel_i0e": lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x)),
    "bessel_i1e": lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)),
    "lgamma": lambda x: mpmath.log(abs(mpmath.gamma(x))), "digamma": mpmath.digamma,
    "polygamma": mpmath.polygamma, "zeta": mpmath.zeta,
    "igamma": lambda a, x: mpmath.gammainc(a, 0, x, regularized=True),
    "igammac": lambda a, x: mpmath.gammainc(a, x, mpmath.inf, regularized=True),
    "igamma_grad_a": lambda a, x: mpmath.diff(
        lambda b: mpmath.gammainc(b, 0, x, regularized=True), a
    ),
    "random_gamma_grad": lambda a, x: -mpmath.diff(
        lambda b: mpmath.gammainc(b, 0, x, regularized=True), a
    ) * mpmath.gamma(a) * mpmath.exp(x) / mpmath.power(x, a - 1),
    "regularized_incomplete_beta": lambda a, b, x: mpmath.betainc(a, b, 0, x, regularized=True),
}  # fmt: skip


def _reference(case: Case) -> np.ndarray | None:
    """The oracle's result for the op; None for operands without an oracle."""
    name, (want,) = case.primitive.name, case.results
    operands = [*case.args, *case.params.values()]
    if case.args[0].dtype.names:
        return None  # random keys, which are no numbers
    if case.args[0].dtype.kind in "biu":
        if name not in _INTEGERS:
            return None
        return _by_integers(name, operands, want)
    if name in _MPMATH:
        return _by_mpmath(name, operands, want) if case.is_smooth else None
    if name not in _NUMPY or (name == "atan2" and dtypes.is_complex(want)):
        return None
    wide = [x if type(x) is int else x.astype(_wide(x.dtype)) for x in operands]
    with np.errstate(all="ignore"):
        return np.asarray(_NUMPY[name](*wide)).astype(want)


def _wide(dtype: np.dtype) -> Any:
    return _WIDEST.get(dtype, _WIDE[dtypes.kind(dtype)])


def _by_integers(name: str, operands: list[Any], want: np.dtype) -> np.ndarray:
    bits = operands[0].dtype.itemsize * 8
    more = (bits,) if name in _WITH_BITS else ()
    arrays = np.broadcast_arrays(*(np.asarray(x) for x in operands))
    rows = zip(*(a.flat for a in arrays), strict=True)
    values = [_INTEGERS[name](*map(int, row), *more) for row in rows]
    if want == dtypes.bool_:
        return np.array([v % 2 == 1 for v in values]).reshape(arrays[0].shape)
    words = np.array([v % 2 ** (want.itemsize * 8) for v in values], np.uint64)
    return words.astype(f"uint{want.itemsize * 8}").view(want).reshape(arrays[0].shape)


def _by_mpmath(name: str, operands: list[Any], want: np.dtype) -> np.ndarray:
    arrays = np.broadcast_arrays(*(x.astype(np.float64) for x in operands))
    with mpmath.workdps(30):
        values = [
            float(_MPMATH[name](*(mpmath.mpf(float(v)) for v in row)))
            for row in zip(*(a.flat for a in arrays), strict=True)
        ]
    return np.array(values).astype(want).reshape(arrays[0].shape)


def _comparable(case: Case, expected: np.ndarray) -> np.ndarray:
    """The places where the oracle is valid: not where it divides zeros or joins infinite parts."""
    keep = np.ones(expected.shape, np.bool_)
    if dtypes.is_complex(case.args[0].dtype):
        for x in case.args:
            keep &= np.isfinite(x) & (np.abs(x) > 0)
        keep &= np.isfinite(expected)
    if case.primitive.name == "sign" and dtypes.is_inexact(expected.dtype):
        keep &= np.isfinite(case.args[0]) & (case.args[0] != 0)
    return keep


@pytest.mark.parametrize("name", sorted({*_NUMPY, *_INTEGERS, *_MPMATH}))
def test_evaluator_agrees_with_the_oracle(name: str) -> None:
    problems: list[str] = []
    compared = 0
    for case in cases_of(name):
        expected = _reference(case)
        if expected is None or not math.prod(expected.shape):
            continue
        keep = _comparable(case, expected)
        problems += differences(
            str(case),
            [case.evaluate()[0][keep]],
            [expected[keep]],
            max(case.tolerance / 4, 4.0),
            is_elementwise=True,
            zero_signs=name not in ("max", "min", "clamp", "sign", "logistic"),
        )
        compared += 1
    assert compared
    assert not problems, "\n".join(problems)


# Ops with parameters ----------------------------------------------------------------------------


def _converted(value: Any, dtype: np.dtype) -> Any:
    """An element in another dtype, by Python's arithmetic."""
    if dtype == dtypes.bool_:
        return value != 0
    if not dtypes.is_integer(dtype):
        return np.asarray(value).astype(dtype)
    limits = np.iinfo(dtype)
    if isinstance(value, int):
        return (value - limits.min) % 2 ** (dtype.itemsize * 8) + limits.min
    if math.isnan(value):
        return 0
    return limits.min if value < limits.min else limits.max if value > limits.max else int(value)


def _convert(x: np.ndarray, new_dtype: np.dtype, weak_type: bool) -> list[np.ndarray]:
    wide = x.astype(np.float64) if dtypes.is_float(x.dtype) else x
    with np.errstate(over="ignore"):
        values = [_converted(v.item(), new_dtype) for v in wide.flat]
    return [np.array(values, new_dtype).reshape(x.shape)]


def _rounded(x: np.ndarray, rounding_method: int) -> list[np.ndarray]:
    wide = x.astype(np.float64)
    even = np.array([v if math.isinf(v) or math.isnan(v) else round(v) for v in wide.flat])
    down = np.floor(np.abs(wide.astype(np.longdouble)) + 0.5)
    result = (even.reshape(x.shape), down)[rounding_method == 0]
    return [np.copysign(np.abs(result.astype(np.float64)), wide).astype(x.dtype)]


def _bits(x: np.ndarray, new_dtype: np.dtype) -> list[np.ndarray]:
    old, new = x.dtype.itemsize, new_dtype.itemsize
    shape = x.shape if old == new else (*x.shape, old // new) if old > new else x.shape[:-1]
    return [np.frombuffer(x.tobytes(), new_dtype).reshape(shape)]


_WITH_PARAMETERS: dict[str, Callable[..., list[np.ndarray]]] = {
    "convert_element_type": _convert,
    "round": _rounded,
    "bitcast_convert_type": _bits,
    "tile": lambda x, reps: [np.tile(x, reps)],
    "stack": lambda *xs, axis: [np.stack(xs, axis)],
    "unstack": lambda x, axis: list(np.moveaxis(x, axis, 0)),
    "split": lambda x, sizes, axis: np.split(x, np.cumsum(sizes)[:-1], axis),
    "squeeze": lambda x, dimensions: [np.squeeze(x, dimensions)],
    "select_n": lambda which, *xs: [np.choose(which.astype(int), xs, mode="clip")],
    "nextafter": lambda x, y: [np.nextafter(x, y)],
}


@pytest.mark.parametrize("name", _WITH_PARAMETERS)
def test_evaluator_agrees_with_the_oracle_under_parameters(name: str) -> None:
    problems: list[str] = []
    for case in cases_of(name):
        if name == "nextafter" and case.args[0].dtype.itemsize == 2:
            continue  # NumPy's float16 does not go from 0.0 to -0.0
        with np.errstate(over="ignore"):  # the number next to the largest one
            results = _WITH_PARAMETERS[name](*case.args, **case.params)
        expected = [words_of(np.asarray(x)) for x in results]
        problems += differences(str(case), case.evaluate(), expected, 0)
    assert not problems, "\n".join(problems)

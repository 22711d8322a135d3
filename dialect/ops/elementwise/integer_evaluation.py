"""NumPy evaluations where NumPy's own semantics differ from StableHLO's: integer division by zero,
shifts beyond the width, bit counts, the sign of zero and NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes


def divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Divides; integers toward zero, with x / 0 = -1 (all bits set) and INT_MIN / -1 = INT_MIN."""
    if x.dtype.kind == "c":
        return _recovered(np.true_divide(x, y), x, y)
    if x.dtype.kind not in "iu":
        return np.true_divide(x, y)
    if x.dtype.kind == "u":
        quotient = np.floor_divide(x, np.where(y == 0, 1, y).astype(x.dtype))
        return np.where(y == 0, np.iinfo(x.dtype).max, quotient).astype(x.dtype)
    is_special = (y == 0) | (y == -1)
    safe = np.where(is_special, 1, y).astype(x.dtype)
    quotient = np.floor_divide(x, safe)
    remainder = x - quotient * safe
    quotient = quotient + ((remainder != 0) & ((x < 0) != (safe < 0)))
    quotient = np.where(y == -1, np.negative(x), quotient)
    return np.where(y == 0, -1, quotient).astype(x.dtype)


def _recovered(quotient: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Replaces complex quotients that are nan by C99's results (annex G.5.1)."""
    is_lost = np.isnan(quotient.real) & np.isnan(quotient.imag)
    if not is_lost.any():
        return quotient
    quotient, x, y = (np.array(v) for v in np.broadcast_arrays(quotient, x, y))
    a, b, c, d = x.real, x.imag, y.real, y.imag
    is_large = np.isinf(x) & np.isfinite(y)
    is_small = np.isinf(y) & np.isfinite(x)
    a, b = (np.where(is_large, np.copysign(np.isinf(v), v), v) for v in (a, b))
    c, d = (np.where(is_small, np.copysign(np.isinf(v), v), v) for v in (c, d))
    factor = np.where(is_large, np.inf, 0.0)
    is_known = is_lost & (is_large | is_small)
    quotient.real = np.where(is_known, factor * (a * c + b * d), quotient.real)
    quotient.imag = np.where(is_known, factor * (b * c - a * d), quotient.imag)
    return quotient


def remainder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Remainder with the sign of the dividend; x rem 0 = x and INT_MIN rem -1 = 0 for integers."""
    if x.dtype.kind not in "iu":
        return np.fmod(x, y)
    is_special = y == 0 if x.dtype.kind == "u" else (y == 0) | (y == -1)
    safe = np.where(is_special, 1, y).astype(x.dtype)
    return np.where(y == 0, x, np.fmod(x, safe)).astype(x.dtype)


def maximum(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Larger element; NaN if either is."""
    return np.maximum(x, y)


def minimum(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Smaller element; NaN if either is."""
    return np.minimum(x, y)


def sign(x: np.ndarray) -> np.ndarray:
    """Sign, keeping -0.0 and NaN; of complex numbers the direction."""
    if x.dtype.kind == "c":
        magnitude = np.abs(x)
        magnitude = np.where(magnitude == 0, 1, magnitude)
        direction = np.empty_like(x)
        direction.real, direction.imag = x.real / magnitude, x.imag / magnitude
        return direction
    if x.dtype.kind in "iu":
        return np.sign(x)
    return np.where((x == 0) | np.isnan(x), x, np.copysign(np.ones_like(x), x))


def lower_sign(x: ir.Value) -> ir.Value:
    """Returns the sign of a StableHLO value: 0 or 1 for an unsigned number."""
    if not hlo.is_unsigned(x):
        return hlo.sign(x)
    return hlo.minimum(x, hlo.full_like(x, 1))


def population_count(x: np.ndarray) -> np.ndarray:
    """Number of set bits."""
    return np.bitwise_count(_unsigned(x)).astype(x.dtype)


def count_leading_zeros(x: np.ndarray) -> np.ndarray:
    """Number of zero bits above the highest set bit."""
    smeared = _unsigned(x)
    width = x.dtype.itemsize * 8
    shift = 1
    while shift < width:
        smeared = smeared | np.right_shift(smeared, smeared.dtype.type(shift))
        shift *= 2
    return (width - np.bitwise_count(smeared).astype(np.int64)).astype(x.dtype)


def shift_left(x: np.ndarray, amount: np.ndarray) -> np.ndarray:
    """Shifts left; zero when the amount, read as unsigned, reaches the width."""
    return _shift(np.left_shift, _unsigned(x), amount, 0).view(x.dtype)


def shift_right_logical(x: np.ndarray, amount: np.ndarray) -> np.ndarray:
    """Shifts right, filling with zeros; zero when the amount reaches the width."""
    return _shift(np.right_shift, _unsigned(x), amount, 0).view(x.dtype)


def shift_right_arithmetic(x: np.ndarray, amount: np.ndarray) -> np.ndarray:
    """Shifts right, filling with the sign bit, also when the amount reaches the width."""
    signed = x.view(_signed_dtype(x.dtype))
    fill = np.where(signed < 0, -1, 0).astype(signed.dtype)
    return _shift(np.right_shift, signed, amount, fill).view(x.dtype)


def _shift(shift: Any, x: np.ndarray, amount: np.ndarray, beyond: Any) -> np.ndarray:
    width = x.dtype.itemsize * 8
    unsigned = _unsigned(np.asarray(amount))
    safe = np.where(unsigned < width, unsigned, 0).astype(x.dtype)
    return np.asarray(np.where(unsigned < width, shift(x, safe), beyond), dtype=x.dtype)


def _unsigned(x: np.ndarray) -> np.ndarray:
    return np.asarray(x).view(np.dtype(f"uint{x.dtype.itemsize * 8}"))


def _signed_dtype(dtype: np.dtype) -> np.dtype:
    return dtypes.SIGNED[dtypes.UNSIGNED.index(dtype)] if dtypes.is_unsigned(dtype) else dtype

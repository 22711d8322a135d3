"""LAPACK and BLAS routines, as SciPy offers them, found by name and dtype."""

from __future__ import annotations

import functools

import numpy as np

from axir.dialect.core.annotations import UserFunction

_PREFIXES = {"f": "s", "d": "d", "F": "c", "D": "z"}


@functools.cache
def routine(name: str, dtype: np.dtype) -> UserFunction:
    """Returns a routine for a dtype, such as sgetrf for "getrf" and float32."""
    from scipy.linalg import blas, lapack  # late: costs a fifth of a second

    full_name = _PREFIXES[dtype.char] + name
    return getattr(lapack if hasattr(lapack, full_name) else blas, full_name)

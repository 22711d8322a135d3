"""LAPACK and BLAS routines, as SciPy offers them, found by name and dtype."""

from __future__ import annotations

import functools

import numpy as np

from axir.dialect.core.annotations import UserFunction
from axir.dialect.core.late_modules import scipy_linalg

_PREFIXES = {"f": "s", "d": "d", "F": "c", "D": "z"}


@functools.cache
def routine(name: str, dtype: np.dtype) -> UserFunction:
    """Returns a routine for a dtype, such as sgetrf for "getrf" and float32."""
    blas, lapack = scipy_linalg.blas, scipy_linalg.lapack
    full_name = _PREFIXES[dtype.char] + name
    return getattr(lapack if hasattr(lapack, full_name) else blas, full_name)

"""LAPACK and BLAS: routines by name and dtype, and the number of threads that they use.

One thread is used where several threads would mostly wait for each other. OpenBLAS divides a
product of a thousand numbers among all cores, and its threads wait for the last one without
sleeping. If other work occupies the cores, a decomposition of some milliseconds takes up to a
hundred times as long: singular values of 200 x 200, two busy cores, 14 ms in one thread and 402 ms
in two. Here: the choice by size, and the calls that set it in OpenBLAS. Other libraries, such as
MKL, choose well and are not changed.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
import sys
import threading
from types import TracebackType
from typing import TypeAlias

import numpy as np

from axir.dialect.core.annotations import Returning, UserFunction
from axir.dialect.core.late_modules import scipy_linalg

_PREFIXES = {"f": "s", "d": "d", "F": "c", "D": "z"}


@functools.cache
def routine(name: str, dtype: np.dtype) -> UserFunction:
    """Returns a routine for a dtype, such as sgetrf for "getrf" and float32."""
    blas, lapack = scipy_linalg.blas, scipy_linalg.lapack
    full_name = _PREFIXES[dtype.char] + name
    return getattr(lapack if hasattr(lapack, full_name) else blas, full_name)


# OpenBLAS divides a triangular system from 32 x 32 numbers on, and a product of a matrix and a
# vector from 96 x 96 on. A second thread pays from about 512 x 512 on, if both threads have a core.
# If one has no core, a system of 32 x 32 took 4 ms instead of 4 us.
_FEWEST, _MANY = 32 * 32, 512 * 512
_AFFIXES = list(itertools.product(("", "scipy_"), ("", "64_", "_64")))


class _Library:
    """A copy of OpenBLAS in this process; NumPy and SciPy have one each."""

    def __init__(self, library: ctypes.CDLL):
        self.get = _symbol(library, "openblas_get_num_threads")
        self.set = _symbol(library, "openblas_set_num_threads")


_Symbol: TypeAlias = Returning[int]


def _symbol(library: ctypes.CDLL, name: str) -> _Symbol:
    names = [f"{prefix}{name}{suffix}" for prefix, suffix in _AFFIXES]
    found: _Symbol = next(getattr(library, x) for x in names if hasattr(library, x))
    return found


@functools.cache
def _libraries(has_scipy: bool) -> list[_Library]:
    """Returns the loaded copies of OpenBLAS; importing SciPy's linear algebra loads SciPy's."""
    import threadpoolctl  # late: only linear algebra needs it

    return [
        _Library(found.dynlib)
        for found in threadpoolctl.ThreadpoolController().lib_controllers
        if found.internal_api == "openblas"
    ]


class _OneThread:
    """A context in which OpenBLAS takes one thread, in all threads of the process.

    It does not use `threadpool_limits`, because that affects only the first thread that uses it,
    and programs call LAPACK from several threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._before: list[tuple[_Library, int]] = []

    def __enter__(self) -> None:
        with self._lock:
            if self._depth == 0:
                libraries = _libraries("scipy.linalg" in sys.modules)
                self._before = [(library, library.get()) for library in libraries]
                for library in libraries:
                    library.set(1)
            self._depth += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                for library, count in self._before:
                    library.set(count)


_one_thread = _OneThread()


def in_fitting_threads(evaluate: Returning[object]) -> Returning[object]:
    """Returns a function of arrays of matrices that uses one thread where more do not pay."""

    @functools.wraps(evaluate)
    def run(*operands: np.ndarray, **params: object) -> object:
        if _FEWEST <= max(_elements(x) for x in operands) < _MANY:
            with _one_thread:
                return evaluate(*operands, **params)
        return evaluate(*operands, **params)

    return run


def _elements(x: np.ndarray) -> int:
    return math.prod(x.shape[-2:])

"""Number of threads of LAPACK: one for matrices that are too small to divide."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.linalg
import threadpoolctl

from axir.dialect.ops.linalg.blas_threads import in_fitting_threads
from axir.numpy import linalg


def counts(*_: np.ndarray) -> list[int]:
    """The threads of each copy of OpenBLAS in this process."""
    assert scipy.linalg.lapack  # SciPy's copy is there
    found = threadpoolctl.ThreadpoolController().lib_controllers
    return [library.num_threads for library in found if library.internal_api == "openblas"]


pytestmark = pytest.mark.skipif(
    max(counts(), default=1) == 1, reason="runs where OpenBLAS takes several threads"
)


@pytest.mark.parametrize(
    ("shape", "is_alone"), [((8, 8), False), ((100, 100), True), ((9, 128, 96), True),
                        ((512, 512), False)]
)  # fmt: skip
def test_one_thread_for_matrices_of_middle_size(shape: tuple[int, ...], is_alone: bool) -> None:
    before = counts()
    within = in_fitting_threads(counts)(np.empty(shape, np.float32), np.empty((3, 3)))
    assert within == ([1] * len(before) if is_alone else before)
    assert counts() == before


def test_the_number_comes_back_after_errors() -> None:
    def fail(x: np.ndarray) -> None:
        raise FloatingPointError

    before = counts()
    with pytest.raises(FloatingPointError):
        in_fitting_threads(fail)(np.empty((100, 100)))
    assert counts() == before


def test_the_number_comes_back_when_the_last_of_several_threads_ends() -> None:
    before = counts()
    meeting = threading.Barrier(3)

    def meet(x: np.ndarray) -> list[int]:
        meeting.wait()
        found = counts()
        meeting.wait()
        return found

    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(in_fitting_threads(meet), [np.empty((100, 100))] * 3))
    assert found == [[1] * len(before)] * 3
    assert counts() == before


def test_decompositions_leave_the_number_as_it_was() -> None:
    before = counts()
    x = np.eye(120, dtype=np.float32)
    assert linalg.inv(x).shape == linalg.svd(x)[0].shape == x.shape
    assert counts() == before

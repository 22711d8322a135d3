"""The row `widening-before-slice`: parts of arrays that are computed from narrower numbers."""

from __future__ import annotations

import numpy as np
import pytest
from iree.compiler import ir
from support.stablehlo_runner import Example, deviations, run_examples, text_after

from axir.dialect.builders import stablehlo as hlo

X = np.arange(5, dtype=np.int32)
Y = np.arange(5, dtype=np.float64) / 4
Z = np.float64([0.5, 2, 3])
PASS = "separate-dispatches{row=widening-before-slice}"


def widened(x):
    wide = hlo.convert(x, ir.F64Type.get())
    return hlo.divide(wide, hlo.full_like(wide, 4))


def put_into_longer(y, z):
    """Every other element times `z`, between sevens."""
    part = hlo.multiply(hlo.slice(y, [0], [5], [2]), z)
    return [hlo.pad(part, hlo.constant(np.float64(7)), [2], [5], [0])]


def of_widened(x, z):
    return put_into_longer(widened(x), z)


def of_wide(y, z):
    return put_into_longer(hlo.add(y, y), z)


def element_of_widened(x, z):
    """An element of a matrix as a row, times `z`: a compilation without end."""
    matrix = widened(hlo.reshape(hlo.pad(x, hlo.constant(np.int32(1)), [0], [1], [0]), (2, 3)))
    element = hlo.slice(hlo.reshape(matrix, (6,)), [3], [4])
    return [hlo.multiply(hlo.broadcast_in_dim(element, (3,), (0,)), z)]


def expected(y):
    result = np.full(10, 7.0)
    result[2:5] = y[::2] * Z
    return [result]


WIDENED = Example("widened", (X, Z), of_widened, expected(X / 4))
ELEMENT = Example("element", (X, Z), element_of_widened, [X[3] / 4 * Z])
WIDE = Example("wide", (Y, Z), of_wide, expected(2 * Y))


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples([WIDENED, ELEMENT, WIDE], PASS)


@pytest.mark.parametrize("example", [WIDENED, ELEMENT, WIDE], ids=lambda example: example.name)
def test_values(results: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results[example.name], example) == []


def test_the_pass_is_still_needed() -> None:
    assert deviations(run_examples([WIDENED])["widened"], WIDENED)


def test_only_what_is_widened_is_stored() -> None:
    assert text_after(WIDENED, PASS).count("optimization_barrier") == 1
    assert text_after(WIDE, PASS) == text_after(WIDE, "")

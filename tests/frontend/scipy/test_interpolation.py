"""`axir.scipy.interpolate`, `integrate` and `cluster.vq` against SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.cluster.vq
import scipy.integrate
import scipy.interpolate

import axir
import axir.numpy as jnp
from axir.scipy import cluster, integrate
from axir.scipy.interpolate import RegularGridInterpolator

_GENERATOR = np.random.default_rng(0)
GRID = (np.array([0.0, 1.0, 1.5, 4.0]), np.array([-1.0, 0.0, 2.0]))
VALUES = _GENERATOR.standard_normal((4, 3, 2))
POINTS = _GENERATOR.uniform((-1, -2), (5, 3), (30, 2))


@pytest.mark.parametrize("method", ["linear", "nearest"])
@pytest.mark.parametrize("fill_value", [np.nan, 7.0, None])
def test_values_on_a_grid(method: str, fill_value: float | None) -> None:
    options = {"method": method, "fill_value": fill_value, "bounds_error": False}
    expected = scipy.interpolate.RegularGridInterpolator(GRID, VALUES, **options)(POINTS)
    for bits in (32, 64):
        with axir.enable_x64(bits == 64):
            at = RegularGridInterpolator(GRID, VALUES.astype(f"float{bits}"), **options)
            points = POINTS.astype(f"float{bits}")
            np.testing.assert_allclose(at(points), expected, rtol=1e-4, atol=1e-5)
            columns = at((points[:, 0], points[:, 1]))
            np.testing.assert_array_equal(at(points.reshape(5, 6, 2)), columns.reshape(5, 6, 2))


def test_compiled_as_a_tree_with_derivatives() -> None:
    at = RegularGridInterpolator(GRID, VALUES.astype(np.float32), fill_value=None)
    points = POINTS.astype(np.float32)
    gradient = axir.jit(axir.grad(lambda at, x: (at(x) ** 2).sum()))(at, points)
    corner = gradient.values[1, 1, 0]
    step = np.zeros(VALUES.shape, np.float32)
    step[1, 1, 0] = 1e-2

    def loss(sign: int) -> float:
        moved = RegularGridInterpolator(GRID, VALUES + sign * step, fill_value=None)
        return float((np.asarray(moved(points), np.float64) ** 2).sum())

    np.testing.assert_allclose(corner, (loss(1) - loss(-1)) / 2e-2, rtol=1e-3, atol=1e-3)


def test_descending_axes_and_single_points() -> None:
    ascending = RegularGridInterpolator(GRID, VALUES)
    descending = RegularGridInterpolator((GRID[0][::-1], GRID[1]), VALUES[::-1])
    np.testing.assert_allclose(ascending(POINTS), descending(POINTS), rtol=1e-4, atol=1e-5)
    line = RegularGridInterpolator((GRID[0],), VALUES[:, 0, 0])
    np.testing.assert_allclose(line(np.array([1.0, 1.5])), VALUES[1:3, 0, 0], rtol=1e-6)
    assert ascending(np.array([1.0, 0.0])).shape == (1, 2)


def test_points_outside_are_errors_if_wanted() -> None:
    at = RegularGridInterpolator(GRID, VALUES, bounds_error=True)
    with pytest.raises(axir.errors.OutOfBoundsError, match="lie outside the grid"):
        at(POINTS)
    assert at(np.ones((3, 2))).shape == (3, 2)
    with pytest.raises(axir.errors.ParameterError, match="bounds_error=False"):
        axir.jit(at)(POINTS)


def test_trapezoids() -> None:
    y, x = VALUES[:, :, 0].astype(np.float32), GRID[0].astype(np.float32)
    expected = scipy.integrate.trapezoid(y, x, axis=0)
    np.testing.assert_allclose(integrate.trapezoid(y, x, axis=0), expected, rtol=1e-5)
    np.testing.assert_allclose(
        integrate.trapezoid(y, dx=0.5), scipy.integrate.trapezoid(y, dx=0.5), rtol=1e-5
    )


@pytest.mark.parametrize("shapes", [((20, 3), (5, 3)), ((20,), (5,))])
def test_nearest_codes(shapes: Any) -> None:
    obs, codes = (_GENERATOR.standard_normal(shape).astype(np.float32) for shape in shapes)
    for function in (cluster.vq.vq, axir.jit(cluster.vq.vq)):
        for ours, theirs in zip(function(obs, codes), scipy.cluster.vq.vq(obs, codes), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: RegularGridInterpolator(GRID, VALUES, "cubic"), "ParameterError", "'nearest'"),
        (lambda: RegularGridInterpolator(GRID, VALUES[0, 0]), "ShapeError", "2 axes in points"),
        (lambda: RegularGridInterpolator(GRID, VALUES[1:]), "ShapeError", "has shape (4,)"),
        (
            lambda: RegularGridInterpolator((np.array([1.0, 1.0]),), np.ones(2)),
            "ParameterError",
            "neither ascends",
        ),
        (
            lambda: RegularGridInterpolator(GRID, VALUES, fill_value=1j),
            "DTypeError",
            "complex64",
        ),
        (
            lambda: RegularGridInterpolator(GRID, VALUES)(np.ones((3, 4))),
            "ShapeError",
            "do not have 2 coordinates",
        ),
        (lambda: cluster.vq.vq(np.ones(3), np.ones((1, 3))), "ShapeError", "both be"),
        (lambda: cluster.vq.vq(np.ones((2, 3)), np.ones((1, 2))), "ShapeError", "do not fit"),
    ],
)
def test_errors(call: Callable[[], Any], error: str, text: str) -> None:
    with pytest.raises(axir.errors.AxirError) as caught:
        call()
    assert type(caught.value).__name__ == error
    assert text in str(caught.value)


def test_a_sum_of_points_is_a_tuple() -> None:
    at = RegularGridInterpolator(GRID, VALUES)
    assert at((jnp.zeros((2, 1)), jnp.zeros(3))).shape == (2, 3, 2)

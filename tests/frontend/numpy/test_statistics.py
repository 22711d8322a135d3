"""Histograms, interpolation, covariances, and values put at positions agree with JAX and NumPy."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from support.against_jax import assert_same

import axir
import axir.numpy as jnp
from axir.dialect.core.errors import (
    ConcretizationTypeError,
    DTypeError,
    ImmutableArrayError,
    OutOfBoundsError,
    ParameterError,
    ShapeError,
)

RNG = np.random.default_rng(1)
X = RNG.normal(size=40).astype(np.float32)
Y = RNG.normal(size=40).astype(np.float32)
W = RNG.uniform(0.5, 2, 40).astype(np.float32)
COUNTS = np.array([0, 3, 3, 7, -2, 1], np.int32)


def compare(name: str, *args: Any, factor: float = 16.0, **options: Any) -> None:
    ours = getattr(jnp, name)(*args, **options)
    theirs = getattr(jax.numpy, name)(*args, **options)
    assert_same(ours, theirs, factor, name)


@pytest.mark.parametrize(
    "options",
    [{}, {"minlength": 12}, {"length": 4}, {"weights": W[:6]}, {"length": 9, "minlength": 3}],
    ids=str,
)
def test_bincount(options: dict[str, Any]) -> None:
    compare("bincount", COUNTS, **options)
    compare("bincount", COUNTS[:0], **{k: v for k, v in options.items() if k != "weights"})


def test_bincount_is_compiled_with_a_length() -> None:
    result = axir.jit(lambda x: jnp.bincount(x, length=5))(COUNTS)
    np.testing.assert_array_equal(result, [2, 1, 0, 2, 0])
    with pytest.raises(ConcretizationTypeError, match="length"):
        axir.jit(jnp.bincount)(COUNTS)
    with pytest.raises(DTypeError):
        jnp.bincount(X)
    with pytest.raises(ShapeError):
        jnp.bincount(COUNTS[None])
    with pytest.raises(ShapeError, match="weights"):
        jnp.bincount(COUNTS, W)


EDGES = np.array([-1.0, 0.0, 0.25, 2.0], np.float32)
BINS: list[dict[str, Any]] = [
    {}, {"bins": 4}, {"bins": EDGES}, {"bins": 3, "range": (-1, 1)}, {"bins": 5, "range": (1, 1)},
]  # fmt: skip


@pytest.mark.parametrize("options", BINS, ids=str)
def test_histograms_in_one_dimension(options: dict[str, Any]) -> None:
    compare("histogram_bin_edges", X, **options)
    for density in (False, True):
        compare("histogram", X, density=density, **options)
        compare("histogram", X, weights=W, density=density, **options)
    compare("histogram", COUNTS, **options)
    compare("histogram", X.reshape(8, 5), **options)


def test_the_last_edge_belongs_to_the_last_bin() -> None:
    counts, _ = axir.jit(lambda x: jnp.histogram(x, bins=2))(np.array([0.0, 1.0, 2.0], np.float32))
    np.testing.assert_array_equal(counts, [1, 2])
    with pytest.raises(ParameterError, match="auto"):
        jnp.histogram(X, bins="auto")
    with pytest.raises(ShapeError):
        jnp.histogram(X, weights=W[:3])


@pytest.mark.parametrize(
    "options",
    [{}, {"bins": 3}, {"bins": [2, 4]}, {"bins": [EDGES, 3]}, {"range": [(-1, 1), (0, 2)]},
     {"weights": W, "density": True, "bins": 3}],
    ids=str,
)  # fmt: skip
def test_histograms_in_more_dimensions(options: dict[str, Any]) -> None:
    compare("histogram2d", X, Y, **options)
    compare("histogramdd", np.stack([X, Y], 1), **options)


def test_histogramdd_that_does_not_fit() -> None:
    with pytest.raises(ShapeError):
        jnp.histogramdd(X)
    with pytest.raises(ParameterError, match="bins"):
        jnp.histogramdd(np.stack([X, Y], 1), bins=[1, 2, 3])
    with pytest.raises(ShapeError, match="weights"):
        jnp.histogram2d(X, Y, weights=W[:2])
    compare("histogram2d", X, Y, bins=EDGES)


POINTS = np.array([-1.0, 0.0, 0.5, 3.0], np.float32)
VALUES = np.array([2.0, 5.0, -1.0, 4.0], np.float32)
WHERE = np.array([[-2.0, -1.0, -0.5], [0.0, 0.3, 3.0], [3.5, np.nan, 1.0]], np.float32)


@pytest.mark.parametrize(
    "options",
    [{}, {"left": 9.0, "right": -9.0}, {"left": "extrapolate", "right": "extrapolate"},
     {"right": "extrapolate"}, {"period": 2.5}],
    ids=str,
)  # fmt: skip
def test_interp(options: dict[str, Any]) -> None:
    compare("interp", WHERE, POINTS, VALUES, **options)
    compare("interp", WHERE, POINTS, VALUES + 1j * VALUES[::-1], **options)
    compare("interp", np.arange(4), np.arange(3), np.arange(3) * 2, **options)


def test_interp_is_differentiated_and_says_what_is_wrong() -> None:
    ours = axir.grad(lambda x: jnp.interp(x, POINTS, VALUES))(0.25)
    np.testing.assert_allclose(ours, -12.0, rtol=1e-5)
    doubled = np.array([0, 1, 1, 2], np.float32)
    assert np.isfinite(jnp.interp(np.float32(1), doubled, VALUES))
    with pytest.raises(ShapeError):
        jnp.interp(WHERE, POINTS, VALUES[:2])
    with pytest.raises(ParameterError, match="extrapolate"):
        jnp.interp(WHERE, POINTS, VALUES, left="nearest")
    with pytest.raises(ParameterError, match="period"):
        jnp.interp(WHERE, POINTS, VALUES, period=0)


ROWS = RNG.normal(size=(3, 7)).astype(np.float32)
FREQUENCIES = np.array([1, 2, 1, 3, 1, 1, 2], np.int32)


@pytest.mark.parametrize(
    "options",
    [{}, {"bias": True}, {"ddof": 2}, {"rowvar": False}, {"fweights": FREQUENCIES},
     {"aweights": W[:7]}, {"fweights": FREQUENCIES, "aweights": W[:7], "ddof": 0},
     {"fweights": FREQUENCIES, "aweights": W[:7]}],
    ids=str,
)  # fmt: skip
def test_cov(options: dict[str, Any]) -> None:
    rows = ROWS.T if not options.get("rowvar", True) else ROWS
    np.testing.assert_allclose(
        jnp.cov(rows, **options), np.cov(rows, **options), rtol=1e-4, atol=1e-6
    )
    compare("cov", rows, factor=400.0, **options)


def test_cov_and_corrcoef_of_other_arguments() -> None:
    compare("cov", ROWS, ROWS[0], factor=400.0)
    compare("cov", ROWS[0], factor=100.0)
    compare("cov", (ROWS + 1j * ROWS[::-1]).astype(np.complex64), factor=400.0)
    compare("cov", np.arange(6).reshape(2, 3))
    compare("corrcoef", ROWS, factor=400.0)
    compare("corrcoef", ROWS[0], ROWS[1], factor=400.0)
    compare("corrcoef", (ROWS + 1j * ROWS[::-1]).astype(np.complex64), factor=400.0)
    compare("corrcoef", ROWS[0])
    for error, arguments in [
        (ShapeError, {"m": np.ones((2, 2, 2))}),
        (ShapeError, {"m": ROWS, "fweights": FREQUENCIES[:2]}),
        (DTypeError, {"m": ROWS, "fweights": W[:7]}),
        (ShapeError, {"m": ROWS, "y": X}),
    ]:
        with pytest.raises(error):
            jnp.cov(**arguments)


@pytest.mark.parametrize("options", [{}, {"discont": 5.0}, {"axis": 0}, {"period": 3.0}], ids=str)
def test_unwrap(options: dict[str, Any]) -> None:
    phases = (np.cumsum(RNG.uniform(-4, 4, (5, 9)), 1) % 6.0).astype(np.float32)
    compare("unwrap", phases, factor=64.0, **options)
    whole = np.array([[0, 3, 2, 1, 5, 9], [7, 0, 4, 2, 6, 1]], np.int32)
    for period in (4, 5):
        np.testing.assert_array_equal(
            jnp.unwrap(whole, period=period), np.unwrap(whole, period=period)
        )


def test_put() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for mode in (None, "clip", "wrap"):
        for index, values in (([0, -1, 9], [7.0, 8.0]), ([[1], [4]], 5.0), ([], [1.0])):
            arguments = (x, np.array(index, np.int32), np.asarray(values, np.float32))
            compare("put", *arguments, mode=mode, inplace=False)
    with pytest.raises(ImmutableArrayError, match="inplace=False"):
        jnp.put(x, np.array([0]), 1.0)
    with pytest.raises(ParameterError, match="mode"):
        jnp.put(x, np.array([0]), 1.0, mode="raise", inplace=False)


def test_put_along_axis() -> None:
    x = RNG.normal(size=(3, 4)).astype(np.float32)
    for axis, shape in ((0, (2, 4)), (1, (3, 1)), (-1, (1, 2)), (None, (5,))):
        index = RNG.permutation(x.shape[axis] if axis is not None else 12)
        index = np.resize(index, shape).astype(np.int32)
        compare("put_along_axis", x, index, np.float32(9), axis, inplace=False)
    with pytest.raises(ShapeError):
        jnp.put_along_axis(x, np.array([0]), 1.0, 0, inplace=False)


def test_choose() -> None:
    numbers = np.array([[0, 2, 1], [1, 1, 0]], np.int32)
    choices = [np.arange(3, dtype=np.float32), np.float32(10), np.full((2, 1), 20, np.int32)]
    compare("choose", numbers, choices)
    for mode in ("wrap", "clip"):
        compare("choose", numbers - 3, choices, mode=mode)
        result = axir.jit(lambda n, mode=mode: jnp.choose(n, choices, mode=mode))(numbers * 2)
        np.testing.assert_array_equal(result, np.choose(numbers * 2, choices, mode=mode))
    with pytest.raises(OutOfBoundsError):
        jnp.choose(numbers + 1, choices)
    with pytest.raises(ConcretizationTypeError, match="clip"):
        axir.jit(lambda n: jnp.choose(n, choices))(numbers)
    with pytest.raises(ParameterError, match="mode"):
        jnp.choose(numbers, choices, mode="fill")

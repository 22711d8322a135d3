"""`axir.scipy.stats` against SciPy: distributions by a table of parameters and points."""

from __future__ import annotations

import inspect
import types
import warnings
from collections.abc import Iterator
from typing import Any

import jax.scipy.stats
import numpy as np
import pytest
import scipy.stats

import axir
import axir.numpy as jnp
from axir.dialect.core.config import config
from axir.scipy import stats

_INFINITE = np.inf
_X = np.array(
    [-_INFINITE, -1e15, -300, -20, -3, -1, -0.5, -1e-9, 0, 1e-9, 1e-3, 0.3, 0.5, 1, 1.5, 2, 3, 6.2,
     7, 20, 300, 1e15, _INFINITE, np.nan]
)  # fmt: skip
_Q = np.array([-1, 0, 1e-300, 1e-9, 0.1, 0.6, 0.9, 1 - 1e-12, 1, 2, np.nan])
_K = np.array([-3, -1, 0, 0.5, 1, 2, 3, 4, 5, 6, 20, np.nan])
# Parameters, those outside their range among them.
CONTINUOUS = {
    "beta": [(0.5, 0.5), (1, 1), (2, 5), (30, 40), (0, 1), (1, -1)],
    "cauchy": [()],
    "chi2": [(0.5,), (2,), (9,), (0,), (-1,)],
    "expon": [()],
    "gamma": [(0.5,), (1,), (2.5,), (40,), (0,), (-1,), (np.nan,)],
    "gennorm": [(0.5,), (1,), (2,), (7,), (0,), (-1,)],
    "gumbel_l": [()],
    "gumbel_r": [()],
    "laplace": [()],
    "logistic": [()],
    "norm": [()],
    "pareto": [(0.5,), (3,), (0,), (-1,)],
    "t": [(0.3,), (1,), (5,), (1e9,), (_INFINITE,), (0,), (-2,)],
    "truncnorm": [(-1, 1), (-3, _INFINITE), (5, 9), (-9, -5), (-1, 20), (2, 1), (1, 1)],
    "uniform": [()],
    "vonmises": [(0,), (1,), (300,), (-1,)],
    "wrapcauchy": [(0.01,), (0.5,), (0,), (1,), (-1,), (2,)],
}
DISCRETE = {
    "bernoulli": [(0.3,), (0,), (1,), (2,), (np.nan,)],
    "betabinom": [(5, 0.3, 2), (0, 1, 1), (100, 2, 3), (5, 0, 1), (-1, 1, 1)],
    "binom": [(5, 0.3), (5, 0), (5, 1), (0, 0.3), (-1, 0.5), (2.5, 0.5), (5, 2)],
    "geom": [(0.3,), (1,), (0,), (2,)],
    "nbinom": [(5, 0.3), (0.5, 0.9), (5, 1), (0, 0.5), (3, 0), (3, 2)],
    "poisson": [(3,), (0,), (100,), (-1,)],
}
DISTRIBUTIONS = {**CONTINUOUS, **DISCRETE}
QUANTILES = ("ppf", "isf")
# Points where both are defined, for derivatives and compiled code: numbers, parameters.
INSIDE: dict[str, tuple[list[float], tuple[float, ...]]] = {
    "beta": ([0.1, 0.4, 0.9], (2.5, 1.5)),
    "chi2": ([0.3, 2.0, 9.0], (3.0,)),
    "expon": ([0.2, 1.0, 5.0], ()),
    "gamma": ([0.3, 2.0, 9.0], (2.5,)),
    "gennorm": ([-2.0, 0.5, 1.5], (1.5,)),
    "pareto": ([1.2, 2.0, 9.0], (2.0,)),
    "t": ([-2.0, 0.5, 1.5], (3.0,)),
    "truncnorm": ([-0.5, 0.5, 1.5], (-1.0, 2.0)),
    "uniform": ([0.1, 0.5, 0.9], ()),
    "vonmises": ([-2.0, 0.5, 1.5], (3.0,)),
    "wrapcauchy": ([0.3, 2.0, 5.0], (0.4,)),
    "bernoulli": ([0, 1, 1], (0.3,)),
    "betabinom": ([0, 2, 5], (6.0, 1.5, 2.0)),
    "binom": ([0, 2, 5], (6.0, 0.3)),
    "geom": ([1, 2, 5], (0.3,)),
    "nbinom": ([0, 2, 5], (2.5, 0.3)),
    "poisson": ([0, 2, 5], (2.5,)),
}


def inside(name: str, method: str) -> tuple[np.ndarray, tuple[float, ...]]:
    points, parameters = INSIDE.get(name, ([-2.0, 0.5, 1.5], ()))
    return np.array([0.1, 0.4, 0.95] if method in QUANTILES else points, float), parameters


METHODS = [
    (name, method)
    for name in DISTRIBUTIONS
    for method in getattr(stats, name).__all__
    if method != "entropy"
]


@pytest.fixture(autouse=True)
def wide_dtypes() -> Iterator[None]:
    with config(jax_enable_x64=True):
        yield


def reference(name: str, method: str, *args: Any) -> np.ndarray:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(getattr(getattr(scipy.stats, name), method)(*args))


def assert_close(got: Any, want: np.ndarray, rtol: float, what: str = "") -> None:
    """Compares logarithms near 0 and tiny shares like other numbers: relatively."""
    got = np.broadcast_to(np.asarray(got), want.shape)
    kept = (abs(want) > 1e-290) | (want == 0) | np.isnan(want)
    np.testing.assert_allclose(got[kept], want[kept], rtol=rtol, err_msg=what)


def test_names_and_signatures_are_those_of_jax() -> None:
    names = {name for name in dir(jax.scipy.stats) if not name.startswith("_")}
    assert names == set(stats.__all__) | {"annotations"} & names
    for name in names:
        mine, theirs = getattr(stats, name), getattr(jax.scipy.stats, name)
        if isinstance(theirs, types.ModuleType):
            methods = {method for method in dir(theirs) if not method.startswith("_")}
            assert methods <= set(mine.__all__), name
            pairs = [(getattr(mine, m), getattr(theirs, m)) for m in methods]
        else:
            pairs = [(mine, theirs)] if inspect.isfunction(mine) else []
        for function, model in pairs:
            parameters = inspect.signature(function).parameters.values()
            expected = inspect.signature(model).parameters.values()
            assert [(p.name, p.default, p.kind) for p in parameters] == [
                (p.name, p.default, p.kind) for p in expected
            ], (name, function.__name__)


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_function_is_that_of_scipy(name: str, method: str) -> None:
    function = getattr(getattr(stats, name), method)
    model = inspect.signature(function).parameters
    points = _Q if method in QUANTILES else _X if name in CONTINUOUS else _K
    for parameters in DISTRIBUTIONS[name]:
        places: list[tuple[float, ...]] = [()]
        if "scale" in model:
            places += [(0.5, 2), (0.5, -1), (0.5, 0), (0, np.nan), (np.nan, 1)]
        elif "loc" in model:
            places += [(1,), (0.5,)]
        for place in places:
            want = reference(name, method, points, *parameters, *place)
            with np.errstate(all="ignore"):
                got = np.asarray(function(points, *parameters, *place))
            if method in ("pdf", "logpdf"):  # where SciPy subtracts infinities
                at_end = np.isinf(points) & np.isnan(want) & ~np.isnan(got)
                assert (got[at_end] == (0 if method == "pdf" else -np.inf)).all()
                # SciPy's logarithm of a density that underflows, where it has no better one.
                is_tiny = (want == -np.inf) & (-np.inf < got) & (got < -600)
                want = np.where(at_end | is_tiny, got, want)
            if name == "cauchy" and method in QUANTILES:
                want = np.where(abs(want) < 1e-9, got, want)
            assert_close(got, want, 2e-11, f"{parameters} {place}")


def test_broadcasting_and_dtypes() -> None:
    for name, method in METHODS:
        function = getattr(getattr(stats, name), method)
        points, parameters = inside(name, method)
        narrow = [np.asarray(p, np.float32) for p in parameters]
        row = function(points.astype(np.float32), *narrow)
        # What JAX gives in the default dtype.
        is_wide = name == "norm" and method in QUANTILES
        assert row.dtype == (np.float64 if is_wide else np.float32), name
        # Arguments in half precision (the first is exact in it), and a column of them.
        half = function(np.float16(points[1:2]), *narrow)
        assert half.shape == (1,)
        column = [np.asarray(p, np.float32).reshape(1, 1) for p in parameters]
        grid = function(points.astype(np.float32)[:, None], *column)
        assert grid.shape == (3, 1)
        np.testing.assert_array_equal(grid[:, 0], row)
        want = reference(name, method, np.float64(np.float32(points)), *map(np.float64, narrow))
        np.testing.assert_allclose(row, want, rtol=5e-6, atol=1e-6, err_msg=f"{name}.{method}")
        integer = function(np.arange(1, 3, dtype=np.int32), *narrow)
        assert integer.dtype == row.dtype


def smooth_arguments(name: str, method: str, count: int) -> range:
    """Returns the numbers of the arguments in which a function has a derivative."""
    if name == "beta" and method in ("cdf", "logcdf", "logsf"):
        return range(1)
    first = 0 if name in CONTINUOUS else 2 if name in ("binom", "betabinom") else 1
    return range(first, count)


@pytest.mark.parametrize("name", [n for n in DISTRIBUTIONS if n != "bernoulli"])
def test_derivatives_are_limits_of_differences(name: str) -> None:
    for method in getattr(stats, name).__all__:
        if method in ("pdf", "pmf", "entropy", "sf") or (name, method) == ("poisson", "cdf"):
            continue
        function = getattr(getattr(stats, name), method)
        x, parameters = inside(name, method)
        args = [x, *(np.full(3, p) for p in parameters)]
        for i in smooth_arguments(name, method, len(args)):
            before, after = args[:i], args[i + 1 :]

            def along(value: Any) -> Any:
                return function(*before, value, *after)  # noqa: B023 - called in its round

            point, step = args[i], 1e-5 * abs(args[i])
            _, slope = axir.jvp(along, (point,), (np.ones(3),))
            difference = (along(point + step) - along(point - step)) / (2 * step)
            np.testing.assert_allclose(
                slope, difference, rtol=1e-6, atol=1e-8, err_msg=f"{method}, argument {i}"
            )


def test_derivatives_outside_the_support_are_zero() -> None:
    for name, x, *parameters in [
        ("gamma", -1.0, 0.5), ("beta", 2.0, 0.5, 0.5), ("pareto", 0.5, 2.0), ("expon", -1.0),
        ("truncnorm", 5.0, -1.0, 1.0), ("poisson", -1.0, 2.0), ("binom", 7.0, 5.0, 0.5),
    ]:  # fmt: skip
        module = getattr(stats, name)
        function = module.logpdf if name in CONTINUOUS else module.logpmf
        slopes = axir.grad(function, tuple(range(1 + len(parameters))))(x, *parameters)
        assert [float(s) for s in slopes] == [0.0] * (1 + len(parameters)), name


@pytest.mark.parametrize("wide", [False, True])
def test_quantiles_of_the_normal_distribution_have_jax_s_dtype(wide: bool) -> None:
    with config(jax_enable_x64=wide), jax.enable_x64(wide):
        for name in QUANTILES:
            ours = getattr(stats.norm, name)(jnp.float32(0.3))
            theirs = getattr(jax.scipy.stats.norm, name)(jax.numpy.float32(0.3))
            assert (ours.dtype, ours.weak_type) == (theirs.dtype, theirs.weak_type)
            np.testing.assert_allclose(ours, np.asarray(theirs), rtol=1e-6)


def test_compiled_as_evaluated() -> None:
    # Building blocks of others: their ops are compiled by the tests of the table.
    pairs = [pair for pair in METHODS if pair[1] in ("logpdf", "logpmf")]
    pairs += [("norm", "logcdf"), ("norm", "ppf"), ("truncnorm", "logcdf"), ("cauchy", "ppf")]
    arguments = {pair: inside(*pair) for pair in pairs}

    def everything(shift: Any) -> Any:
        return [
            getattr(getattr(stats, name), method)(points + shift, *parameters)
            for (name, method), (points, parameters) in arguments.items()
        ]

    with config(jax_enable_x64=False):
        results = axir.jit(everything)(jnp.zeros(3))
        expected = everything(jnp.zeros(3))
    for pair, got, want in zip(pairs, results, expected, strict=True):
        assert got.dtype == want.dtype == np.float32
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6, err_msg=str(pair))


def test_entropy_of_poisson() -> None:
    mu = np.array([0, 0.01, 1, 30, 49.9, 50.1, 1000])
    want = reference("poisson", "entropy", mu)
    np.testing.assert_allclose(stats.poisson.entropy(mu), want, rtol=1e-11)
    assert stats.poisson.entropy(1.0, np.zeros((2, 1))).shape == (2, 1)
    assert np.isnan(stats.poisson.entropy(-1.0))
    assert float(axir.grad(stats.poisson.entropy)(0.5)) > 0

"""`expand-complex`: functions of complex numbers near zeros, branch cuts, and far out."""

from __future__ import annotations

import functools

import mpmath
import numpy as np
import pytest
from support.stablehlo_runner import Example, run_examples

from axir.dialect.builders import stablehlo as hlo

RNG = np.random.default_rng(0)
UNARY = {
    "abs": (hlo.abs, np.abs),
    "sign": (hlo.sign, lambda z: np.where(z == 0, 0, z / np.where(z == 0, 1, np.abs(z)))),
    "sqrt": (hlo.sqrt, np.sqrt),
    "rsqrt": (hlo.rsqrt, lambda z: 1 / np.sqrt(z)),
    "log": (hlo.log, np.log),
    "log_plus_one": (hlo.log_plus_one, None),
    "exponential": (hlo.exponential, np.exp),
    "exponential_minus_one": (hlo.exponential_minus_one, np.expm1),
    "tanh": (hlo.tanh, np.tanh),
    "logistic": (hlo.logistic, lambda z: 1 / (1 + np.exp(-z))),
    "sine": (hlo.sine, np.sin),
    "cosine": (hlo.cosine, np.cos),
    "tan": (hlo.tan, np.tan),
    "sinh": (hlo.sinh, np.sinh),
    "cosh": (hlo.cosh, np.cosh),
    "asin": (hlo.asin, np.arcsin),
    "acos": (hlo.acos, np.arccos),
    "atan": (hlo.atan, np.arctan),
    "asinh": (hlo.asinh, np.arcsinh),
    "acosh": (hlo.acosh, np.arccosh),
    "atanh": (hlo.atanh, np.arctanh),
}
BINARY = {"divide": (hlo.divide, np.divide), "power": (hlo.power, np.power)}
GROWING = ("exponential", "exponential_minus_one", "sine", "cosine", "sinh", "cosh", "logistic")
DTYPES = {"c64": np.complex64, "c128": np.complex128}


def log_plus_one(z: np.ndarray) -> np.ndarray:
    with mpmath.workdps(80):
        return np.array([complex(mpmath.log(1 + mpmath.mpc(v))) for v in z])


def grid(*values: float) -> np.ndarray:
    return np.array([complex(a, b) for a in values for b in values])


# NumPy's log1p, asin and similar functions are the references: for doubles they are correct here.
PLAIN = RNG.normal(size=200) * 3 + 1j * RNG.normal(size=200) * 3
SMALL = grid(0, 0.5, -0.5, 2, -3, 1e-3, -1e-5)
LARGE = np.exp(1j * RNG.uniform(-np.pi, np.pi, 100)) * 10.0 ** RNG.uniform(5, 18, 100)
TINY = np.exp(1j * RNG.uniform(-np.pi, np.pi, 100)) * 10.0 ** RNG.uniform(-18, -3, 100)
HUGE = grid(1e30, -1e30, 1e-30, 3e18)


def values(name: str) -> np.ndarray:
    parts = [PLAIN, SMALL, TINY] + ([] if name in GROWING else [LARGE, HUGE])
    return np.concatenate(parts)


def unary_example(name: str, kind: str) -> Example:
    builder, function = UNARY[name]
    z = values(name).astype(DTYPES[kind])
    with np.errstate(all="ignore"):
        expected = (function or log_plus_one)(z.astype(np.complex128))
    if not np.iscomplexobj(expected):
        return Example(f"{name}_{kind}", (z,), builder, expected.astype(z.real.dtype))
    return Example(f"{name}_{kind}", (z,), builder, expected.astype(z.dtype))


def binary_example(name: str, kind: str) -> Example:
    builder, function = BINARY[name]
    some = PLAIN[:20] if name == "power" else np.concatenate([PLAIN[:20], HUGE, TINY[:9]])
    x, y = (part.ravel().astype(DTYPES[kind]) for part in np.meshgrid(some, some))
    with np.errstate(all="ignore"):
        expected = function(x.astype(np.complex128), y.astype(np.complex128)).astype(x.dtype)
    return Example(f"{name}_{kind}", (x, y), builder, expected)


EXAMPLES = [unary_example(name, kind) for name in UNARY for kind in DTYPES]
EXAMPLES += [binary_example(name, kind) for name in BINARY for kind in DTYPES]


def relative_error(result: np.ndarray, expected: np.ndarray) -> float:
    """The largest distance over the size of the expected number, in units of the dtype's eps.

    Expected numbers that are 0, out of the dtype's range, or so small that a part may be denormal
    without being negligible, do not count.
    """
    info = np.finfo(expected.dtype)
    size = np.abs(expected)
    counts = np.isfinite(size) & (size > info.tiny / info.eps)
    with np.errstate(all="ignore"):
        distance = np.abs(result - expected)[counts] / size[counts]
    return float(np.where(np.isnan(distance), np.inf, distance).max() / info.eps)


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES, "expand-complex")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_values(results: dict[str, list[np.ndarray]], example: Example) -> None:
    (result,) = results[example.name]
    (expected,) = example.expected_results
    assert result.dtype == expected.dtype
    # A power is e to the product of exponent and logarithm; the rounding error of this product
    # grows with it. The logistic function has poles.
    is_delicate = example.name in ("power_c128", "logistic_c128")
    assert relative_error(result, expected) < (40 if is_delicate else 8)


inf, nan = np.inf, np.nan
SPECIAL = {
    "sqrt": [(-1 + 0j, 1j), (complex(-1, -0.0), -1j), (complex(-inf, 1), complex(0, inf))],
    "log": [(0j, complex(-inf, 0)), (complex(-1, -0.0), -1j * np.pi)],
    "exponential": [(complex(inf, 0), complex(inf, 0)), (complex(-inf, inf), 0j)],
    "sinh": [(complex(inf, 0), complex(inf, 0)), (complex(0, inf), complex(0, nan))],
    "cosh": [(complex(inf, 0), complex(inf, 0)), (complex(-inf, -0.0), complex(inf, 0))],
    "tanh": [(complex(inf, 1), 1 + 0j), (complex(-inf, inf), -1 + 0j)],
    "logistic": [(complex(inf, 0), 1 + 0j), (complex(-inf, 1), 0j)],
    "atanh": [(1 + 0j, complex(inf, 0)), (complex(inf, 1), complex(0, np.pi / 2))],
    "atan": [(1j, complex(0, inf)), (0j, 0j)],
    "abs": [(complex(inf, nan), inf), (complex(nan, 0), nan)],
}
SPECIAL_EXAMPLES = [
    Example(
        name,
        (np.array([z for z, _ in pairs]),),
        UNARY[name][0],
        np.array([value for _, value in pairs]),
    )
    for name, pairs in SPECIAL.items()
]
QUOTIENTS = [
    (1 + 1j, 0j, complex(inf, inf)),
    (1j, 0j, complex(nan, inf)),
    (complex(inf, 1), 2 + 0j, complex(inf, nan)),
    (1 + 1j, complex(inf, inf), 0j),
    (1e300 + 1e300j, 1e300 + 1e300j, 1 + 0j),
    (1e-300 + 1e-300j, 1e-300 + 1e-300j, 1 + 0j),
    (complex(nan, nan), 1 + 0j, complex(nan, nan)),
]
SPECIAL_EXAMPLES.append(
    Example(
        "divide",
        tuple(np.array([row[i] for row in QUOTIENTS]) for i in range(2)),
        hlo.divide,
        np.array([row[2] for row in QUOTIENTS]),
    )
)


@functools.lru_cache(maxsize=1)
def special_results() -> dict[str, list[np.ndarray]]:
    return run_examples(SPECIAL_EXAMPLES, "expand-complex")


@pytest.mark.parametrize("example", SPECIAL_EXAMPLES, ids=lambda e: e.name)
def test_infinities_and_zeros(example: Example) -> None:
    (result,) = special_results()[example.name]
    (expected,) = example.expected_results
    for got, want in ((result.real, expected.real), (result.imag, expected.imag)):
        np.testing.assert_allclose(got, want, rtol=1e-15, atol=1e-16)


def test_without_the_pass_values_are_wrong() -> None:
    names = ("abs_c64", "divide_c64", "sine_c64", "tanh_c64", "asin_c128")
    examples = [e for e in EXAMPLES if e.name in names]
    for name, (result,) in run_examples(examples).items():
        (example,) = (e for e in examples if e.name == name)
        assert not relative_error(result, example.expected) < 1000

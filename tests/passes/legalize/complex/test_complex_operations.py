"""Single operations on complex numbers, as operations on their parts."""

from __future__ import annotations

import functools

import mpmath
import numpy as np
import pytest
from support.stablehlo_runner import (
    CompilationError,
    Compiled,
    Example,
    build,
    compile_module,
    deviations,
    run_examples,
    text_after,
)

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.pipeline import run_passes

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


X = np.array([1 - 1j, 2j], np.complex128)
CONSTANTS = {
    "uniform": np.full((2, 3), 1 + 2j),
    "scalar": np.array(complex(-0.0, np.inf)),
    "mixed": np.array([[1, 2j, np.nan]]),
    "empty": np.zeros((0, 2), np.complex128),
    "narrow": np.full((2,), 1 + 2j, np.complex64),
}
EXAMPLES_CONSTANTS = [
    Example(name, (X,), lambda x, value=value: hlo.constant(value), value)
    for name, value in CONSTANTS.items()
]


@pytest.fixture(scope="module")
def results_constants() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES_CONSTANTS, "split-complex-constants")


@pytest.mark.parametrize("example", EXAMPLES_CONSTANTS, ids=lambda e: e.name)
def test_values_constants(results_constants: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results_constants[example.name], example) == []


def test_the_pass_is_still_needed() -> None:
    uniform = EXAMPLES_CONSTANTS[0]
    with pytest.raises(CompilationError, match="i128"):
        Compiled(build({"f": (uniform.arguments, uniform.builder)}))


def _updated(row):
    zeros, start = hlo.constant(np.zeros((3, 2), np.complex64)), hlo.constant(np.int32(1))
    return hlo.dynamic_update_slice(zeros, row, [start, hlo.constant(np.int32(0))])


ROW = np.array([[1 - 1j, 2j]], np.complex64)


def test_a_slice_of_zeros_is_updated() -> None:
    module = build({"f": ((ROW,), _updated)})
    with pytest.raises(CompilationError, match="TypedAttr"):
        Compiled(build({"f": ((ROW,), _updated)}))
    run_passes(module, "split-complex-constants")
    expected = np.concatenate([np.zeros((1, 2)), ROW, np.zeros((1, 2))])
    np.testing.assert_array_equal(Compiled(module)("f", ROW)[0], expected)


def test_bodies_of_reductions_keep_their_constants() -> None:
    def builder(x):
        return hlo.reduce([x], [hlo.constant(np.complex128(0))], (0,), _add_one)[0]

    def _add_one(a, b):
        return hlo.add(hlo.add(a, b), hlo.constant(np.complex128(1)))

    module = build({"f": ((X,), builder)})
    run_passes(module, "split-complex-constants")
    assert str(module).count("stablehlo.constant") == 3
    compiled = Compiled(module)
    np.testing.assert_allclose(compiled("f", X)[0], X.sum() + 2)


_GENERATOR = np.random.default_rng(0)


def _complex(*shape: int) -> np.ndarray:
    parts = _GENERATOR.standard_normal((2, *shape))
    return (parts[0] + 1j * parts[1]).astype(np.complex64)


def _chain(m, x):
    p = hlo.dot_general(m, x, ((1,), (0,)))
    product = hlo.dot_general(p, m, ((0,), (0,)))
    return hlo.add(p, hlo.dot_general(m, product, ((1,), (0,))))


M, P, STACK = _complex(4, 4), _complex(4), _complex(3, 4, 5)
EXAMPLES_DOT = [
    Example("chain", (M, P), _chain, M @ P + M @ ((M @ P) @ M)),
    Example(
        "stack",
        (STACK, STACK),
        lambda x, y: hlo.dot_general(x, y, ((2,), (2,)), ((0,), (0,))),
        STACK @ STACK.swapaxes(1, 2),
    ),
]


def test_values_dot() -> None:
    results = run_examples(EXAMPLES_DOT, "split-complex-dot")
    for example in EXAMPLES_DOT:
        np.testing.assert_allclose(results[example.name][0], example.expected, rtol=1e-5)


def test_products_are_of_real_numbers() -> None:
    text = text_after(EXAMPLES_DOT[1], "split-complex-dot")
    products = [line for line in text.splitlines() if "dot_general" in line]
    assert len(products) == 4
    assert not any("complex" in line for line in products)


def example(name: str, dtype: type) -> Example:
    x = (RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4))).astype(dtype)
    value = dtype(7 - 2j)
    expected = np.full((5 + 3, 3), value, dtype)
    expected[1:6:2] = x[:, :3]

    def pad(x, value):
        return hlo.pad(x, value, (1, 0), (2, -1), (1, 0))

    return Example(name, (x, value), pad, expected)


def pad_by_constant(x):
    return hlo.pad(x, hlo.constant(np.complex64(0)), (1,), (0,))


EXAMPLES_PAD = [
    Example(
        "constant",
        (np.full(3, 1j, np.complex64),),
        pad_by_constant,
        np.array([0, 1j, 1j, 1j], np.complex64),
    ),
    example("c64", np.complex64),
    example("c128", np.complex128),
]


def test_values_pad() -> None:
    results = run_examples(EXAMPLES_PAD, "split-complex-pad")
    assert [d for e in EXAMPLES_PAD for d in deviations(results[e.name], e)] == []


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_without_the_pass_the_compiler_crashes(dtype: type) -> None:
    def pad_zeros(x):
        return hlo.pad(x, hlo.constant(dtype(0)), (1, 0), (2, 0))

    with pytest.raises(CompilationError):
        compile_module(build({"f": ((np.ones((3, 4), dtype),), pad_zeros)}))


def _sum(x, start=0.0, body=hlo.add):
    return hlo.reduce([x], [hlo.constant(np.complex64(start))], [1], body)[0]


X_SUMS, LARGE_SUMS = _complex(4, 5), _complex(2, 9000)
EXAMPLES_SUMS = [
    Example("sum", (X_SUMS,), _sum, X_SUMS.sum(1)),
    Example("from a number", (X_SUMS,), lambda x: _sum(x, 2 - 3j), X_SUMS.sum(1) + (2 - 3j)),
    Example("of none", (X_SUMS[:, :0],), lambda x: _sum(x, 2j), np.full(4, 2j, np.complex64)),
    Example("product", (X_SUMS,), lambda x: _sum(x, 1, hlo.multiply), X_SUMS.prod(1)),
    Example("large", (LARGE_SUMS,), _sum, LARGE_SUMS.sum(1)),
]


def test_values_sums() -> None:
    results = run_examples(EXAMPLES_SUMS, "split-complex-sums")
    for example in EXAMPLES_SUMS:
        np.testing.assert_allclose(results[example.name][0], example.expected, rtol=1e-4)


def test_small_sums_are_of_real_numbers() -> None:
    for example, is_split in zip(EXAMPLES_SUMS, (True, True, True, False, False), strict=True):
        text = text_after(example, "split-complex-sums")
        sums = [line for line in text.splitlines() if "stablehlo.reduce" in line]
        assert len(sums) == 1 + is_split
        assert any("complex" in line for line in sums) != is_split

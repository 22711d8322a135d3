"""Random numbers: known answers, JAX's streams bit for bit, transformations, errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest

import axir
from axir import random
from axir.dialect.core import errors
from axir.dialect.core.config import config

LOG_WEIGHTS = np.log(np.float32([[1, 2, 3], [3, 2, 1]]))
PROBABILITIES = np.float32([0.1, 0.2, 0.3, 0.4])
GRID = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(params=[False, True], ids=["original", "partitionable"])
def is_partitionable(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Selects a stream, in JAX too."""
    before = jax.config.jax_threefry_partitionable
    jax.config.update("jax_threefry_partitionable", request.param)
    config.update("jax_threefry_partitionable", request.param)
    yield request.param
    jax.config.update("jax_threefry_partitionable", before)


@pytest.fixture(params=[False, True], ids=["x32", "x64"])
def has_64_bits(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Switches 64-bit types on or off, in JAX too."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", request.param)
    config.update("jax_enable_x64", request.param)
    yield request.param
    jax.config.update("jax_enable_x64", before)


def host(x: Any) -> np.ndarray:
    return np.asarray(x)


def assert_same_bits(actual: Any, expected: Any) -> None:
    """Compares dtype, shape and all bits."""
    actual, expected = host(actual), host(expected)
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(
        actual.reshape(-1).view(np.uint8), expected.reshape(-1).view(np.uint8)
    )


def assert_close(actual: Any, expected: Any, ulps: float = 64) -> None:
    """Compares dtype and shape, and values up to the rounding of logarithms and the like."""
    actual, expected = host(actual), host(expected)
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    if actual.dtype.kind != "c":
        epsilon = float(jax.numpy.finfo(actual.dtype).eps)
        actual, expected = actual.astype(np.float64), expected.astype(np.float64)
    else:
        epsilon = float(np.finfo(actual.dtype).eps)
    np.testing.assert_allclose(actual, expected, rtol=ulps * epsilon, atol=4 * epsilon)


# Known answers ---------------------------------------------------------------------------------


def draws_of_all_kinds(key: Any) -> dict[str, Any]:
    return {
        "split": random.split(key, 3),
        "fold_in": random.fold_in(key, 7),
        "bits8": random.bits(key, (5,), "uint8"),
        "bits16": random.bits(key, (3,), "uint16"),
        "bits32": random.bits(key, (3,)),
        "uniform": random.uniform(key, (3,)),
        "randint": random.randint(key, (5,), -3, 9),
        "randint8": random.randint(key, (4,), 0, 256, "uint8"),
        "bernoulli": random.bernoulli(key, 0.3, (6,)),
        "permutation": random.permutation(key, 6),
        "choice": random.choice(key, 9, (4,)),
        "choice distinct": random.choice(key, 9, (4,), replace=False),
        "choice weighted": random.choice(key, 4, (5,), p=PROBABILITIES),
        "categorical": random.categorical(key, LOG_WEIGHTS, shape=(3, 2)),
        "rademacher": random.rademacher(key, (5,)),
        "geometric": random.geometric(key, 0.2, (4,)),
    }


ORIGINAL = {
    "split": [[3134548294, 3733159049], [3746501087, 894150801], [801545058, 2363201431]],
    "fold_in": [2547012911, 1371500959],
    "bits8": [45, 179, 215, 3, 244],
    "bits16": [45869, 983, 33780],
    "bits32": [2465931498, 430176367, 255383827],
    "uniform": [0.5741443634033203, 0.1001582145690918, 0.059461116790771484],
    "randint": [1, 0, 4, 6, 1],
    "randint8": [219, 50, 65, 177],
    "bernoulli": [False, False, False, True, True, False],
    "permutation": [3, 0, 2, 1, 5, 4],
    "choice": [5, 0, 7, 2],
    "choice distinct": [0, 4, 2, 6],
    "choice weighted": [1, 1, 3, 3, 3],
    "categorical": [[2, 0], [1, 0], [2, 1]],
    "rademacher": [-1, -1, 1, 1, 1],
    "geometric": [3, 1, 13, 13],
}
PARTITIONABLE = {
    "split": [[1832780943, 270669613], [64467757, 2916123636], [2465931498, 255383827]],
    "fold_in": [2547012911, 1371500959],
    "bits8": [162, 217, 249, 215, 21],
    "bits16": [5026, 12505, 63993],
    "bits32": [2098992034, 2919706841, 2646866425],
    "uniform": [0.48870956897735596, 0.6797971725463867, 0.6162714958190918],
    "randint": [-3, 3, 0, -2, 2],
    "randint8": [196, 18, 183, 193],
    "bernoulli": [False] * 6,
    "permutation": [4, 2, 5, 3, 0, 1],
    "choice": [0, 6, 0, 1],
    "choice distinct": [7, 4, 2, 5],
    "choice weighted": [2, 2, 2, 2, 2],
    "categorical": [[2, 0], [2, 0], [1, 0]],
    "rademacher": [1, -1, -1, -1, 1],
    "geometric": [4, 2, 3, 3],
}


def test_known_answers_of_both_streams(is_partitionable: bool) -> None:
    expected = PARTITIONABLE if is_partitionable else ORIGINAL
    draws = draws_of_all_kinds(random.PRNGKey(42))
    assert {name: host(x).tolist() for name, x in draws.items()} == expected


def test_default_stream_is_the_original_one() -> None:
    key = random.PRNGKey(0)
    expected = [[4146024105, 967050713], [2718843009, 1272950319]]
    assert host(random.split(key)).tolist() == expected
    assert_close(random.normal(key, (1,)), np.float32([-0.2058423]), ulps=4)


def test_known_answers_of_64_bits(is_partitionable: bool) -> None:
    config.update("jax_enable_x64", True)
    key = random.PRNGKey(-5)
    words, floats, integers = (
        ([11942990875291468049, 16234248209630359168, 11527915096915991115],
         [0.6474308326482783, 0.8800603588775071],
         [179160502965, 511927447929, 358315717712])
        if is_partitionable
        else ([7603137660919182121, 10611695568365135706, 552973655524293331],
              [0.624929529615238, 0.955303537900045],
              [497961864127, 461913845304, 344505226239])
    )  # fmt: skip
    assert host(key).tolist() == [4294967295, 4294967291]
    assert host(random.bits(key, (3,))).tolist() == words
    assert host(random.uniform(key, (2,))).tolist() == floats
    assert host(random.randint(key, (3,), 0, 10**12)).tolist() == integers


# JAX, bit for bit ------------------------------------------------------------------------------

SEEDS = (
    0, -1, 2**31, 2**40 + 7, -(2**40), 2**63 - 1, -(2**63), True,
    np.int8(-3), np.uint8(200), np.int32(-7), np.int64(2**40), np.uint64(2**63 + 5),
)  # fmt: skip


def test_keys_of_all_seeds_are_those_of_jax(has_64_bits: bool) -> None:
    for seed in SEEDS:
        assert_same_bits(random.PRNGKey(seed), jax.random.PRNGKey(seed))
        assert_same_bits(random.key_data(random.key(seed)), random.PRNGKey(seed))


def test_traced_seed_gives_the_key_of_the_known_one(has_64_bits: bool) -> None:
    seeds = np.int64([0, -1, 7, 2**40, -(2**40)]) if has_64_bits else np.int32([0, -1, 7])
    keys = axir.vmap(random.PRNGKey)(seeds)
    assert_same_bits(keys, np.stack([host(random.PRNGKey(int(seed))) for seed in seeds]))


def test_split_and_fold_in_are_those_of_jax(is_partitionable: bool, has_64_bits: bool) -> None:
    key = np.uint32([42, 17])
    for number in (0, 1, 2, 3, 8, 17, (2, 3), ()):
        assert_same_bits(random.split(key, number), jax.random.split(key, number))
    for data in (0, 2**31, 2**32 - 1, np.int32(-4), np.int64(2**33 + 1), 1.7, np.uint8(3)):
        assert_same_bits(random.fold_in(key, data), jax.random.fold_in(key, data))


def dtypes_of(kind: str, has_64_bits: bool) -> list[str]:
    names = {
        "bits": ["uint8", "uint16", "uint32", "uint64"],
        "float": ["float16", "bfloat16", "float32", "float64"],
        "int": ["int8", "int16", "int32", "uint8", "uint16", "uint32", "int64", "uint64"],
    }[kind]
    return names if has_64_bits else [name for name in names if not name.endswith("64")]


@pytest.mark.parametrize("shape", [(), (0,), (7, 3)], ids=str)
def test_bits_and_floats_are_those_of_jax(
    shape: tuple[int, ...], is_partitionable: bool, has_64_bits: bool
) -> None:
    key = np.uint32([42, 17])
    for dtype in dtypes_of("bits", has_64_bits):
        assert_same_bits(random.bits(key, shape, dtype), jax.random.bits(key, shape, dtype))
    for dtype in dtypes_of("float", has_64_bits):
        assert_same_bits(random.uniform(key, shape, dtype), jax.random.uniform(key, shape, dtype))
        assert_same_bits(
            random.uniform(key, shape, dtype, -1.0, 3.0),
            jax.random.uniform(key, shape, dtype, -1.0, 3.0),
        )
        assert_close(random.normal(key, shape, dtype), jax.random.normal(key, shape, dtype))


RANGES = ((0, 10), (-5, 7), (3, 3), (5, 2), (-128, 128), (0, 2**31 - 1))


def test_randint_is_that_of_jax(is_partitionable: bool, has_64_bits: bool) -> None:
    key = np.uint32([42, 17])
    ranges = (*RANGES, (0, 2**32), (-(2**63), 2**63 - 1)) if has_64_bits else RANGES
    for dtype in dtypes_of("int", has_64_bits):
        for low, high in ranges:
            assert_same_bits(
                random.randint(key, (7,), low, high, dtype),
                jax.random.randint(key, (7,), low, high, dtype),
            )
    low, high = np.array([[0], [-3]], np.int8), np.array([2, 40, 100], np.uint16)
    assert_same_bits(
        random.randint(key, (2, 3), low, high), jax.random.randint(key, (2, 3), low, high)
    )


# A sampler with its arguments, and whether its results are exact.
SAMPLERS: tuple[tuple[str, tuple[Any, ...], dict[str, Any], bool], ...] = (
    ("bernoulli", (0.3, (9,)), {}, True),
    ("bernoulli", (PROBABILITIES, (5, 4)), {"mode": "high"}, True),
    ("rademacher", ((9,), "int8"), {}, True),
    ("rademacher", ((9,), "float32"), {}, True),
    ("geometric", (0.2, (9,)), {}, True),
    ("permutation", (10,), {}, True),
    ("permutation", (3000,), {}, True),
    ("permutation", (GRID, -1), {}, True),
    ("permutation", (GRID, 0), {"independent": True}, True),
    ("choice", (10, (3, 2)), {}, True),
    ("choice", (10, (3, 2)), {"replace": False}, True),
    ("choice", (GRID, (2,)), {"axis": 1}, True),
    ("choice", (GRID, (2,)), {"replace": False, "axis": -1, "p": PROBABILITIES}, True),
    ("choice", (GRID, ()), {"axis": 1, "p": PROBABILITIES}, True),
    ("choice", (4, (50,)), {"p": PROBABILITIES}, True),
    ("categorical", (LOG_WEIGHTS,), {}, True),
    ("categorical", (LOG_WEIGHTS, 0), {"shape": (5, 3)}, True),
    ("categorical", (LOG_WEIGHTS[:1],), {"shape": (5,)}, True),
    ("categorical", (LOG_WEIGHTS,), {"mode": "high"}, True),
    ("categorical", (LOG_WEIGHTS,), {"shape": (2, 2), "replace": False}, True),
    ("categorical", (LOG_WEIGHTS, 0), {"shape": (2, 1, 3), "replace": False}, True),
    ("truncated_normal", (-1.0, 2.0, (9,)), {}, False),
    ("truncated_normal", (np.float32([-1, 0, 3]), 4), {}, False),
    ("gumbel", ((9,),), {}, False),
    ("gumbel", ((9,),), {"mode": "high"}, False),
    ("gumbel", ((200,),), {"mode": "highest"}, False),
    ("exponential", ((9,),), {}, False),
    ("laplace", ((9,),), {}, False),
    ("logistic", ((9,),), {}, False),
    ("cauchy", ((9,),), {}, False),
    ("maxwell", ((9,),), {}, False),
    ("double_sided_maxwell", (0.5, np.float32([1, 2]), (9,)), {}, False),
    ("rayleigh", (np.float32(1.5), (9,)), {}, False),
    ("pareto", (1.5, (9,)), {}, False),
    ("weibull_min", (2.0, 1.5, (9,)), {}, False),
    ("lognormal", (0.5, (9,)), {}, False),
    ("triangular", (0.0, 1.0, 3.0, (9,)), {}, False),
    ("wald", (np.float32(1.5), (9,)), {}, False),
    ("uniform", ((2, 3),), {"minval": GRID[:2, :1], "maxval": 20}, False),
    ("uniform", ((),), {"minval": GRID[:1, :1], "maxval": GRID[1:, 1][:1]}, False),
    ("uniform", ((),), {"minval": 0.0, "maxval": GRID[1:, 1][:1]}, False),
    ("normal", ((9,), "complex64"), {}, False),
)


@pytest.mark.parametrize(("name", "args", "kwargs", "is_exact"), SAMPLERS)
def test_sampler_is_that_of_jax(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], is_exact: bool, is_partitionable: bool
) -> None:
    key = np.uint32([42, 17])
    actual = getattr(random, name)(key, *args, **kwargs)
    expected = getattr(jax.random, name)(key, *args, **kwargs)
    (assert_same_bits if is_exact else assert_close)(actual, expected)


def test_default_integers_are_those_of_jax(is_partitionable: bool, has_64_bits: bool) -> None:
    key = np.uint32([1, 2])
    for name, args in (("permutation", (5,)), ("choice", (9, (4,))), ("rademacher", ((4,),))):
        assert_same_bits(getattr(random, name)(key, *args), getattr(jax.random, name)(key, *args))


# Transformations -------------------------------------------------------------------------------


def test_compiled_draws_are_the_eager_ones(is_partitionable: bool) -> None:
    def draws(key: Any) -> dict[str, Any]:
        children = random.split(key, 5)
        return {
            "children": children,
            "bytes": random.bits(children[0], (5,), "uint8"),
            "halves": random.uniform(children[1], (5,), "bfloat16"),
            "normal": random.normal(children[2], (2, 3)),
            "integers": random.randint(children[3], (5,), -3, 9),
            "permutation": random.permutation(children[4], 6),
        }

    key = random.PRNGKey(11)
    eager, compiled = draws(key), axir.jit(draws)(key)
    for name, expected in eager.items():
        (assert_close if name == "normal" else assert_same_bits)(compiled[name], expected)


def test_traced_bits_are_the_known_ones(is_partitionable: bool, has_64_bits: bool) -> None:
    key = random.PRNGKey(9)
    batch = host(key)[None]
    for dtype in dtypes_of("bits", has_64_bits):
        for shape in ((), (0,), (1,), (7, 3), (2, 4)):
            known = random.bits(key, shape, dtype)
            traced = axir.vmap(lambda k: random.bits(k, shape, dtype))(batch)  # noqa: B023
            assert_same_bits(traced, host(known)[None])


def test_batched_keys_give_the_draws_of_each_key(is_partitionable: bool) -> None:
    keys = random.split(random.PRNGKey(4), 3)

    def draws(key: Any) -> dict[str, Any]:
        return {
            **draws_of_all_kinds(key),
            "split pair": random.split(key, (2, 2)),
            "normal": random.normal(key, (5,)),
            "normal scalar": random.normal(key),
            "truncated": random.truncated_normal(key, -1.0, 1.0, (3,)),
            "gumbel": random.gumbel(key, (5,), mode="highest"),
            "rows": random.permutation(key, GRID, 1, independent=True),
            "distinct": random.categorical(key, LOG_WEIGHTS, shape=(2, 2), replace=False),
        }

    batched = axir.vmap(draws)(keys)
    for index, key in enumerate(keys):
        for name, expected in draws(key).items():
            assert_same_bits(host(batched[name])[index], expected)


def test_batched_parameters_broadcast() -> None:
    key = random.PRNGKey(4)
    scales = np.float32([1, 2, 3])
    batched = axir.vmap(lambda scale: random.rayleigh(key, scale, (4,)))(scales)
    np.testing.assert_array_equal(
        host(batched), np.stack([host(random.rayleigh(key, scale, (4,))) for scale in scales])
    )


def test_gradient_flows_through_scale_and_shift() -> None:
    key = random.PRNGKey(6)
    noise = host(random.normal(key, (5,)))

    def loss(mean: Any, sigma: Any, k: Any) -> Any:
        return ((mean + sigma * random.normal(k, (5,))) ** 2).sum()

    mean, sigma = np.float32(0.5), np.float32(1.5)
    expected = (2 * (mean + sigma * noise)).sum(), (2 * (mean + sigma * noise) * noise).sum()
    for actual, value in zip(
        axir.grad(loss, argnums=(0, 1))(mean, sigma, key), expected, strict=True
    ):
        np.testing.assert_allclose(float(actual), value, rtol=1e-5)


@pytest.mark.parametrize(
    ("draw", "at"),
    [
        (lambda key, x: random.uniform(key, minval=x, maxval=3.0), 0.5),
        (lambda key, x: random.truncated_normal(key, -x, x), 1.5),
        (lambda key, x: random.rayleigh(key, x), 0.7),
        (lambda key, x: random.pareto(key, x), 1.3),
        (lambda key, x: random.weibull_min(key, 1.0, x), 1.3),
        (lambda key, x: random.lognormal(key, x), 0.8),
        (lambda key, x: random.triangular(key, 0.0, x, 2.0), 0.9),
        (lambda key, x: random.wald(key, x), 0.9),
    ],
)
def test_samples_are_differentiable_in_their_parameters(
    draw: Callable[[Any, Any], Any], at: float
) -> None:
    config.update("jax_enable_x64", True)
    key = random.PRNGKey(1)
    step = 1e-6
    difference = float(draw(key, np.float64(at + step))) - float(draw(key, np.float64(at - step)))
    derivative = axir.grad(lambda x: draw(key, x))(np.float64(at))
    np.testing.assert_allclose(float(derivative), difference / (2 * step), rtol=1e-6)
    assert abs(float(derivative)) > 1e-3


def test_counters_are_ops_of_the_compiled_function() -> None:
    lowered = axir.jit(lambda key: random.bits(key, (100000,))).lower(random.PRNGKey(0)).as_text()
    assert "stablehlo.iota" in lowered
    assert len(lowered) < 100000, "the counters became a constant of the program"


def test_streams_longer_than_the_counters_use_more_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    from axir.dialect.ops.random import threefry

    key = random.PRNGKey(8)
    first, second, third = host(random.split(key, 3))
    blocks = [random.bits(k, (n,)) for k, n in ((first, 9), (second, 9), (third, 3))]
    monkeypatch.setattr(threefry, "MAX_WORDS", 9)
    expected = np.concatenate([host(block) for block in blocks])
    assert_same_bits(random.bits(key, (21,)), expected)
    assert_same_bits(axir.vmap(lambda k: random.bits(k, (21,)))(host(key)[None])[0], expected)


# Keys and errors -------------------------------------------------------------------------------


def test_key_data_and_back() -> None:
    keys = random.split(random.PRNGKey(3), 4)
    typed = random.wrap_key_data(keys, impl="threefry2x32")
    assert typed.shape == (4,)
    assert_same_bits(random.key_data(typed), keys)
    assert_same_bits(random.key_data(keys), keys)
    assert_same_bits(random.clone(keys), keys)
    assert random.key_impl(keys) == random.key_impl(typed) == "threefry2x32"


KEY = np.uint32([1, 2])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: random.uniform([0, 1]), errors.NonArrayArgumentError, "argument key of random.u"),
        (lambda: random.uniform(np.int32([0, 1])), errors.DTypeError, "a key consists of uint32"),
        (lambda: random.uniform(np.uint32([1, 2, 3])), errors.ShapeError, "have shape (2,)"),
        (lambda: random.uniform(np.uint32(3)), errors.ShapeError, "have shape (2,)"),
        (lambda: random.split(np.stack([KEY, KEY])), errors.ParameterError, "axir.vmap"),
        (lambda: random.PRNGKey(1.5), errors.DTypeError, "seed must be an integer"),
        (lambda: random.key(np.arange(3)), errors.ShapeError, "seed must be a scalar"),
        (lambda: random.PRNGKey(2**64), OverflowError, "int"),
        (lambda: random.PRNGKey(0, impl="rng"), errors.ParameterError, "no generator 'rng'"),
        (lambda: random.fold_in(KEY, np.arange(2)), errors.ShapeError, "data must be a scalar"),
        (lambda: random.fold_in(KEY, -1), OverflowError, "-1"),
        (lambda: random.split(KEY, -1), errors.ShapeError, "cannot make -1 keys"),
        (lambda: random.bits(KEY, (2,), "int32"), errors.ParameterError, "unsigned integer type"),
        (lambda: random.uniform(KEY, (-1,)), errors.ShapeError, "negative extent"),
        (lambda: random.normal(KEY, "a"), errors.ShapeError, "sequence of integers"),
        (lambda: random.normal(KEY, (1.5,)), errors.ShapeError, "sequence of integers"),
        (lambda: random.normal(KEY, dtype=int), errors.ParameterError, "must be a float type"),
        (lambda: random.uniform(KEY, (3,), minval=np.zeros(2)), errors.ShapeError,
         "do not broadcast to shape (3,)"),
        (lambda: random.uniform(KEY, maxval=1j), errors.DTypeError, "maxval must be real"),
        (lambda: random.randint(KEY, (3,), 0, 5, float), errors.DTypeError, "an integer type"),
        (lambda: random.randint(KEY, (3,), 0, np.arange(2)), errors.ParameterError,
         "do not broadcast"),
        (lambda: random.randint(KEY, (3,), 0, 2**40), OverflowError, "too large for int32"),
        (lambda: random.bernoulli(KEY, 1), errors.DTypeError, "of a float dtype"),
        (lambda: random.bernoulli(KEY, mode="fast"), errors.ParameterError, "no mode 'fast'"),
        (lambda: random.gumbel(KEY, mode="fast"), errors.ParameterError, "no mode 'fast'"),
        (lambda: random.permutation(KEY, 1.5), errors.DTypeError, "expected an integer"),
        (lambda: random.permutation(KEY, [1, 2]), errors.NonArrayArgumentError, "argument x"),
        (lambda: random.permutation(KEY, GRID, 2), errors.AxisError, "axis 2 is out of bounds"),
        (lambda: random.choice(KEY, 5, 3), errors.ShapeError, "shape=(3,)"),
        (lambda: random.choice(KEY, 0, (3,)), errors.ParameterError, "0 entries"),
        (lambda: random.choice(KEY, 3, (4,), replace=False), errors.ParameterError,
         "4 draws without replacement from 3"),
        (lambda: random.choice(KEY, 3, (2,), p=np.ones(4)), errors.ParameterError,
         "Pass a vector of shape (3,)"),
        (lambda: random.categorical(KEY, np.arange(3)), errors.DTypeError, "must be floats"),
        (lambda: random.categorical(KEY, LOG_WEIGHTS, shape=(3,)), errors.ParameterError,
         "do not broadcast to shape (3,)"),
        (lambda: random.categorical(KEY, LOG_WEIGHTS, shape=(4, 2), replace=False),
         errors.ParameterError, "4 draws without replacement from 3 categories"),
        (lambda: random.categorical(KEY, LOG_WEIGHTS, axis=2), errors.AxisError, "axis 2"),
    ],
)  # fmt: skip
def test_mistakes_are_told(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)

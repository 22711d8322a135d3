"""`ufunc` objects against NumPy's: methods, dtypes, transformations, errors."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import jax
import numpy as np
import pytest

import axir
import axir.numpy as jnp

NAMES = [name for name in dir(jnp) if isinstance(getattr(jnp, name), jnp.ufunc)]
BINARY = [name for name in NAMES if getattr(jnp, name).nin == 2]
INTEGERS = np.random.default_rng(0).integers(-3, 4, (4, 3)).astype(np.int32)
FLOATS = INTEGERS.astype(np.float32) / 2
STARTS = np.array([0, 2, 1, 3])


def operand(name: str) -> np.ndarray:
    return FLOATS if name.startswith("logadd") else INTEGERS


def assert_close(ours: Any, expected: Any) -> None:
    expected = np.asarray(expected)
    assert ours.shape == expected.shape
    np.testing.assert_allclose(np.asarray(ours), expected, rtol=2e-6, atol=2e-6)


def test_the_same_names_as_in_jax() -> None:
    theirs = [n for n in dir(jax.numpy) if isinstance(getattr(jax.numpy, n), jax.numpy.ufunc)]
    assert theirs == NAMES
    for name in NAMES:
        mine, other = getattr(jnp, name), getattr(jax.numpy, name)
        assert (mine.nin, mine.nout, mine.nargs) == (other.nin, other.nout, other.nargs)
        assert mine.identity == other.identity
        assert repr(mine) == repr(other)


def cases(name: str) -> list[tuple[Any, np.ndarray]]:
    """Returns functions of an array, and what each gives in NumPy."""
    ours, theirs, x = getattr(jnp, name), getattr(np, name), operand(name)
    mask = x > 0
    return [
        (lambda x: ours.reduce(x), theirs.reduce(x)),
        (lambda x: ours.reduce(x, axis=1, keepdims=True), theirs.reduce(x, 1, keepdims=True)),
        (lambda x: ours.accumulate(x, axis=1), theirs.accumulate(x, axis=1)),
        (lambda x: ours.reduceat(x, STARTS), theirs.reduceat(x, STARTS)),
        (lambda x: ours.outer(x[0], x), theirs.outer(x[0], x)),
        (
            lambda x: ours.reduce(x, where=mask, initial=1, axis=1),
            theirs.reduce(x, where=mask, initial=1, axis=1),
        ),
    ]


@pytest.mark.parametrize("name", BINARY)
def test_methods_are_numpys(name: str) -> None:
    for function, expected in cases(name):
        assert_close(function(jnp.asarray(operand(name))), expected)


def test_compiled_methods_are_numpys() -> None:
    chosen = [
        (n, f, e) for n in ("add", "subtract", "logaddexp", "bitwise_xor") for f, e in cases(n)
    ]
    compiled = axir.jit(lambda i, f: [g(f if n == "logaddexp" else i) for n, g, _ in chosen])
    for result, (_, _, expected) in zip(compiled(INTEGERS, FLOATS), chosen, strict=True):
        assert_close(result, expected)


@pytest.mark.parametrize("name", BINARY)
def test_updates_at_indices_that_repeat(name: str) -> None:
    ours, theirs, x = getattr(jnp, name), getattr(np, name), operand(name)
    if name.startswith("logical"):
        x = x > 0
    expected = x.copy()
    theirs.at(expected, np.array([0, 0, 3]), x[1])
    result = ours.at(jnp.asarray(x), np.array([0, 0, 3]), x[1], inplace=False)
    assert result.dtype == x.dtype
    assert_close(result, expected)


def test_negative_at() -> None:
    result = jnp.negative.at(jnp.arange(4), np.array([1, 3, 3]), inplace=False)
    assert_close(result, [0, -1, 2, 3])


def test_functions_that_are_not_associative_go_from_the_first() -> None:
    ours = jnp.frompyfunc(lambda x, y: 2 * x + y, 2, 1, identity=0)
    theirs = np.frompyfunc(lambda x, y: 2 * x + y, 2, 1, identity=0)
    assert_close(ours(jnp.asarray(INTEGERS), 1), theirs(INTEGERS, 1).astype(np.int32))
    for axis in (0, 1):
        expected = theirs.reduce(INTEGERS, axis=axis, initial=0).astype(np.int32)
        assert_close(ours.reduce(jnp.asarray(INTEGERS), axis=axis), expected)
        expected = theirs.accumulate(INTEGERS, axis=axis).astype(np.int32)
        assert_close(ours.accumulate(jnp.asarray(INTEGERS), axis=axis), expected)
    expected = theirs.reduceat(INTEGERS, STARTS).astype(np.int32)
    assert_close(ours.reduceat(jnp.asarray(INTEGERS), STARTS), expected)
    expected = INTEGERS.copy()
    theirs.at(expected, (np.array([2, 2]), np.array([1, 1])), np.array([5, 7]))
    index = (np.array([2, 2]), np.array([1, 1]))
    assert_close(ours.at(INTEGERS, index, np.array([5, 7]), inplace=False), expected)


def test_several_results() -> None:
    both = jnp.frompyfunc(lambda x, y: (x + y, x * y), 2, 2)
    total, product = both(jnp.arange(3), 2)
    assert_close(total, [2, 3, 4])
    assert_close(product, [0, 2, 4])
    with pytest.raises(axir.errors.ParameterError, match="two arguments and one result"):
        both.reduce(jnp.arange(3))


def test_an_index_out_of_bounds_changes_nothing() -> None:
    shifted = jnp.frompyfunc(lambda x, y: x - y, 2, 1)
    assert_close(shifted.at(jnp.arange(3), np.array([5, 0]), 1, inplace=False), [-1, 1, 2])


def test_derivatives_and_batches() -> None:
    x = jnp.asarray(FLOATS)
    gradient = axir.grad(lambda x: jnp.multiply.reduce(x, axis=None))(x[0] + 4)
    assert_close(gradient, np.prod(FLOATS[0] + 4) / (FLOATS[0] + 4))
    folded = jnp.frompyfunc(lambda x, y: x * y + y, 2, 1)
    assert_close(axir.vmap(folded.reduce)(x), folded.reduce(x, axis=1))


def test_copies_and_pickles_of_named_ones_are_themselves() -> None:
    assert pickle.loads(pickle.dumps(jnp.add)) is jnp.add
    assert copy.deepcopy(jnp.maximum) is jnp.maximum


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: jnp.add.at(jnp.ones(2), 0, 1.0), "inplace=False"),
        (lambda: jnp.add(1, 2, where=True), "jnp.where"),
        (lambda: jnp.add(1, 2, out=1), "immutable"),
        (lambda: jnp.negative.reduce(jnp.ones(2)), "two arguments"),
        (lambda: jnp.subtract.reduce(jnp.ones(0)), "Pass initial"),
        (lambda: jnp.subtract.reduce(jnp.ones(2), where=np.array([True, False])), "needs initial"),
        (lambda: jnp.add.reduceat(jnp.ones(2), 1.5), "vector of integers"),
        (lambda: jnp.add.accumulate(jnp.ones(2), axis=(0, 1)), "one axis"),
        (lambda: jnp.frompyfunc(jnp.sin, 0, 1), "must be positive"),
        (lambda: jnp.ufunc(jnp.sin, 1, 1, nargs=3), "nargs"),
    ],
)
def test_errors(call: Any, text: str) -> None:
    with pytest.raises(axir.errors.AxirError, match=text):
        call()


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
def test_indices_of_few_bits_reach_the_end(dtype: Any) -> None:
    x, starts = np.arange(300), np.array([0, 100, 120, 5], dtype)
    ours, expected = (
        jnp.frompyfunc(lambda x, y: x + y, 2, 1),
        np.add.reduceat(x, starts.astype(int)),
    )
    for ufunc in (ours, jnp.add):
        assert_close(ufunc.reduceat(jnp.asarray(x), jnp.asarray(starts)), expected)
        assert_close(axir.jit(ufunc.reduceat)(x, starts), expected)
    wide = starts.astype(int)
    np.testing.assert_array_equal(axir.nn.one_hot(starts, 300), np.eye(300)[wide])
    np.testing.assert_array_equal(
        jnp.ravel_multi_index((starts, starts), (300, 300)), wide * 300 + wide
    )
    np.testing.assert_array_equal(jnp.unravel_index(starts, (10, 30))[0], wide // 30)
    np.testing.assert_array_equal(jnp.insert(x, starts, -1), np.insert(x, wide, -1))


def test_segments_and_updates_of_nothing() -> None:
    ours = jnp.frompyfunc(lambda x, y: 2 * x + y, 2, 1)
    theirs = np.frompyfunc(lambda x, y: 2 * x + y, 2, 1)
    none = np.zeros(0, np.int32)
    for shape in ((6,), (2, 3), (0,), (0, 3)):
        x = np.ones(shape, np.int32)
        assert ours.reduceat(jnp.asarray(x), none).shape == theirs.reduceat(x, none).shape
        assert_close(ours.at(jnp.asarray(x), none, 2, inplace=False), x)
    assert ours.at(jnp.ones((3, 0)), jnp.array([0, 2]), 1.0, inplace=False).shape == (3, 0)

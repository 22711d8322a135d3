"""Sorting, searching and sets against JAX."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from support.against_jax import Weak, assert_close, compare, same_error

import axir
import axir.numpy as jnp
from axir.dialect.core.array import from_numpy


def both(name: str) -> tuple[Any, Any]:
    return getattr(jnp, name), getattr(jax.numpy, name)


def check(name: str, *args: Any, **kwargs: Any) -> None:
    compare(*both(name), *args, **kwargs)


def integers(*shape: int, dtype: Any = np.int32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).integers(0, 6, shape).astype(dtype)


DTYPES = ("bool", "int8", "uint16", "int32", "float16", "float32", "complex64")
SPECIAL = np.array([2, np.nan, -np.inf, 0.0, -0.0, np.inf, np.nan, 1, 2], np.float32)


@pytest.mark.parametrize("name", ["sort", "argsort"])
@pytest.mark.parametrize("descending", [False, True])
def test_sorts(name: str, descending: bool) -> None:
    for dtype in DTYPES:
        check(name, integers(9, dtype=dtype), descending=descending)
    check(name, SPECIAL, descending=descending)
    check(name, integers(3, 4), axis=0, descending=descending)
    check(name, integers(3, 4), axis=None, descending=descending)
    check(name, Weak(np.full((3,), 2.0)), descending=descending)


def test_argsort_dtype() -> None:
    check("argsort", integers(5), dtype=np.uint8)


def test_lexsort() -> None:
    check("lexsort", (integers(9), integers(9, seed=1)))
    check("lexsort", integers(3, 9))
    check("lexsort", (integers(3, 4), integers(3, 4, seed=1)), axis=0)


def test_sort_complex() -> None:
    check("sort_complex", integers(5).astype(np.float32))
    check("sort_complex", (integers(6) + 1j * integers(6, seed=1)).astype("c8").reshape(2, 3))
    check("sort_complex", (integers(5) + 1j * integers(5, seed=1)).astype(np.complex64))


@pytest.mark.parametrize("kth", [0, 3, -1])
def test_partition(kth: int) -> None:
    x = np.random.default_rng(0).permutation(20).reshape(2, 10).astype(np.float32)
    result = np.asarray(jnp.partition(from_numpy(x), kth, axis=1))
    order = np.asarray(jnp.argpartition(from_numpy(x), kth, axis=1))
    np.testing.assert_array_equal(np.sort(result, 1), np.sort(x, 1))
    np.testing.assert_array_equal(result[:, kth], np.sort(x, 1)[:, kth])
    place = kth % 10
    assert (result[:, :place] <= result[:, [place]]).all()
    assert (result[:, place:] >= result[:, [place]]).all()
    np.testing.assert_array_equal(np.take_along_axis(x, order, 1)[:, kth], np.sort(x, 1)[:, kth])


@pytest.mark.parametrize("method", ["scan", "scan_unrolled", "sort", "compare_all"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(method: str, side: str) -> None:
    a = np.sort(integers(20))
    check("searchsorted", a, integers(3, 4, seed=1), side, method=method)
    check("searchsorted", a, 3, side, method=method)
    check("searchsorted", np.sort(SPECIAL), SPECIAL, side, method=method)
    check("searchsorted", a, np.array([1.5, -7, 9], np.float32), side, method=method)
    shuffled = integers(7)
    sorter = np.argsort(shuffled, kind="stable")
    check("searchsorted", shuffled, integers(4, seed=2), side, sorter, method=method)


@pytest.mark.parametrize("side", ["left", "right"])
def test_searching_many_takes_few_steps(side: str) -> None:
    generator = np.random.default_rng(0)
    a = np.sort(generator.integers(0, 900, 1000)).astype(np.float32)
    v = generator.integers(-5, 905, 500).astype(np.float32)
    expected = np.searchsorted(a, v, side)
    search = lambda a, v: jnp.searchsorted(a, v, side)  # noqa: E731
    np.testing.assert_array_equal(np.asarray(search(from_numpy(a), from_numpy(v))), expected)
    np.testing.assert_array_equal(np.asarray(axir.jit(search)(a, v)), expected)


def test_digitize() -> None:
    bins = np.array([0, 1, 2.5, 4], np.float32)
    x = np.array([[-1, 0, 0.5], [1, 3, 9]], np.float32)
    for right in (False, True):
        check("digitize", x, bins, right)
        check("digitize", x, bins[::-1].copy(), right)


@pytest.mark.parametrize("dtype", DTYPES)
def test_unique(dtype: str) -> None:
    check("unique", integers(9, dtype=dtype), True, True, True)
    check("unique", integers(3, 4, dtype=dtype), return_inverse=True)


def test_unique_of_special_numbers() -> None:
    check("unique", SPECIAL, True, True, True)
    check("unique", SPECIAL, return_counts=True, equal_nan=False)
    check("unique", np.zeros((0,), np.float32), return_counts=True)


def test_unique_rows() -> None:
    x = integers(8, 2, dtype=np.int8) % 2
    check("unique", x, True, True, True, axis=0)
    check("unique", x.T.copy(), axis=1)


@pytest.mark.parametrize("size", [2, 4, 9])
def test_unique_of_given_size(size: int) -> None:
    x = np.array([3, 1, 3, 5, 1, 1], np.int32)
    check("unique", x, True, True, True, size=size)
    check("unique", x, return_counts=True, size=size, fill_value=-1)
    check("unique", np.stack([x, x % 2], 1), axis=0, size=size, return_counts=True)
    traced = axir.jit(lambda x: jnp.unique(x, size=size))(from_numpy(x))
    np.testing.assert_array_equal(np.asarray(traced), jax.numpy.unique(x, size=size))


def test_unique_of_the_array_api() -> None:
    for name in ("unique_all", "unique_counts", "unique_inverse", "unique_values"):
        check(name, integers(3, 4))
        ours, theirs = both(name)
        result = ours(from_numpy(integers(4)))
        assert getattr(result, "_fields", ()) == getattr(theirs(integers(4)), "_fields", ())


@pytest.mark.parametrize("name", ["union1d", "intersect1d", "setdiff1d", "setxor1d"])
def test_sets(name: str) -> None:
    first, second = integers(7), integers(2, 3, seed=1) + 2
    check(name, first, second)
    check(name, first, second.astype(np.float32))
    check(name, first, second, size=8)
    check(name, first, second, size=2)
    check(name, first, first[:1], size=8)
    check(name, first, first, size=8)
    check(name, first, first + 100, size=20)


def test_sets_of_special_numbers() -> None:
    nan = np.array([np.nan, 1, np.nan, 0, -0.0], np.float32)
    for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d"):
        check(name, nan, np.array([np.nan, 2], np.float32))
        check(name, nan, np.array([2, 3], np.float32))
    parts = np.array([1 + 2j, complex(0, np.nan), complex(np.nan, 1), 1, complex(np.inf, 0)])
    for name in ("unique", "unique_values"):
        check(name, parts.astype(np.complex64))
    check("setxor1d", parts.astype(np.complex64), parts[:3].astype(np.complex64))


@pytest.mark.parametrize("name", ["union1d", "intersect1d", "setdiff1d", "setxor1d"])
def test_sets_without_elements(name: str) -> None:
    none, some = np.zeros((0,), np.float32), np.array([2, 1], np.float32)
    for pair in ((none, some), (some, none), (none, none), (some, some)):
        check(name, *pair)
        check(name, *pair, size=3, fill_value=7)
    check(name, some, none, size=3)


def test_what_is_filled_up_with() -> None:
    some = np.array([2, 1], np.float32)
    check("intersect1d", some, some + 5, size=2)
    check("setxor1d", some, some, size=2)
    check("setxor1d", some, some + 1, size=5)


def test_intersection_with_indices() -> None:
    none, some = np.zeros((0,), np.int32), np.array([2, 1], np.int32)
    check("intersect1d", none, some, return_indices=True)
    ours = jnp.intersect1d(from_numpy(some), from_numpy(none), return_indices=True, size=2)
    assert [x.tolist() for x in ours] == [[0, 0], [2, 2], [0, 0]]  # JAX raises an error
    first, second = np.array([3, 1, 4, 1, 5]), np.array([5, 9, 1, 5, 1])
    check("intersect1d", first.astype(np.int32), second.astype(np.int32), return_indices=True)


@pytest.mark.parametrize("method", ["auto", "compare_all", "binary_search", "sort"])
def test_membership(method: str) -> None:
    for invert in (False, True):
        check("isin", integers(3, 4), np.array([1, 4], np.int32), invert=invert, method=method)
    check("isin", integers(4), np.zeros((0,), np.int32), method=method)


ERRORS = [
    ("sort", (np.ones(3),), {"kind": "mergesort"}, "'kind' argument to sort is not supported"),
    ("argsort", (np.ones(3),), {"order": "x"}, "'order' argument to argsort is not supported"),
    ("sort", (np.ones(3),), {"axis": 1}, "axis 1 is out of bounds"),
    ("lexsort", ((),), {}, "need sequence of keys"),
    ("lexsort", ((np.ones(3), np.ones(4)),), {}, "same shape"),
    ("searchsorted", (np.ones((2, 2)), 1.0), {}, "should be 1-dimensional"),
    ("searchsorted", (np.ones(2), 1.0), {"side": "middle"}, "invalid value for argument 'side'"),
    ("searchsorted", (np.ones(2), 1.0), {"method": "guess"}, "invalid value for argument 'method'"),
    ("digitize", (1.0, np.ones((2, 2))), {}, "must be a 1-dimensional array"),
    ("partition", (np.ones(3), 3), {}, "kth=3 is out of range"),
    ("unique", (np.ones(0),), {"size": 2}, "fill_value is not given"),
]


@pytest.mark.parametrize(("name", "args", "kwargs", "text"), ERRORS)
def test_errors(name: str, args: Any, kwargs: Any, text: str) -> None:
    narrow = [x.astype(np.float32) if isinstance(x, np.ndarray) else x for x in args]
    error = same_error(*both(name), *narrow, **kwargs)
    with pytest.raises(type(error), match=text):
        raise error


def test_unique_needs_a_size_while_tracing() -> None:
    with pytest.raises(axir.errors.ConcretizationTypeError, match="static argument size"):
        axir.jit(jnp.unique)(from_numpy(integers(4)))


def everything(x: Any, k: Any) -> list[Any]:
    results = [jnp.sort(x), jnp.argsort(x, descending=True), jnp.lexsort((k, k[::-1]))]
    results += [jnp.searchsorted(jnp.sort(x), x, method=m) for m in ("scan", "sort", "compare_all")]
    results += [*jnp.unique(k, True, True, True, size=5), jnp.union1d(k, k + 3, size=9)]
    results += [jnp.setdiff1d(k, k[:2], size=4), jnp.intersect1d(k, k[1:3], size=3)]
    results += [jnp.isin(k, k[:2]), jnp.digitize(x, jnp.sort(x)), jnp.setxor1d(k, k[:3], size=4)]
    return results


def test_compiled_as_evaluated() -> None:
    x, k = from_numpy(np.abs(SPECIAL)), from_numpy(integers(8))
    evaluated = everything(x, k)
    compiled = axir.jit(everything)(x, k)
    for ours, expected in zip(compiled, evaluated, strict=True):
        assert ours.type is expected.type
        assert_close(np.asarray(ours), np.asarray(expected))


def test_gradients() -> None:
    weights = np.arange(12.0, dtype=np.float32).reshape(4, 3)

    def loss(np_: Any) -> Any:
        return lambda x: np_.sum(np_.sort(x, axis=0) * weights)

    x = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    ours = axir.grad(loss(jnp))(from_numpy(x))
    assert_close(np.asarray(ours), np.asarray(jax.grad(loss(jax.numpy))(x)))

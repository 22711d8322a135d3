"""sort and top_k: against Python's sort, and against JAX."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.op_programs import Programs

import axir
import axir.numpy as jnp
from axir import lax, random
from axir.dialect.core import dtypes
from axir.dialect.core.array import as_array
from axir.dialect.core.errors import AxisError, DTypeError, ParameterError, ShapeError
from axir.dialect.core.symbolic_zeros import Zero
from axir.dialect.ops import OPS
from axir.dialect.ops.sorting.sort import sort, sort_key_val, top_k
from axir.dialect.program.function_tracing import trace_function

# NaNs of both signs, zeros of both signs, infinities, ties.
HARD = [1.0, np.nan, -0.0, 0.0, -np.inf, 2.0, 0.0, -0.0, np.inf, -np.nan, -1.0, 2.0]
FLOATS = st.sampled_from(HARD)
ORDERED = [d for d in dtypes.ALL if not dtypes.is_complex(d)]
NARROW = [d for d in dtypes.ALL if d.itemsize // (1 + dtypes.is_complex(d)) < 8]


def assert_bits_equal(ours: Any, theirs: Any) -> None:
    """Compares values, the signs of zeros among them; NaNs are all alike."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
    if dtypes.is_float(ours.dtype):
        ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
        is_number = ~np.isnan(ours)
        np.testing.assert_array_equal(np.signbit(ours[is_number]), np.signbit(theirs[is_number]))
    np.testing.assert_array_equal(ours, theirs)


def hard_values(dtype: np.dtype) -> np.ndarray:
    if dtypes.is_inexact(dtype):
        return np.array(HARD).astype(dtype)
    return np.array([3, 1, 0, 1, 3, 2, 100, 0, 1, 0, 2, 2]).astype(dtype)


def python_key(value: float) -> tuple[bool, float]:
    return (True, 0.0) if math.isnan(value) else (False, value)


@settings(max_examples=60)
@given(values=st.lists(FLOATS, max_size=12))
def test_sort_orders_as_python_does(values: list[float]) -> None:
    x = np.array(values, np.float32)
    assert_bits_equal(sort(x), np.array(sorted(values, key=python_key), np.float32))


@settings(max_examples=60)
@given(rows=st.lists(st.tuples(FLOATS, st.integers(-2, 2), FLOATS), max_size=12))
@pytest.mark.parametrize("num_keys", [1, 2, 3])
def test_rows_are_sorted_stably_by_their_keys(
    num_keys: int, rows: list[tuple[float, int, float]]
) -> None:
    columns = [
        np.array([row[i] for row in rows], dtype)
        for i, dtype in enumerate((np.float32, np.int8, np.float16))
    ]
    expected = sorted(rows, key=lambda row: [python_key(value) for value in row[:num_keys]])
    results = sort(columns, num_keys=num_keys)
    for i, (column, result) in enumerate(zip(columns, results, strict=True)):
        assert_bits_equal(result, np.array([row[i] for row in expected], column.dtype))


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_sort_agrees_with_jax(dtype: np.dtype) -> None:
    keys, places = hard_values(dtype), np.arange(len(HARD), dtype=np.int32)
    for ours, theirs in zip(
        sort_key_val(keys, places), jax.lax.sort_key_val(keys, places), strict=True
    ):
        assert_bits_equal(ours, theirs)


def test_complex_numbers_are_sorted_by_real_then_imaginary_part() -> None:
    parts = [0.0, -0.0, 1.0, np.nan, -np.inf]
    keys = np.array([complex(a, b) for a in parts for b in parts], np.complex64)[::-1].copy()
    places = np.arange(keys.size, dtype=np.int32)
    assert_bits_equal(sort((keys, places))[1], jax.lax.sort((keys, places))[1])


@pytest.mark.parametrize("dimension", [0, 1, 2, -1, -3])
def test_sort_along_any_dimension(dimension: int) -> None:
    x = np.random.default_rng(0).permutation(24).reshape(2, 3, 4).astype(np.int32)
    np.testing.assert_array_equal(np.asarray(sort(x, dimension)), np.sort(x, dimension))
    _, y = sort((x, -x), dimension)
    np.testing.assert_array_equal(np.asarray(y), -np.sort(x, dimension))


def test_one_array_in_a_sequence_stays_a_sequence() -> None:
    x = np.array([2, 1], np.int32)
    assert isinstance(sort([x]), tuple)
    assert sort(x).shape == (2,)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_empty_arrays_stay_empty(shape: tuple[int, ...]) -> None:
    x = np.zeros(shape, np.float32)
    assert sort(x).shape == shape
    first, second = sort((x, x), dimension=0)
    assert (first.shape, second.shape) == (shape, shape)


@pytest.mark.parametrize("dtype", [d for d in ORDERED if d.itemsize < 8], ids=str)
@pytest.mark.parametrize("k", [0, 5, 12])
def test_top_k_agrees_with_jax(dtype: np.dtype, k: int) -> None:
    # A NaN with its sign bit set comes last in JAX on a CPU; here all NaNs are alike.
    x = np.array([v for v in hard_values(dtype).tolist() if not _is_negative_nan(v)]).astype(dtype)
    k = min(k, x.size)
    for ours, theirs in zip(top_k(x, k), jax.lax.top_k(x, k), strict=True):
        assert_bits_equal(ours, theirs)


def _is_negative_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value) and math.copysign(1, value) < 0


def test_top_k_puts_every_nan_first() -> None:
    x = np.array([1.0, np.nan, np.inf, -np.nan], np.float32)
    np.testing.assert_array_equal(np.asarray(top_k(x, 4)[1]), [1, 3, 2, 0])


@settings(max_examples=60)
@given(values=st.lists(FLOATS, min_size=20, max_size=40), k=st.integers(1, 3))
def test_few_of_many_are_the_first_of_all(values: list[float], k: int) -> None:
    x = np.array(values, np.float32)
    for few, every in zip(top_k(x, k), top_k(x, x.size), strict=True):
        assert_bits_equal(few, np.asarray(every)[:k])


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_top_k_along_any_axis(axis: int) -> None:
    x = np.random.default_rng(1).permutation(20).reshape(4, 5).astype(np.int16)
    values, indices = top_k(x, 3, axis=axis)
    expected = np.flip(np.sort(x, axis), axis).take(range(3), axis)
    np.testing.assert_array_equal(np.asarray(values), expected)
    np.testing.assert_array_equal(np.take_along_axis(x, np.asarray(indices), axis), expected)


def test_tangents_follow_their_elements() -> None:
    x = as_array(np.array([[3.0, 1.0, 2.0], [1.0, 1.0, 0.0]]), np.float32)
    tangent = as_array(np.arange(6.0).reshape(2, 3), np.float32)
    params = {"dimension": 1, "is_stable": True, "num_keys": 1}
    rule = OPS["sort"].value_and_jvp
    (out,), (out_tangent,) = rule([x], [tangent], **params)
    np.testing.assert_array_equal(np.asarray(out), np.sort(np.asarray(x)))
    np.testing.assert_array_equal(np.asarray(out_tangent), [[1, 2, 0], [5, 3, 4]])
    (again,) = OPS["sort"].jvp([x], [tangent], [out], **params)
    np.testing.assert_array_equal(np.asarray(again), np.asarray(out_tangent))


def test_integers_that_are_carried_along_have_no_tangent() -> None:
    x = as_array(np.array([2.0, 1.0], np.float32))
    places = as_array(np.array([0, 1], np.int32))
    zero = Zero(places.type.to_tangent_aval())
    params = {"dimension": 0, "is_stable": True, "num_keys": 1}
    _, tangents = OPS["sort"].value_and_jvp([x, places], [x, zero], **params)
    assert isinstance(tangents[1], Zero)
    np.testing.assert_array_equal(np.asarray(tangents[0]), [1.0, 2.0])


def test_batches_with_different_axes() -> None:
    keys = np.array([[3, 1, 2], [1, 2, 3]], np.int32)
    values = np.arange(3, dtype=np.int32)
    params = {"dimension": 0, "is_stable": True, "num_keys": 1}
    results, axes = OPS["sort"].batch([as_array(keys.T), as_array(values)], [1, None], **params)
    assert axes == [1, 1]
    np.testing.assert_array_equal(np.asarray(results[1]).T, [[1, 2, 0], [0, 1, 2]])


def large_programs() -> dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]]:
    """Programs built on sorting, of more elements than a dispatch's stack could hold."""
    generator = np.random.default_rng(5)
    long = generator.integers(-5000, 5000, 20_000).astype(np.float32) / 4
    long[::1000] = np.nan
    wide = generator.normal(size=(300, 70)).astype(np.float32)
    few = generator.integers(0, 3, (3, 5000)).astype(np.int16)
    key = np.array([0, 7], np.uint32)
    targets = generator.normal(size=500).astype(np.float32)
    return {
        "argsort": (jnp.argsort, (long,)),
        "twice": (lambda x: sort((x, x)), (long,)),
        "descending": (lambda x: jnp.sort(x, descending=True), (long,)),
        "lexsort": (lambda x: jnp.lexsort((x[0], x[1] > 0, x[2])), (few,)),
        "permutation": (lambda key: random.permutation(key, 6000), (key,)),
        "unique": (lambda x: jnp.unique(x, axis=1, size=30, return_inverse=True), (few,)),
        "median": (lambda x: jnp.median(x, axis=0), (wide,)),
        "quantile": (lambda x: jnp.quantile(x, np.float32(0.25), axis=1), (wide,)),
        "top_k": (lambda x: top_k(x, 100), (long,)),
        "searchsorted": (lambda x, y: jnp.searchsorted(x, y, method="sort"), (targets, long)),
        "gradient": (axir.grad(lambda x: (jnp.sort(x, axis=0) * x).sum()), (wide,)),
        "vectorized": (axir.vmap(lambda x: sort((x, -x, 2 * x), num_keys=2), 1), (wide,)),
        "repeated": (lambda x: lax.fori_loop(0, 3, lambda i, x: jnp.sort(-x, axis=0), x), (wide,)),
    }


def test_compiled_programs_of_large_arrays_agree_with_the_evaluator() -> None:
    functions, given, wanted = {}, {}, {}
    for name, (function, arguments) in large_programs().items():
        arrays = [as_array(x) for x in arguments]
        functions[name] = trace_function(
            lambda *xs, f=function: axir.tree.leaves(f(*xs)), [x.type for x in arrays]
        )
        given[name] = [x.host() for x in (*arrays, *functions[name].captured)]
        wanted[name] = [x.host() for x in functions[name].evaluate(*arrays)]
    compiled = Programs(functions, with_host_calls=False)
    assert compiled.failures == {}
    for name, expected in wanted.items():
        for ours, theirs in zip(compiled(name, *given[name]), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    ("error", "text", "call"),
    [
        (ShapeError, "needs at least one array", lambda x: sort([])),
        (ShapeError, "arrays of equal shape", lambda x: sort((x, x[:1]))),
        (ParameterError, "num_keys=3 must be between 1 and", lambda x: sort((x, x), num_keys=3)),
        (ParameterError, "num_keys=0", functools.partial(sort, num_keys=0)),
        (AxisError, "axis 2 is out of bounds", functools.partial(sort, dimension=2)),
        (AxisError, "A scalar has no axes", lambda x: sort(x[0])),
        (ParameterError, "k=3 must lie between 0 and", lambda x: top_k(x, 3)),
        (ParameterError, "k=-1", lambda x: top_k(x, -1)),
        (AxisError, "axis 1 is out of bounds", lambda x: top_k(x, 1, axis=1)),
        (DTypeError, "complex numbers have no order", lambda x: top_k(x.astype(np.complex64), 1)),
    ],
)
def test_errors_say_what_is_wrong(error: type[Exception], text: str, call: Any) -> None:
    with pytest.raises(error, match=text):
        call(np.array([2.0, 1.0], np.float32))

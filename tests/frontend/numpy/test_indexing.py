"""Indexing, `take`, and `.at` updates against NumPy and JAX."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from support.against_jax import assert_close, compare
from support.index_cases import UPDATES, X, name_of, ours_of

import axir
import axir.numpy as jnp
from axir.dialect.core.array import from_numpy
from axir.dialect.core.errors import ConcretizationTypeError, DTypeError, IndexTypeError
from axir.numpy._arguments.promotion import BroadcastError
from axir.numpy._indexing.index_parsing import DynamicSliceError, MaskShapeError

ROWS = np.array([2, 0, -1])
GRID = np.array([[0, 2], [-1, 1]])
MASK = np.arange(12).reshape(3, 4) % 3 == 0

STATIC = [
    0, -1, slice(None), slice(1, 3), slice(None, None, -1), slice(2, 0, -1), slice(None, None, 2),
    slice(5, 1), slice(-2, None), None, ..., (), (0, 1), (0, 1, 2), (slice(None), 1), (..., 2),
    (..., None), (None, 0), (1, ..., None, slice(0, 4, 3)), (slice(None, None, -2), ..., -1),
    (slice(0, 1), slice(3, 1, -1), slice(4, None, -3)), (0, ...), (None, None, 1, slice(2)),
    (..., 0, 0, 0), slice(-1, -9, -1), (slice(None), slice(10, 20)), np.int64(1),
    (np.int8(-1), slice(1)),
]  # fmt: skip
ARRAYS = [
    ROWS, GRID, (ROWS, ROWS), (slice(None), ROWS), (ROWS, slice(1, 3)), (0, ROWS), (ROWS, 0),
    (slice(None), ROWS, ROWS), (ROWS, slice(None), ROWS), (GRID, None, ROWS[:2]), (..., ROWS),
    (None, ROWS), (ROWS, None, 1), (slice(None, None, -1), GRID), (GRID, ..., GRID),
    (0, slice(None), ROWS), (slice(0, 2), ROWS, None, slice(None, None, 2)), MASK, (0, MASK[0]),
    (MASK[:, 0],), (slice(None), MASK[0]), (ROWS[:2], MASK[0][:4]), True, False, (True, 0),
    (slice(None), True), (ROWS, True), np.array(True), np.zeros((0,), int), (GRID[:, :1], ROWS[:2]),
    np.uint8([1, 2]), (slice(None), None, ROWS), (ROWS, slice(None), 1),
    (slice(None), ROWS, ..., ROWS), (ROWS, ..., 1, ROWS), (0, ..., ROWS, ROWS),
    (slice(None), GRID, ..., None, GRID), (MASK, ..., 0), (slice(None), 0, ..., MASK.ravel()[:5]),
    (slice(None), True, ..., ROWS, 0), (..., ROWS, slice(None), 1), (GRID, ROWS[:2], ..., 0),
]  # fmt: skip


@pytest.mark.parametrize("index", STATIC + ARRAYS, ids=name_of)
def test_indexing_is_numpys(index: Any) -> None:
    x = from_numpy(X)
    result = x[ours_of(index)]
    np.testing.assert_array_equal(result, X[index])
    assert result.dtype == np.float32
    # With NumPy arrays for indices, under a trace, and mapped.
    np.testing.assert_array_equal(x[index], X[index])
    mapped = axir.vmap(lambda row: row[ours_of(index)])(from_numpy(np.stack([X, X + 1])))
    np.testing.assert_array_equal(mapped, np.stack([X[index], X[index] + 1]))


@pytest.mark.parametrize("index", STATIC + ARRAYS, ids=name_of)
def test_gradients_of_indexing_count_how_often_elements_are_read(index: Any) -> None:
    gradient = axir.grad(lambda x: x[ours_of(index)].sum())(from_numpy(X))
    expected = np.zeros_like(X)
    np.add.at(expected, index, 1.0)
    np.testing.assert_array_equal(gradient, expected)


def test_compiled_indexing() -> None:
    indices = [*STATIC[:22], *ARRAYS[:16]]

    def all_parts(x: Any) -> list[Any]:
        return [x[ours_of(index)] for index in indices]

    for index, result in zip(indices, axir.jit(all_parts)(from_numpy(X)), strict=True):
        np.testing.assert_array_equal(result, X[index], err_msg=name_of(index))


def test_indices_that_are_traced() -> None:
    def parts(x: Any, i: Any, rows: Any) -> list[Any]:
        return [
            x[i],
            x[0, i],
            x[:, i, 1:3],
            x[..., i],
            x[i, None, ::-1],
            x[rows],
            x[i, rows],
            x[:, rows, i],
        ]

    rows = np.array([1, -1])
    traced = axir.jit(parts)
    for i in (0, 2, -1):
        expected = parts(X, i, rows)
        for result, value in zip(traced(from_numpy(X), i, rows), expected, strict=True):
            np.testing.assert_array_equal(result, value)


def test_computed_positions_out_of_bounds_are_clamped() -> None:
    x, jax_x = from_numpy(X), jax.numpy.asarray(X)
    for i in (7, -5, 3, -100):
        np.testing.assert_array_equal(x[jnp.array(i)], jax_x[jax.numpy.array(i)])
        np.testing.assert_array_equal(x[jnp.array([i, 0])], jax_x[jax.numpy.array([i, 0])])


@pytest.mark.parametrize(
    "index", [[0, 1], [], (0, [0.5]), 1.0, "a", np.array([0.5]), (slice("a"),), {}]
)
def test_what_is_no_index_is_refused(index: Any) -> None:
    with pytest.raises(IndexTypeError):
        from_numpy(X)[index]


def test_sequences_within_a_tuple_are_arrays() -> None:
    x, jax_x = from_numpy(X), jax.numpy.asarray(X)
    for index in (
        ([0, 2],), (0, [1, 2]), ([0, 1], [1, 2]), (0, []), ([], []), ([True, False, True], ..., 1),
        ((0, 1), slice(None)), ([[0], [1]], [0, 1]), (..., [0, -1]),
    ):  # fmt: skip
        np.testing.assert_array_equal(x[index], jax_x[index])
        np.testing.assert_array_equal(x.at[index].set(9.0), jax_x.at[index].set(9.0))
    compiled = axir.jit(lambda x, i: x[[i, 2], :])(x, 1)
    np.testing.assert_array_equal(compiled, X[[1, 2]])


def test_slices_need_static_bounds() -> None:
    with pytest.raises(DynamicSliceError, match="lax.dynamic_slice"):
        axir.jit(lambda x, i: x[i : i + 2])(from_numpy(X), 1)
    assert axir.grad(lambda x: x[: int(x.sum())].sum())(jnp.ones(2)).shape == (2,)


def test_masks() -> None:
    with pytest.raises(MaskShapeError, match=r"\(2,\)"):
        from_numpy(X)[np.array([True, False])]
    with pytest.raises(ConcretizationTypeError, match="jnp.where"):
        axir.jit(lambda x: x[x > 3])(from_numpy(X))


def test_indexing_keeps_weak_types() -> None:
    weak = jnp.full((2, 2), 2.0)
    assert weak[0].weak_type
    assert weak[0, jnp.array(1)].weak_type
    assert not from_numpy(X)[0].weak_type


def test_iteration_and_unpacking() -> None:
    first, _, last = from_numpy(X)
    np.testing.assert_array_equal(first, X[0])
    np.testing.assert_array_equal(axir.jit(lambda x: list(x)[2])(from_numpy(X)), X[2])
    np.testing.assert_array_equal(last, X[2])
    for x in (from_numpy(X), jnp.zeros((0, 3))):
        assert len(list(x)) == len(list(reversed(x))) == x.shape[0]
        assert axir.eval_shape(lambda x: [list(x), list(reversed(x))], x)[0] == [
            axir.eval_shape(lambda x: x, row) for row in x
        ]
    with pytest.raises(ValueError, match="too many values to unpack"):
        first, last = from_numpy(X)
    assert all(x.weak_type for x in jnp.full(2, 1.0))


# take ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [None, "clip", "wrap", "fill"])
def test_take(mode: str | None) -> None:
    inside = np.array([[0, 2], [-1, 1]]) if mode != "clip" else np.array([[0, 2], [1, 1]])
    outside = np.array([0, -1, 3, 9, -9])
    for indices in (inside, outside, 1, 7):
        for axis in (None, 0, 1, -1):
            compare(jnp.take, jax.numpy.take, X, indices, axis=axis, mode=mode)
    compare(jnp.take, jax.numpy.take, np.arange(3), outside, mode=mode)


def test_take_promised_to_be_in_bounds() -> None:
    rows = np.array([[0, 2], [-1, 1]])
    np.testing.assert_array_equal(jnp.take(X, rows, 1, mode="promise_in_bounds"), X[:, rows])


def test_take_fills() -> None:
    for dtype in ("int8", "uint8", "float16", "bool", "complex64"):
        x = np.ones(3).astype(dtype)
        compare(jnp.take, jax.numpy.take, x, np.array([0, 5]))
    compare(jnp.take, jax.numpy.take, X, np.array([0, 5]), axis=1, fill_value=-7.0)
    with pytest.raises(DTypeError, match=r"jnp\.take: indices must be integers"):
        jnp.take(X, np.array([0.5]))


def test_positions_may_be_bools_or_none_at_all() -> None:
    mask = np.array([True, False, True])
    compare(jnp.take, jax.numpy.take, np.arange(3), mask)
    compare(jnp.take, jax.numpy.take, np.arange(3), np.array([]))
    for positions in (mask, np.array([])):
        compare(jnp.put, jax.numpy.put, np.arange(3), positions, 7, inplace=False)


def test_a_scalar_has_no_positions() -> None:
    with pytest.raises(ValueError, match="is a scalar, and an index of it names no axis"):
        jnp.nonzero(2.0)
    for number in (0.0, 2.0):
        compare(jnp.argwhere, jax.numpy.argwhere, number)
        compare(jnp.flatnonzero, jax.numpy.flatnonzero, number)


def test_take_along_axis() -> None:
    for axis in (0, 1, 2, -1):
        order = np.argsort(-X, axis=axis)
        compare(jnp.take_along_axis, jax.numpy.take_along_axis, X, order, axis)
        first = order.take([0], axis)
        compare(jnp.take_along_axis, jax.numpy.take_along_axis, X, first, axis)
    compare(jnp.take_along_axis, jax.numpy.take_along_axis, X, np.arange(3), None)
    compare(jnp.take_along_axis, jax.numpy.take_along_axis, X[0], np.array([[7, -1]]), 1)
    gradient = axir.grad(lambda x: jnp.take_along_axis(x, jnp.zeros((3, 1), int), 1).sum())(
        jnp.ones((3, 2))
    )
    np.testing.assert_array_equal(gradient, [[1, 0]] * 3)


# Updates ---------------------------------------------------------------------------------------

NUMBERS = np.arange(X.size).reshape(X.shape)
DISTINCT = [i for i in STATIC + ARRAYS if np.unique(NUMBERS[i]).size == NUMBERS[i].size]


def updated(index: Any, kind: str, value: Any) -> np.ndarray:
    result = X.copy()
    result[index] = UPDATES[kind](result[index], value)
    return result


@pytest.mark.parametrize("index", DISTINCT, ids=name_of)
def test_updates(index: Any) -> None:
    x = from_numpy(X)
    for kind in UPDATES:
        reference = x.at[ours_of(index)]
        assert_close(
            np.asarray(getattr(reference, kind)(2.5)), updated(index, kind, 2.5), 4.0, kind
        )
    values = np.arange(X[index].size, dtype=np.float32).reshape(X[index].shape) + 0.5
    for kind in ("set", "add", "min"):
        expected = X.copy()
        expected[index] = UPDATES[kind](expected[index], values)
        result = getattr(x.at[ours_of(index)], kind)(from_numpy(values))
        np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(
        axir.vmap(lambda x: x.at[ours_of(index)].add(1.0))(from_numpy(X[None]))[0],
        updated(index, "add", 1.0),
    )


def test_elements_named_twice() -> None:
    x, twice = jnp.full(3, 2.0), jnp.array([0, 0, 1])
    np.testing.assert_array_equal(x.at[twice].add(1.0), [4, 3, 2])
    np.testing.assert_array_equal(x.at[twice].multiply(3.0), [18, 6, 2])
    np.testing.assert_array_equal(x.at[twice].divide(2.0), [0.5, 1, 2])
    np.testing.assert_array_equal(x.at[twice].power(2.0), [16, 4, 2])
    np.testing.assert_array_equal(x.at[twice].subtract(1.0), [0, 1, 2])
    np.testing.assert_array_equal(x.at[twice].max(jnp.array([5.0, 9.0, 1.0])), [9, 2, 2])


def test_apply_and_get() -> None:
    x = jnp.arange(4.0)
    np.testing.assert_array_equal(x.at[1:3].apply(jnp.square), [0, 1, 4, 3])
    np.testing.assert_array_equal(x.at[jnp.array([2, 3])].apply(lambda v: -v), [0, 1, -2, -3])
    assert float(x.at[2].get()) == 2.0
    assert bool(jnp.isnan(x.at[7].get(mode="fill")))
    assert float(x.at[7].get(mode="fill", fill_value=5)) == 5.0
    assert float(x.at[7].get(mode="clip")) == 3.0
    np.testing.assert_array_equal(x.at[jnp.array([1, 9])].get(mode="fill", fill_value=-1), [1, -1])


def test_updates_out_of_bounds_are_dropped_unless_a_mode_says_otherwise() -> None:
    x = jnp.arange(3.0)

    def computed(x: Any, i: Any) -> list[Any]:
        return [
            x.at[i].set(9.0),
            x.at[i].add(1.0),
            x.at[i].set(9.0, mode="clip"),
            x.at[jnp.array([0, 1]) + i].set(9.0),
            x.at[jnp.array([0, 1]) + i].add(1.0, mode="clip"),
        ]

    jax_x = jax.numpy.arange(3.0)
    jax_results = {}
    for i in (0, 2, 5, -1, -4):
        index = jax.numpy.array([0, 1]) + i
        jax_results[i] = [
            jax_x.at[i].set(9.0),
            jax_x.at[i].add(1.0),
            jax_x.at[i].set(9.0, mode="clip"),
            jax_x.at[index].set(9.0),
            jax_x.at[index].add(1.0, mode="clip"),
        ]
    compiled = axir.jit(computed)
    for i, expected in jax_results.items():
        for results in (computed(x, jnp.array(i)), compiled(x, i)):
            for result, value in zip(results, expected, strict=True):
                np.testing.assert_array_equal(result, value)
    np.testing.assert_array_equal(x.at[7].set(9.0, mode="drop"), x)


def test_compiled_updates() -> None:
    def updates(x: Any, i: Any, rows: Any) -> list[Any]:
        return [
            x.at[0].set(1.0), x.at[:, 1:3].add(2.0), x.at[::2, ..., ::-3].multiply(3.0),
            x.at[i].set(-1.0), x.at[:, i, 1:].max(30.0), x.at[rows].add(1.0),
            x.at[0, rows].set(jnp.zeros(5)), x.at[rows, 1:].min(0.0),
        ]  # fmt: skip

    rows = from_numpy(np.array([2, 0], np.int32))
    eager = updates(from_numpy(X), 1, rows)
    for one, two in zip(eager, axir.jit(updates)(from_numpy(X), 1, rows), strict=True):
        np.testing.assert_array_equal(one, two)


def test_gradients_of_updates() -> None:
    def ours(x: Any, v: Any) -> Any:
        y = x.at[1].set(v).at[::2].multiply(v).at[jnp.array([0, 2])].add(v * v)
        return (y * jnp.arange(1.0, 4.0)).sum()

    def theirs(x: Any, v: Any) -> Any:
        y = x.at[1].set(v).at[::2].multiply(v).at[jax.numpy.array([0, 2])].add(v * v)
        return (y * jax.numpy.arange(1.0, 4.0)).sum()

    x = np.array([1.0, 2.0, 3.0], np.float32)
    got = axir.grad(ours, argnums=(0, 1))(from_numpy(x), 0.5)
    expected = jax.grad(theirs, argnums=(0, 1))(x, 0.5)
    for one, two in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-6)


def test_updates_by_a_mask_of_which_only_the_type_is_known() -> None:
    def positive(x: Any) -> list[Any]:
        return [x.at[x < 7].set(0.0), x.at[x < 7].add(1.0), x.at[x[:, 0, 0] > 5].multiply(2.0)]

    expected = [
        np.where(X < 7, 0, X),
        np.where(X < 7, X + 1, X),
        X * np.where(X[:, :1, :1] > 5, 2, 1),
    ]
    for results in (positive(from_numpy(X)), axir.jit(positive)(from_numpy(X))):
        for result, value in zip(results, expected, strict=True):
            np.testing.assert_array_equal(result, value)


def test_values_take_the_dtype_of_the_array() -> None:
    integers = jnp.arange(3)
    assert integers.at[0].set(True).dtype == np.int32
    with pytest.warns(FutureWarning, match="do not fit an array of int32"):
        result = integers.at[1].set(1.5)
    np.testing.assert_array_equal(result, [0, 1, 2])
    with pytest.warns(FutureWarning):
        np.testing.assert_array_equal(integers.at[1].add(1.5), [0, 2, 2])
    bools = jnp.array([True, False])
    np.testing.assert_array_equal(bools.at[jnp.array([1])].add(True), [True, True])
    assert jnp.zeros(2, jnp.bfloat16).at[0].set(1).dtype == jnp.bfloat16


def test_values_that_do_not_fit_are_refused() -> None:
    x = jnp.zeros((2, 3))
    for index, values in (
        (0, jnp.ones(2)),
        ((0, 0), jnp.ones(2)),
        (jnp.array([0, 1]), jnp.ones(2)),
    ):
        with pytest.raises(BroadcastError, match=r"at\[\.\.\.\]\.set: values of shape \(2,\)"):
            x.at[index].set(values)
    np.testing.assert_array_equal(x.at[0].set(jnp.ones((1, 3)))[0], [1, 1, 1])


def test_assignment_names_the_way_out() -> None:
    with pytest.raises(TypeError, match=r"x\.at\[index\]\.set"):
        jnp.zeros(3)[0] = 1.0


@pytest.mark.parametrize("run", [lambda f: f, axir.jit], ids=["eager", "jit"])
def test_updates_take_integers_that_fit_the_array(run: Any) -> None:
    for dtype, number in ((np.uint32, 2**32 - 1), (np.uint8, 300), (np.uint32, -1), (np.int8, -9)):
        x = np.ones(2, dtype)
        for kind in ("set", "add", "max", "multiply"):

            def update(x: Any, kind: str = kind, number: int = number) -> Any:
                return getattr(x.at[0], kind)(number)

            found, expected = run(update)(jnp.asarray(x)), update(jax.numpy.asarray(x))
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, expected)
    with pytest.raises(OverflowError):
        jnp.ones(2, jnp.int32).at[0].set(2**31)

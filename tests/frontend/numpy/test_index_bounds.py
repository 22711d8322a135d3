"""Indices beyond the ends of axes, and axes without entries, against JAX."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from support.index_cases import UPDATES, X, name_of, ours_of

import axir
import axir.numpy as jnp
from axir.dialect.core.array import from_numpy
from axir.dialect.core.errors import OutOfBoundsError
from axir.numpy._indexing.index_parsing import EmptyAxisError

NONE = np.zeros(0, np.int32)
OUTSIDE = [
    3, -4, -100, 2**40, (0, 9), (0, 0, -6), (5, slice(None, None, -1)), (slice(1, 9), -9), (..., 7),
    (None, 5, ..., 8), (5, True), (-7, np.array([1, 9])), (np.array([9, 0]), slice(None), 6),
    (7, [0, 3]),
]  # fmt: skip


def jax_of(index: Any) -> Any:
    """An index as JAX takes it: it clamps neither what no int32 holds."""
    if isinstance(index, tuple):
        return tuple(jax_of(item) for item in index)
    return 99 if type(index) is int and index > 99 else index


@pytest.mark.parametrize("index", OUTSIDE, ids=name_of)
def test_static_positions_out_of_bounds_are_clamped_in_reading(index: Any) -> None:
    x, expected = from_numpy(X), jax.numpy.asarray(X)[jax_of(index)]
    np.testing.assert_array_equal(x[index], expected)
    np.testing.assert_array_equal(x.at[index].get(mode="promise_in_bounds"), expected)
    mapped = axir.vmap(lambda x: x[index])(from_numpy(X[None]))
    np.testing.assert_array_equal(mapped[0], expected)
    for mode in ("fill", "clip"):
        np.testing.assert_array_equal(
            x.at[index].get(mode=mode), jax.numpy.asarray(X).at[jax_of(index)].get(mode=mode)
        )


@pytest.mark.parametrize("index", OUTSIDE, ids=name_of)
def test_updates_at_static_positions_out_of_bounds_are_dropped(index: Any) -> None:
    x, jax_x, jax_index = from_numpy(X), jax.numpy.asarray(X), jax_of(index)
    is_updated = np.asarray(jax_x.at[jax_index].add(2.5)) != X
    for kind, combine in UPDATES.items():
        result = getattr(x.at[index], kind)(2.5)
        np.testing.assert_allclose(result, np.where(is_updated, combine(X, 2.5), X), rtol=1e-6)
    np.testing.assert_allclose(
        x.at[index].apply(lambda v: v + 2.5), np.where(is_updated, X + 2.5, X), rtol=1e-6
    )
    clipped = jax_x.at[jax_index].set(2.5, mode="clip")
    np.testing.assert_array_equal(x.at[index].set(2.5, mode="clip"), clipped)


def test_the_gradient_of_a_clamped_read_goes_to_the_element_read() -> None:
    gradient = axir.grad(lambda x: x[9] + 2 * x[-9] + 3 * x.at[9].set(x[1]).sum())(jnp.ones(3))
    np.testing.assert_array_equal(gradient, [5, 3, 4])


def test_compiled_positions_out_of_bounds() -> None:
    def parts(x: Any, i: Any) -> list[Any]:
        return [x[9], x[i, 9], x[-9, i, 1:], x.at[9].set(0.0), x.at[i, 9].add(1.0)]

    expected = jax.jit(parts)(X, 1)
    for result, value in zip(axir.jit(parts)(from_numpy(X), 1), expected, strict=True):
        np.testing.assert_array_equal(result, value)


def test_negative_positions_need_not_count_from_the_end() -> None:
    x, jax_x = from_numpy(X), jax.numpy.asarray(X)
    for index in (-1, (0, -2), (-1, np.array([1, -1]))):
        ours, theirs = x.at[index], jax_x.at[index]
        for mode in (None, "fill", "clip"):
            options = {"mode": mode, "wrap_negative_indices": False}
            np.testing.assert_array_equal(ours.get(**options), theirs.get(**options))
            np.testing.assert_array_equal(ours.set(1.0, **options), theirs.set(1.0, **options))


def test_an_option_makes_static_positions_out_of_bounds_errors() -> None:
    x = from_numpy(X)
    with axir.config(jax_check_static_indices=True):
        for index in OUTSIDE:
            with pytest.raises(OutOfBoundsError, match="out of bounds for axis") as caught:
                x[index]
            assert "jax_check_static_indices is on" in str(caught.value)
            assert "mode=" in str(caught.value)
            assert "test_index_bounds.py" in str(caught.value)
            with pytest.raises(OutOfBoundsError):
                x.at[index].set(1.0)
        with pytest.raises(OutOfBoundsError):
            axir.jit(lambda x: x[3])(x)
        assert float(x.at[0, 0, 9].get(mode="clip")) == X[0, 0, 4]
        np.testing.assert_array_equal(x.at[9].set(1.0, mode="drop"), X)
        np.testing.assert_array_equal(x[jnp.array(9)], X[2])


def test_indices_that_name_too_much() -> None:
    x = from_numpy(X)
    with pytest.raises(OutOfBoundsError, match="Too many indices"):
        x[0, 0, 0, 0]
    with pytest.raises(OutOfBoundsError, match="one ellipsis"):
        x[..., ...]


@pytest.mark.parametrize(
    "index",
    [NONE, (NONE, 1), (NONE, slice(1, 3)), (None, NONE), (slice(None), NONE), (NONE, NONE),
     (NONE, None, slice(2)), (slice(0), NONE[:, None])],
    ids=name_of,
)  # fmt: skip
def test_empty_arrays_index_axes_without_entries(index: Any) -> None:
    empty = np.zeros((0, 3), np.float32)
    x = from_numpy(empty)
    expected = jax.numpy.asarray(empty)[index]
    mapped = axir.vmap(lambda x: x[ours_of(index)])(from_numpy(empty[None]))
    for result in (x[index], x[ours_of(index)], x.at[index].get(mode="fill"), mapped[0]):
        assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    assert axir.eval_shape(lambda x: x[ours_of(index)], x).shape == expected.shape
    assert axir.grad(lambda x: x[ours_of(index)].sum())(x).shape == (0, 3)
    for kind in UPDATES:
        assert getattr(x.at[index], kind)(1.0).shape == (0, 3)


def test_axes_without_entries_have_none_to_read() -> None:
    x = from_numpy(np.zeros((0, 3), np.float32))
    single, several = (0, -1, (5, slice(0)), jnp.array(0)), (jnp.array([0]), (np.array([0, 1]), 2))
    for index in (*single, *several):
        for read in (lambda x: x[index], lambda x: x.at[index].get(mode="fill")):  # noqa: B023
            for call in (read, lambda x: axir.eval_shape(read, x)):  # noqa: B023
                with pytest.raises(EmptyAxisError, match="axis 0 with size 0") as caught:
                    call(x)
                assert "empty array of integers" in str(caught.value)
    for index in single:
        with pytest.raises(EmptyAxisError):
            x.at[index].set(1.0)
    for index in several:
        assert x.at[index].add(1.0).shape == (0, 3)
        assert x.at[index].apply(jnp.square).shape == (0, 3)
    with pytest.raises(EmptyAxisError):
        jnp.take(x, jnp.array([0]), 0)
    assert jnp.take(x, jnp.array([], int), 0).shape == (0, 3)

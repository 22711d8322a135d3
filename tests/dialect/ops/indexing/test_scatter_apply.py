"""Functions applied at positions: once per occurrence of an element, and their derivatives."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import lax
from axir.dialect.core.errors import DTypeError, ParameterError, UnsupportedRuleError

X = np.arange(1, 6, dtype=np.float32)
TWICE = np.array([1, 1, 3, 9, -1], np.int32)


@pytest.mark.parametrize("mode", [None, "drop", "clip", "promise_in_bounds"])
def test_repeated_positions_are_jax_s(mode: str | None) -> None:
    index = TWICE if mode != "promise_in_bounds" else TWICE[:3]
    theirs = jax.numpy.asarray(X).at[index].apply(lambda v: v * v + 1, mode=mode)

    def applied(x, index):
        return x.at[index].apply(lambda v: v * v + 1, mode=mode)

    np.testing.assert_allclose(applied(jnp.asarray(X), index), theirs, rtol=1e-6)
    np.testing.assert_allclose(axir.jit(applied)(X, index), theirs, rtol=1e-6)


def test_vmap_over_array_and_positions() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    index = np.array([[0, 0], [1, 2], [3, 3]], np.int32)
    for axes in ((0, 0), (0, None), (None, 0)):
        arguments = (x if axes[0] == 0 else x[0], index if axes[1] == 0 else index[0])
        result = axir.vmap(lambda x, i: x.at[i].apply(jnp.sin), axes)(*map(jnp.asarray, arguments))
        theirs = jax.vmap(lambda x, i: x.at[i].apply(jax.numpy.sin), axes)(
            *map(jax.numpy.asarray, arguments)
        )
        np.testing.assert_allclose(result, theirs, rtol=1e-6)


def test_derivative_at_different_positions() -> None:
    gradient = axir.grad(lambda x: x.at[np.array([1, 3])].apply(jnp.square).sum())(X)
    np.testing.assert_array_equal(gradient, [1, 4, 1, 8, 1])
    promised = axir.jit(
        axir.grad(lambda x, i: x.at[i].apply(jnp.square, unique_indices=True).sum())
    )
    np.testing.assert_array_equal(promised(X, np.array([1, 3])), [1, 4, 1, 8, 1])
    np.testing.assert_array_equal(
        axir.grad(lambda x: x.at[1:3].apply(jnp.square).sum())(X), [1, 4, 6, 1, 1]
    )


def test_what_has_no_derivative_says_so() -> None:
    with pytest.raises(UnsupportedRuleError, match="unique_indices=True"):
        axir.grad(lambda x: x.at[TWICE].apply(jnp.square).sum())(X)


def test_functions_that_do_not_fit() -> None:
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    at = np.array([[0]])
    with pytest.raises(DTypeError, match="must return float32"):
        lax.scatter_apply(X, at, lambda v: v > 1, numbers, update_shape=(1,))
    with pytest.raises(ParameterError, match="elementwise"):
        lax.scatter_apply(X, at, lambda v: v[None], numbers, update_shape=(1,))
    with pytest.raises(ParameterError, match="values from around"):
        axir.jit(lambda k: lax.scatter_apply(X, at, lambda v: v * k, numbers, update_shape=(1,)))(
            2.0
        )


def test_dividing_integers_gives_floats() -> None:
    x = np.arange(4)
    for index in (np.array([0, 0, 2]), slice(1, 3), 1):
        ours = jnp.asarray(x).at[index].divide(2)
        theirs = jax.numpy.asarray(x).at[index].divide(2)
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


def test_approximate_top_k_is_exact() -> None:
    x = np.random.default_rng(0).normal(size=(4, 50)).astype(np.float32)
    values, indices = lax.approx_max_k(x, 3)
    np.testing.assert_array_equal(indices, np.argsort(-x)[:, :3])
    np.testing.assert_array_equal(values, -np.sort(-x)[:, :3])
    values, indices = axir.jit(lambda x: lax.approx_min_k(x, 2, reduction_dimension=0))(x)
    np.testing.assert_array_equal(indices, np.argsort(x, axis=0)[:2])
    np.testing.assert_array_equal(values, np.sort(x, axis=0)[:2])
    with pytest.raises(DTypeError, match="top_k"):
        lax.approx_max_k(np.arange(3), 1)
    with pytest.raises(ParameterError, match="recall_target"):
        lax.approx_max_k(x, 1, recall_target=2.0)

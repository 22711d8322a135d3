"""`convolve` and `correlate` of vectors: as JAX's."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from jax import numpy as jax_numpy
from support.against_jax import assert_close, compare, same_error

import axir
from axir import numpy as jnp

MODES = ["full", "same", "valid"]
LENGTHS = [(7, 3), (7, 4), (3, 7), (4, 7), (5, 5), (1, 4), (1, 1)]


def draw(length: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng([seed, length])
    if np.dtype(dtype).kind in "biu":
        return generator.integers(0, 5, length).astype(dtype)
    values = generator.normal(size=length)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * values[::-1]
    return values.astype(dtype)


@pytest.mark.parametrize("name", ["convolve", "correlate"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("lengths", LENGTHS)
def test_modes_and_lengths(name: str, mode: str, lengths: tuple[int, int]) -> None:
    for dtype in (np.float32, np.complex64):
        a, v = draw(lengths[0], dtype), draw(lengths[1], dtype, 1)
        compare(getattr(jnp, name), getattr(jax_numpy, name), a, v, mode, factor=8)
        assert_close(
            np.asarray(getattr(jnp, name)(a, v, mode)), getattr(np, name)(a, v, mode), factor=8
        )


@pytest.mark.parametrize("name", ["convolve", "correlate"])
@pytest.mark.parametrize(
    ("first", "second"),
    [(np.int32, np.int8), (np.bool_, np.bool_), (np.int32, np.float16), (np.float16, np.float16)],
)
def test_dtypes(name: str, first: Any, second: Any) -> None:
    a, v = draw(6, first), draw(3, second, 1)
    compare(getattr(jnp, name), getattr(jax_numpy, name), a, v)
    compare(getattr(jnp, name), getattr(jax_numpy, name), a, v, preferred_element_type=np.float32)


@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_integers_stay_where_integers_are_preferred(name: str) -> None:
    a, v = draw(6, np.int8), draw(3, np.int8, 1)
    compare(getattr(jnp, name), getattr(jax_numpy, name), a, v, preferred_element_type=np.int32)


@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_gradients(name: str) -> None:
    a, v = draw(6), draw(4, seed=1)

    def total(library: Any) -> Any:
        function = getattr(library, name)
        return lambda a, v: (function(a, v, "same") * library.arange(6)).sum()

    result = axir.grad(total(jnp), (0, 1))(a, v)
    expected = jax.grad(total(jax_numpy), (0, 1))(a, v)
    for mine, other in zip(result, expected, strict=True):
        assert_close(np.asarray(mine), np.asarray(other), 8)


def test_compiled() -> None:
    a, v = draw(300), draw(17, seed=1)
    result = axir.jit(lambda a, v: jnp.convolve(a, v, "same"))(a, v)
    assert_close(np.asarray(result), np.convolve(a, v, "same"), 64)


@pytest.mark.parametrize("name", ["convolve", "correlate"])
@pytest.mark.parametrize(
    ("a", "v", "mode", "text"),
    [
        (np.ones((2, 2)), np.ones(2), "full", "(2, 2)"),
        (np.ones(0), np.ones(2), "full", "(0,)"),
        (np.ones(2), 3.0, "full", "()"),
        (np.ones(2), np.ones(2), "most", "'most'"),
    ],
)
def test_errors(name: str, a: Any, v: Any, mode: str, text: str) -> None:
    error = same_error(getattr(jnp, name), getattr(jax_numpy, name), a, v, mode)
    assert text in str(error)

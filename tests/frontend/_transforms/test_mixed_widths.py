"""Programs with parts that run with and without 64-bit types: `enable_x64` within functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp

X = np.linspace(0.5, 1.5, 3).astype(np.float32)
MATRIX = np.eye(3) + 0.1 * np.arange(9.0).reshape(3, 3) ** 0.5
RUNS = [lambda f: f, axir.jit]

# Rules of all kinds: elementwise, reductions, indexing, contractions, loops, decompositions, calls.
FUNCTIONS = [
    lambda x: jnp.log1p(x) ** 2.5 / 3,
    lambda x: axir.nn.log_softmax(x).cumsum() * jnp.cumprod(x),
    lambda x: jnp.sort(x[jnp.array([0, 2, 0])]) + jnp.where(x > 1, x * 2, x / 3),
    lambda x: jnp.asarray(MATRIX) @ x + jnp.linalg.solve(jnp.asarray(MATRIX), x),
    lambda x: axir.lax.scan(lambda c, v: (c * v + 1.0, c), jnp.float64(1), x)[1],
    lambda x: jnp.linalg.svd(jnp.asarray(MATRIX) + jnp.outer(x, x), compute_uv=False),
    lambda x: axir.checkpoint(lambda v: v * jnp.sin(v))(x) + axir.scipy.special.digamma(x),
    lambda x: jnp.abs(jnp.fft.fft(x)) + jnp.var(x) + axir.lax.cond(x[0] > 0, jnp.sin, jnp.cos, x),
]


@pytest.mark.parametrize("run", RUNS)
def test_scalars_beside_weak_arrays_have_the_width_of_their_place(run: Any) -> None:
    def f(a: Any) -> list[Any]:
        with axir.enable_x64(True):
            return [1 + a, a - 1, a * 2, a + 2**40, jnp.add(a, 1), a * 1.5, jnp.maximum(a, 0), -a]

    made = axir.jit(f)(3) if run is axir.jit else f(jnp.asarray(3))
    dtypes = [str(x.dtype) for x in made]
    assert dtypes[:5] == ["int64"] * 5
    assert dtypes[5] == "float64"
    assert int(made[3]) == 3 + 2**40
    # Strongly typed values keep their dtype.
    assert {str(x.dtype) for x in run(f)(jnp.arange(3))[:3]} == {"int32"}
    assert {str(x.dtype) for x in run(f)(jnp.asarray(X))} == {"float32"}


def test_weak_floats_stay_beside_integers() -> None:
    def f(a: Any) -> list[Any]:
        with axir.enable_x64(True):
            return [1 + a, a * 1.5]

    assert [str(x.dtype) for x in axir.jit(f)(3.5)] == ["float32", "float64"]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_derivatives_of_parts_with_64_bit_types(function: Any) -> None:
    """Rules run outside the part, and compute in its types."""

    def total(x: Any) -> Any:
        with axir.enable_x64(True):
            y = function(x.astype("float64"))
            return jnp.sum(y * y).astype("float32")

    with axir.enable_x64(True):
        right = axir.grad(lambda x: jnp.sum(function(x) ** 2))(X.astype(np.float64))
    for gradient in (axir.grad(total), axir.jit(axir.grad(total)), axir.jacfwd(total)):
        np.testing.assert_allclose(gradient(X), right, rtol=1e-5, atol=1e-6)
    rows = axir.vmap(axir.grad(total))(np.stack([X, X]))
    np.testing.assert_allclose(rows[1], right, rtol=1e-5, atol=1e-6)

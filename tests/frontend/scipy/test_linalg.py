"""`axir.scipy.linalg` against SciPy and JAX."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
import scipy.linalg
from jax.scipy import linalg as theirs
from support.against_jax import compare, same_error

import axir
import axir.numpy as jnp
from axir.scipy import linalg

_GENERATOR = np.random.default_rng(1)


def _random(*shape: int, is_complex: bool = False) -> np.ndarray:
    x = _GENERATOR.standard_normal(shape)
    if is_complex:
        return (x + 1j * _GENERATOR.standard_normal(shape)).astype(np.complex64)
    return x.astype(np.float32)


MATRIX, TALL, RIGHT = _random(4, 4), _random(5, 3), _random(4, 2)
COMPLEX = _random(3, 3, is_complex=True)
POSITIVE = (MATRIX @ MATRIX.T + 4 * np.eye(4)).astype(np.float32)
VECTOR, LONGER = _random(3), _random(5)
FACTOR = 256.0

VALUES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    *[("cholesky", (POSITIVE,), {"lower": lower}) for lower in (False, True)],
    *[("solve", (POSITIVE, RIGHT), {"assume_a": kind}) for kind in ("gen", "sym", "her", "pos")],
    *[("solve_triangular", (MATRIX, RIGHT), {"trans": t, "lower": t != 1}) for t in (0, 1, "C")],
    ("solve_triangular", (COMPLEX, COMPLEX), {"trans": 2, "unit_diagonal": True}),
    ("inv", (MATRIX,), {}),
    ("det", (MATRIX,), {}),
    ("lu", (TALL,), {}),
    ("lu", (TALL.T,), {"permute_l": True}),
    ("lu_factor", (MATRIX,), {}),
    ("qr", (TALL,), {}),
    ("qr", (TALL,), {"mode": "economic", "pivoting": True}),
    ("qr", (COMPLEX,), {"mode": "r"}),
    ("qr_multiply", (TALL, _random(2, 5)), {}),
    ("svd", (TALL,), {"compute_uv": False}),
    ("polar", (TALL,), {"method": "svd"}),
    ("polar", (TALL,), {"method": "svd", "side": "left"}),
    ("eigh", (POSITIVE,), {"eigvals_only": True}),
    ("eigh_tridiagonal", (_random(4), _random(3)), {"eigvals_only": True}),
    ("schur", (MATRIX,), {}),
    ("schur", (MATRIX,), {"output": "complex"}),
    ("hessenberg", (MATRIX,), {"calc_q": True}),
    *[("expm", (scale * MATRIX,), {}) for scale in (0.01, 0.5, 4.0)],
    ("expm", (np.triu(MATRIX),), {"upper_triangular": True}),
    ("expm_frechet", (MATRIX, MATRIX.T), {}),
    ("sqrtm", (POSITIVE,), {}),
    ("block_diag", (RIGHT, VECTOR, np.float32(2)), {}),
    ("block_diag", (), {}),
    ("toeplitz", (VECTOR, LONGER), {}),
    ("toeplitz", (COMPLEX[0],), {}),
    ("hankel", (VECTOR, LONGER), {}),
    ("circulant", (LONGER,), {}),
    ("companion", (LONGER,), {}),
    ("fiedler", (LONGER,), {}),
    ("fiedler_companion", (LONGER,), {}),
    ("leslie", (LONGER, LONGER[1:]), {}),
    *[("convolution_matrix", (VECTOR, 5), {"mode": mode}) for mode in ("full", "same", "valid")],
    ("solve_sylvester", (MATRIX, COMPLEX.real, _random(4, 3)), {}),
    *[(name, (4,), {}) for name in ("hilbert", "invhilbert", "pascal", "helmert", "dft")],
    ("hadamard", (4,), {}),
]


@pytest.mark.parametrize("index", range(len(VALUES)))
def test_values_are_those_of_jax(index: int) -> None:
    name, args, options = VALUES[index]
    compare(getattr(linalg, name), getattr(theirs, name), *args, factor=FACTOR, **options)


@pytest.mark.parametrize("trans", [0, 1, 2])
def test_factors_solve(trans: int) -> None:
    operator = {0: COMPLEX, 1: COMPLEX.T, 2: COMPLEX.conj().T}[trans]
    x = linalg.lu_solve(linalg.lu_factor(jnp.array(COMPLEX)), jnp.array(COMPLEX), trans=trans)
    np.testing.assert_allclose(operator @ np.asarray(x), COMPLEX, atol=1e-4)


@pytest.mark.parametrize("trans", [0, 1, 2])
def test_factors_without_rows_solve(trans: int) -> None:
    factors = linalg.lu_factor(jnp.zeros((0, 0)))
    assert linalg.lu_solve(factors, jnp.zeros(0), trans=trans).shape == (0,)


@pytest.mark.parametrize("lower", [False, True])
def test_cholesky_factors_solve(lower: bool) -> None:
    factors = linalg.cho_factor(jnp.array(POSITIVE), lower=lower)
    x = linalg.cho_solve(factors, jnp.array(RIGHT))
    np.testing.assert_allclose(POSITIVE @ np.asarray(x), RIGHT, atol=1e-4)


@pytest.mark.parametrize("kind", [1, 2, 3])
def test_generalized_eigenvalues_are_scipys(kind: int) -> None:
    other = (POSITIVE + np.diag([1, 2, 3, 4])).astype(np.float32)
    values, vectors = linalg.eigh(jnp.array(POSITIVE), jnp.array(other), type=kind)
    expected = scipy.linalg.eigh(POSITIVE, other, type=kind)
    np.testing.assert_allclose(values, expected[0], rtol=1e-3)
    np.testing.assert_allclose(np.abs(vectors), np.abs(expected[1]), atol=2e-3)


def test_function_of_a_matrix() -> None:
    result = linalg.funm(jnp.array(MATRIX), jnp.exp)
    np.testing.assert_allclose(result, scipy.linalg.expm(MATRIX), atol=1e-3)


def test_complex_form_of_a_real_schur_form() -> None:
    t, z = linalg.rsf2csf(*linalg.schur(jnp.array(MATRIX)))
    np.testing.assert_array_equal(np.tril(t, -1), 0)
    np.testing.assert_allclose(z @ t @ z.conj().T, MATRIX, atol=1e-4)


def test_gradient_of_the_exponential_is_jaxs() -> None:
    compare(
        axir.grad(lambda x: linalg.expm(x).sum()),
        jax.grad(lambda x: theirs.expm(x).sum()),
        MATRIX,
        factor=8 * FACTOR,
    )


def test_exponentials_compile_and_vectorize() -> None:
    stack = jnp.stack([jnp.array(MATRIX), 3 * jnp.array(MATRIX)])
    expected = np.stack([scipy.linalg.expm(MATRIX), scipy.linalg.expm(3 * MATRIX)])
    scale = np.abs(expected).max()
    for function in (linalg.expm, axir.vmap(linalg.expm), axir.jit(linalg.expm)):
        np.testing.assert_allclose(function(stack) / scale, expected / scale, atol=1e-5)


def test_too_many_squarings_give_nan() -> None:
    assert np.isnan(linalg.expm(1e4 * jnp.eye(2), max_squarings=2)).all()


@pytest.mark.parametrize("name", ["cholesky", "inv", "expm", "schur", "sqrtm", "hessenberg"])
def test_matrices_must_be_square(name: str) -> None:
    error = same_error(getattr(linalg, name), getattr(theirs, name), TALL)
    assert "square" in str(error)


def test_options_are_checked() -> None:
    with pytest.raises(ValueError, match="'gen', 'sym', 'her' or 'pos'"):
        linalg.solve(jnp.eye(2), jnp.ones(2), assume_a="banded")
    with pytest.raises(ValueError, match="power of 2"):
        linalg.hadamard(3)
    with pytest.raises(ValueError, match="'real' or 'complex'"):
        linalg.schur(jnp.eye(2), output="block")

"""Sparse arrays in gathers, convolutions, loops and choices; eigenvalues of sparse matrices."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import lax
from axir.errors import DTypeError, ParameterError, ShapeError
from axir.experimental import sparse
from axir.experimental.sparse import BCOO, SparseRuleError, linalg

RNG = np.random.default_rng(7)


def some(*shape: int) -> np.ndarray:
    return np.where(RNG.random(shape) < 0.4, RNG.standard_normal(shape), 0).astype(np.float32)


@pytest.mark.parametrize(
    ("numbers", "starts", "sizes"),
    [
        (((1, 2), (0,), (0,)), [[2], [0], [9]], (1, 4, 2)),
        (((2, 3), (1,), (1, 0)), [[[2, 0], [1, 3]]], (2, 1, 2)),
        (((1, 2, 3), (), (0,)), [[1], [4]], (2, 4, 2)),
    ],
)
def test_gathers(numbers: tuple, starts: list, sizes: tuple) -> None:
    x = some(5, 4, 2)
    numbers = lax.GatherDimensionNumbers(*numbers)
    found = sparse.bcoo_gather(BCOO.fromdense(x), jnp.array(starts), numbers, sizes)
    want = lax.gather(x, jnp.array(starts), numbers, sizes, mode="clip")
    np.testing.assert_array_equal(found.todense(), want)
    with pytest.raises(SparseRuleError, match="mode fill"):
        sparse.bcoo_gather(BCOO.fromdense(x), jnp.array(starts), numbers, sizes, mode="fill")


def test_convolutions() -> None:
    x, kernel = some(1, 1, 9), some(1, 1, 3)
    choices = itertools.product(
        ["VALID", "SAME", [(2, 1)]], [(1,), (2,)], [None, (2,)], [None, (2,)]
    )
    for padding, strides, left, right in choices:
        options = {
            "window_strides": strides,
            "padding": padding,
            "lhs_dilation": left,
            "rhs_dilation": right,
        }
        if isinstance(padding, str) and left:
            continue  # names of paddings have no meaning then
        found = sparse.bcoo_conv_general_dilated(
            BCOO.fromdense(x), BCOO.fromdense(kernel), **options
        )
        want = lax.conv_general_dilated(x, kernel, **options)
        np.testing.assert_allclose(found.todense(), want, rtol=1e-5, atol=1e-6)
    image, patch = some(1, 6, 5, 1), some(3, 2, 1, 1)
    options = {
        "window_strides": (1, 2),
        "padding": "SAME",
        "dimension_numbers": ("NHWC", "HWIO", "NHWC"),
    }
    found = sparse.bcoo_conv_general_dilated(BCOO.fromdense(image), patch, **options)
    want = lax.conv_general_dilated(image, patch, **options)
    np.testing.assert_allclose(found.todense(), want, rtol=1e-5, atol=1e-6)
    with pytest.raises(SparseRuleError, match="several batches, features or groups"):
        sparse.bcoo_conv_general_dilated(
            BCOO.fromdense(some(2, 1, 9)), kernel, window_strides=(1,), padding="VALID"
        )


def test_sparse_arrays_in_loops_and_choices() -> None:
    x = some(4, 4)
    mat = BCOO.fromdense(x)
    v = np.ones(4, np.float32)

    def power(mat: axir.Array, v: axir.Array) -> axir.Array:
        def step(state: tuple, y: axir.Array) -> tuple:
            mat, v = state
            return (2 * mat, jnp.tanh(mat @ v) + y), v

        return lax.scan(step, (mat, v), jnp.arange(3.0))

    (last, w), seen = sparse.sparsify(power)(mat, v)
    (want_last, want_w), want_seen = power(x, v)
    assert isinstance(last, BCOO)
    np.testing.assert_allclose(last.todense(), want_last, rtol=1e-6)
    np.testing.assert_allclose(w, want_w, rtol=1e-5)
    np.testing.assert_allclose(seen, want_seen, rtol=1e-5)

    def until(mat: axir.Array, v: axir.Array) -> axir.Array:
        def step(state: tuple) -> tuple:
            return state[0] + 1, abs(mat @ state[1]) + 1

        return lax.while_loop(lambda state: state[0] < 4, step, (0, v))

    np.testing.assert_allclose(sparse.sparsify(until)(mat, v)[1], until(x, v)[1], rtol=1e-5)

    def choice(mat: axir.Array, flag: axir.Array) -> axir.Array:
        return lax.cond(flag, lambda m: m * 2, lambda m: m.T, mat)

    for flag in (True, False):
        found = axir.jit(sparse.sparsify(choice))(mat, jnp.array(flag))
        np.testing.assert_allclose(found, choice(x, flag))
    with pytest.raises(SparseRuleError, match="goes along a sparse array"):
        sparse.sparsify(lambda m: lax.scan(lambda c, r: (c, r.sum()), 0.0, m))(mat)
    with pytest.raises(SparseRuleError, match=r"(?s)carries BCOO.*x\.todense"):
        sparse.sparsify(lambda m: lax.fori_loop(0, 2, lambda i, a: a + m, m))(mat)


def test_zeros_are_eliminated() -> None:
    mat = BCOO.fromdense(jnp.array([[0.0, 1.0], [0.0, 2.0]]), nse=4)
    assert sparse.bcoo_eliminate_zeros(mat).nse == 2
    found = sparse.bcsr_eliminate_zeros(sparse.BCSR.from_bcoo(mat), nse=3)
    np.testing.assert_array_equal(found.todense(), mat.todense())


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_greatest_eigenvalues(dtype: str) -> None:
    n = 40
    a = RNG.standard_normal((n, n))
    if dtype == "complex64":
        a = a + 1j * RNG.standard_normal((n, n))
    a = (np.where(RNG.random((n, n)) < 0.3, a, 0) + np.diag(np.arange(n))).astype(dtype)
    a = a + a.conj().T
    x = RNG.standard_normal((n, 3)).astype(dtype)
    want = np.linalg.eigvalsh(a.astype(np.complex128))[::-1][:3]
    values, vectors, steps = linalg.lobpcg_standard(jnp.array(a), jnp.array(x), m=60)
    np.testing.assert_allclose(values, want, rtol=1e-4)
    np.testing.assert_allclose(a @ vectors, vectors * values, atol=3e-2)
    np.testing.assert_allclose(vectors.conj().T @ vectors, np.eye(3), atol=1e-4)
    assert 0 < steps <= 60
    if dtype == "float32":
        sparse_a = BCOO.fromdense(jnp.array(a))
        by_products = linalg.lobpcg_standard(lambda x: sparse_a @ x, jnp.array(x), m=60)
        np.testing.assert_allclose(by_products[0], want, rtol=1e-4)


def test_what_no_eigenvalues_are_found_of() -> None:
    a = jnp.eye(10)
    with pytest.raises(ParameterError, match=r"X has 2 vectors of 10 elements.*from 1 to 1"):
        linalg.lobpcg_standard(a, jnp.ones((10, 2)))
    with pytest.raises(ShapeError, match="not square"):
        linalg.lobpcg_standard(jnp.ones((3, 10)), jnp.ones((10, 1)))
    with pytest.raises(ShapeError, match="X must be a matrix"):
        linalg.lobpcg_standard(a, jnp.ones(10))
    with pytest.raises(DTypeError, match="complex64"):
        linalg.lobpcg_standard(a * 1j, jnp.ones((10, 1)))

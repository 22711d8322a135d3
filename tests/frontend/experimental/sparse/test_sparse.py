"""`axir.experimental.sparse`: sparse arrays compute what NumPy computes on dense ones."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import axir
import axir.numpy as jnp
from axir import lax
from axir.experimental import sparse
from axir.experimental.sparse import BCOO, BCSR, COO, CSC, CSR
from axir.test_util import check_grads

_GENERATOR = np.random.default_rng(0)


def _random(*shape: int) -> np.ndarray:
    x = _GENERATOR.standard_normal(shape)
    return np.where(_GENERATOR.uniform(size=shape) < 0.4, x, 0).astype(np.float32)


X, MATRIX, OTHER = _random(2, 3, 4), _random(4, 5), _random(4, 5)
LAYOUTS = [(batch, dense) for batch in range(4) for dense in range(4 - batch)]
FORMATS = (BCOO, BCSR, COO, CSR, CSC)


def _layouts(x: np.ndarray) -> list[BCOO]:
    """Makes a sparse array in all layouts, with places out of range and shared by batches."""
    mats = [
        BCOO.fromdense(x, n_batch=batch, n_dense=dense, nse=x[0].size + 2)
        for batch, dense in LAYOUTS
        if batch + dense <= x.ndim
    ]
    duplicated = BCOO.fromdense(x)
    halves = (jnp.concatenate([duplicated.data / 2] * 2), jnp.concatenate([duplicated.indices] * 2))
    return [*mats, BCOO(halves, shape=x.shape)]


@pytest.mark.parametrize("number", range(len(_layouts(X))))
def test_operations_in_each_layout(number: int) -> None:
    mat = _layouts(X)[number]
    same = [
        (lambda x: x, lambda x: x),
        (lambda x: x.transpose((0, 2, 1)), lambda x: x.transpose((0, 2, 1))),
        (lambda x: x.T, lambda x: x.T),
        (lambda x: x.sum(), np.sum),
        (lambda x: x.sum(axis=(0, 2)), lambda x: x.sum((0, 2))),
        (lambda x: x.sum(-1), lambda x: x.sum(-1)),
        (lambda x: x.reshape(2, 12), lambda x: x.reshape(2, 12)),
        (lambda x: x.reshape(3, 8), lambda x: x.reshape(3, 8)),
        (lambda x: x[1], lambda x: x[1]),
        (lambda x: x[..., 1:3], lambda x: x[..., 1:3]),
        (lambda x: x[:, ::-2, None, -1], lambda x: x[:, ::-2, None, -1]),
        (lambda x: -x * 3 / 2, lambda x: -x * 3 / 2),
        (lambda x: x * np.arange(4.0), lambda x: x * np.arange(4.0)),
        (lambda x: x + x.reshape(2, 3, 4), lambda x: 2 * x),
        (lambda x: x * (x * 2), lambda x: 2 * x * x),
        (lambda x: x - x[:1], lambda x: x - x[:1]),
        (abs, abs),
        (lambda x: x**2, lambda x: x**2),
        (lambda x: x.astype(np.int32), lambda x: x.astype(np.int32)),
        (lambda x: sparse.sparsify(jnp.sin)(x), np.sin),
        (lambda x: sparse.bcoo_sort_indices(x), lambda x: x),
        (lambda x: sparse.bcoo_sum_duplicates(x), lambda x: x),
        (lambda x: x.sum_duplicates(nse=30), lambda x: x),
        (lambda x: sparse.bcoo_update_layout(x, n_batch=0, n_dense=0), lambda x: x),
        (lambda x: x.update_layout(n_batch=1, n_dense=1, on_inefficient=None), lambda x: x),
        (
            lambda x: sparse.bcoo_dynamic_slice(x, (0, 2, jnp.int32(9)), (1, 2, 2)),
            lambda x: x[:1, 1:3, 2:4],
        ),
        (
            lambda x: sparse.bcoo_broadcast_in_dim(
                x, shape=(2, 2, 3, 5, 4), broadcast_dimensions=(1, 2, 4)
            ),
            lambda x: np.broadcast_to(x[None, :, :, None], (2, 2, 3, 5, 4)),
        ),
        (
            lambda x: sparse.bcoo_concatenate([x, x[:, :2]], dimension=1),
            lambda x: np.concatenate([x, x[:, :2]], 1),
        ),
        (
            lambda x: sparse.bcoo_concatenate([x, x], dimension=2),
            lambda x: np.concatenate([x, x], 2),
        ),
    ]
    for ours, numpys in same:
        result, expected = ours(mat), np.asarray(numpys(X))
        assert result.shape == expected.shape
        np.testing.assert_allclose(sparse.todense(result), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("number", range(len(_layouts(X))))
def test_contractions_in_each_layout(number: int) -> None:
    mat, y = _layouts(X)[number], _random(4, 3, 2)
    numbers = [
        (((2,), (0,)), ((), ())),
        (((1,), (1,)), ((), ())),
        (((2, 1), (0, 1)), ((), ())),
        (((2, 1), (0, 1)), ((0,), (2,))),
        (((1,), (1,)), ((2, 0), (0, 2))),
        (((), ()), ((), ())),
        (((0, 1, 2), (2, 1, 0)), ((), ())),
    ]
    for dimension_numbers in numbers:
        expected = lax.dot_general(X, y, dimension_numbers)
        for lhs, rhs in ((mat, y), (mat, BCOO.fromdense(y))):
            result = sparse.bcoo_dot_general(lhs, rhs, dimension_numbers=dimension_numbers)
            np.testing.assert_allclose(sparse.todense(result), expected, rtol=1e-5, atol=1e-6)
        (a, b), (c, d) = dimension_numbers
        swapped = ((b, a), (d, c))
        result = sparse.bcoo_dot_general(y, mat, dimension_numbers=swapped)
        np.testing.assert_allclose(result, lax.dot_general(y, X, swapped), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", FORMATS)
def test_matrices_in_all_formats(kind: Any) -> None:
    mat = kind.fromdense(MATRIX)
    v, w = _random(5), _random(4, 2)
    np.testing.assert_array_equal(mat.todense(), MATRIX)
    np.testing.assert_array_equal(mat.T.todense(), MATRIX.T)
    for ours, expected in (
        (mat @ v, MATRIX @ v),
        (mat.T @ jnp.array(w), MATRIX.T @ w),
        (w.T @ mat, w.T @ MATRIX),
        (jnp.array(w).T @ mat, w.T @ MATRIX),
        ((mat @ mat.T).todense(), MATRIX @ MATRIX.T),
        ((mat + mat).todense(), 2 * MATRIX),
        (mat + OTHER, MATRIX + OTHER),
        (1.0 + mat, 1 + MATRIX),
        ((OTHER * mat).todense(), OTHER * MATRIX),
        (mat.sum(0).todense(), MATRIX.sum(0)),
        (mat[1:3].todense(), MATRIX[1:3]),
    ):
        np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-6)
    assert (mat.nse, mat.ndim, mat.size, len(mat)) == (np.count_nonzero(MATRIX), 2, 20, 4)
    assert repr(mat) == f"{kind.__name__}(float32[4, 5], nse={mat.nse})"
    if kind is not CSC:
        theirs = scipy.sparse.csr_matrix(MATRIX)
        np.testing.assert_array_equal(kind.from_scipy_sparse(theirs).todense(), MATRIX)


def test_compiled_with_derivatives() -> None:
    v = _random(5)

    def loss(mat: Any, v: Any) -> Any:
        return ((mat @ v) ** 2).sum() + (mat.T @ (mat @ v)).sum()

    def dense_loss(mat: Any, v: Any) -> Any:
        return loss(mat, v)

    expected = axir.grad(dense_loss, argnums=(0, 1))(jnp.array(MATRIX), v)
    for kind in (BCOO, BCSR, CSR):
        mat = kind.fromdense(MATRIX)
        gradient = axir.jit(sparse.grad(loss, argnums=(0, 1)))(mat, v)
        assert type(gradient[0]) is kind
        kept = np.where(MATRIX != 0, expected[0], 0)
        np.testing.assert_allclose(gradient[0].todense(), kept, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(gradient[1], expected[1], rtol=1e-4, atol=1e-5)
    value, aux = sparse.value_and_grad(lambda m: (loss(m, v), 7), has_aux=True)(mat)[0]
    np.testing.assert_allclose(value, loss(jnp.array(MATRIX), v), rtol=1e-5)
    assert aux == 7
    assert sparse.grad(lambda m: (loss(m, v), 7), has_aux=True)(mat)[1] == 7


def test_jacobians_store_the_places_of_the_argument() -> None:
    mat, v = BCOO.fromdense(MATRIX), _random(5)
    expected = np.einsum("ij,k->ijk", np.eye(4), v) * (MATRIX != 0)
    for transform in (sparse.jacfwd, sparse.jacrev, sparse.jacobian):
        result = transform(lambda m: m @ v)(mat)
        np.testing.assert_allclose(result.todense(), expected, rtol=1e-6)
    both = sparse.jacrev(lambda m, v: {"a": m @ v}, argnums=(0, 1))(mat, v)["a"]
    np.testing.assert_allclose(both[0].todense(), expected, rtol=1e-6)
    np.testing.assert_allclose(both[1], MATRIX, rtol=1e-6)


def test_batches_are_mapped() -> None:
    mat = BCOO.fromdense(X, n_batch=1)
    y = _random(2, 4)
    result = axir.jit(axir.vmap(lambda data, indices, v: BCOO((data, indices), shape=(3, 4)) @ v))(
        mat.data, mat.indices, y
    )
    np.testing.assert_allclose(result, np.einsum("bij,bj->bi", X, y), rtol=1e-5, atol=1e-6)
    made = axir.vmap(lambda x: BCOO.fromdense(x, nse=12))(X)
    np.testing.assert_array_equal(BCOO((made.data, made.indices), shape=X.shape).todense(), X)
    rows = BCSR.fromdense(X, n_batch=1)
    np.testing.assert_array_equal(rows.todense(), X)


def test_functions_are_made_sparse() -> None:
    mat = BCOO.fromdense(MATRIX)

    @axir.jit
    def layer(x: Any, v: Any) -> Any:
        hidden = jnp.tanh(2 * x) @ v
        return {"out": jnp.concatenate([hidden, hidden]), "same": x.T}

    result = sparse.sparsify(layer)(mat, jnp.ones(5))
    np.testing.assert_allclose(result["out"][:4], np.tanh(2 * MATRIX).sum(1), rtol=1e-5)
    np.testing.assert_array_equal(result["same"].todense(), MATRIX.T)
    assert sparse.sparsify(jnp.sum)(jnp.ones(3)) == 3
    total = sparse.sparsify(lambda x, axis: jnp.sum(x, axis=axis))(mat, 1)
    np.testing.assert_allclose(total.todense(), MATRIX.sum(1), rtol=1e-5)
    compiled = axir.jit(sparse.sparsify(lambda x, v: (x * 2) @ v))(mat, jnp.ones(5))
    np.testing.assert_allclose(compiled, 2 * MATRIX.sum(1), rtol=1e-5)


def test_places_out_of_range_hold_nothing() -> None:
    indices = jnp.array([[0, 0], [2, 0], [0, -1], [1, 7]])
    mat = BCOO((jnp.arange(1.0, 5.0), indices), shape=(2, 3))
    expected = np.array([[1.0, 0, 0], [0, 0, 0]])
    for x in (mat, mat.sort_indices(), mat.sum_duplicates(), BCSR.from_bcoo(mat)):
        np.testing.assert_array_equal(x.todense(), expected)
        np.testing.assert_array_equal(x @ jnp.ones(3), [1, 0])
        np.testing.assert_array_equal(x.sum(0).todense(), [1, 0, 0])
        np.testing.assert_array_equal(x.T.todense(), expected.T)
        np.testing.assert_array_equal(x.reshape(6).todense(), expected.ravel())
        np.testing.assert_array_equal((x @ x.T).todense(), expected @ expected.T)
        np.testing.assert_array_equal(x[:, 0].todense(), [1, 0])
        np.testing.assert_array_equal(x[::-1].todense(), expected[::-1])
    assert mat.sum_duplicates().nse == 1


def test_elements_at_places() -> None:
    mat = BCOO.fromdense(MATRIX)
    np.testing.assert_array_equal(
        sparse.bcoo_extract(mat, OTHER).todense(), np.where(MATRIX != 0, OTHER, 0)
    )
    a, b = _random(4, 3), _random(3, 5)
    sampled = sparse.bcoo_dot_general_sampled(
        a, b, mat.indices, dimension_numbers=(((1,), (0,)), ((), ()))
    )
    np.testing.assert_allclose(sampled, (a @ b)[MATRIX != 0], rtol=1e-5, atol=1e-6)
    rows = BCSR.fromdense(MATRIX)
    np.testing.assert_array_equal(
        sparse.bcsr_extract(rows.indices, rows.indptr, OTHER), OTHER[MATRIX != 0]
    )


def test_arrays_are_made() -> None:
    for name, kind in zip(("bcoo", "bcsr", "coo", "csr", "csc"), FORMATS, strict=True):
        zeros = sparse.empty((3, 4), sparse_format=name)
        assert type(zeros) is kind
        np.testing.assert_array_equal(zeros.todense(), np.zeros((3, 4)))
        for k in (-5, -1, 0, 2):
            identity = sparse.eye(3, 4, k, sparse_format=name)
            np.testing.assert_array_equal(identity.todense(), np.eye(3, 4, k))
    for batch, dense in itertools.product(range(2), range(2)):
        made = sparse.random_bcoo(
            axir.random.key(0), (3, 4, 5), nse=0.5, n_batch=batch, n_dense=dense
        )
        assert (made.n_batch, made.n_dense) == (batch, dense)
        share = np.count_nonzero(made.todense()) / 60
        assert 0.4 < share < 0.65
    np.testing.assert_array_equal(
        sparse.eye(3, n_batch=1).todense(), sparse.empty((3, 3)).todense() + np.eye(3)
    )


def test_solvers_take_sparse_matrices() -> None:
    dense = np.eye(4, dtype=np.float32) * 4 + MATRIX @ MATRIX.T
    mat = BCOO.fromdense(dense)
    for method in (axir.scipy.sparse.linalg.cg, axir.scipy.sparse.linalg.gmres):
        x, info = method(mat, jnp.ones(4))
        assert info == 0
        np.testing.assert_allclose(dense @ x, 1, rtol=1e-4)


def test_equations_are_solved_by_factors() -> None:
    dense = 4 * np.eye(4, dtype=np.float32) + MATRIX[:, :4]
    mat, b = CSR.fromdense(dense), np.arange(4, dtype=np.float32)

    def solve(data: Any, b: Any) -> Any:
        return sparse.linalg.spsolve(data, mat.indices, mat.indptr, b)

    np.testing.assert_allclose(solve(mat.data, b), np.linalg.solve(dense, b), rtol=1e-4)
    check_grads(solve, (mat.data, jnp.array(b)), order=1, rtol=1e-2, atol=1e-2)
    batch = axir.vmap(lambda b: solve(mat.data, b))(np.eye(4, dtype=np.float32))
    np.testing.assert_allclose(batch.T, np.linalg.inv(dense), rtol=1e-3, atol=1e-5)
    singular = solve(0 * mat.data, b)
    assert not np.isfinite(singular).any()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: BCOO((jnp.ones(3), jnp.ones((2, 1), int)), shape=(4,)),
            "SparseLayoutError",
            "data has the shape",
        ),
        (
            lambda: BCOO((jnp.ones(3), jnp.ones((3, 1))), shape=(4,)),
            "SparseLayoutError",
            "not integers",
        ),
        (
            lambda: CSR((jnp.ones(1), jnp.ones(1, int), jnp.zeros(3, int)), shape=(3, 3)),
            "SparseLayoutError",
            "indptr of type",
        ),
        (
            lambda: BCSR((jnp.ones(1), jnp.ones(1, int), jnp.zeros(3, int)), shape=(3, 3)),
            "SparseLayoutError",
            "rows + 1",
        ),
        (
            lambda: sparse.linalg.spsolve(jnp.ones(1), [0], [0, 1], jnp.ones(2)),
            "MatrixShapeError",
            "1 rows",
        ),
        (lambda: COO.fromdense(jnp.ones(3)), "SparseLayoutError", "is no matrix"),
        (lambda: BCOO.fromdense(MATRIX) @ jnp.ones(4), "ShapeError", "(4, 5)"),
        (
            lambda: sparse.sparsify(jnp.exp)(BCOO.fromdense(MATRIX)),
            "SparseRuleError",
            "operation exp has no rule",
        ),
        (lambda: 1.0 / BCOO.fromdense(MATRIX), "TypeError", "unsupported operand"),
        (
            lambda: sparse.sparsify(jnp.divide)(1.0, BCOO.fromdense(MATRIX)),
            "SparseRuleError",
            "divides by its zeros",
        ),
        (lambda: BCOO.fromdense(MATRIX) ** -1, "SparseRuleError", "todense"),
        (lambda: BCOO.fromdense(MATRIX)[[1, 2]], "ParameterError", "bcoo_dynamic_slice"),
        (lambda: BCOO.fromdense(MATRIX)[7], "OutOfBoundsError", "index 7"),
        (
            lambda: BCOO.fromdense(MATRIX).update_layout(n_batch=1),
            "SparseEfficiencyError",
            "on_inefficient=None",
        ),
        (lambda: sparse.empty((2, 2), sparse_format="x"), "ParameterError", "formats are"),
        (
            lambda: sparse.random_bcoo(axir.random.key(0), (2, 2), nse=5),
            "ParameterError",
            "of 4 places",
        ),
        (
            lambda: BCOO.fromdense(MATRIX).reshape(3, 3),
            "ShapeError",
            "3",
        ),
    ],
)
def test_errors(call: Callable[[], Any], error: str, text: str) -> None:
    with pytest.raises((axir.errors.AxirError, TypeError)) as caught:
        call()
    names = [kind.__name__ for kind in type(caught.value).__mro__]
    assert error in names, names
    assert text in str(caught.value)


def test_an_inefficient_layout_is_told() -> None:
    mat = BCOO.fromdense(MATRIX)
    with pytest.warns(sparse.SparseEfficiencyWarning, match="more elements are stored"):
        mat.update_layout(n_dense=1, on_inefficient="warn")

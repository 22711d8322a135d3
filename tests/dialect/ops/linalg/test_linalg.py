"""Decompositions: portable algorithms against LAPACK, derivatives of solutions, errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from support.op_programs import Programs

import axir
from axir.dialect.core.array import as_array
from axir.dialect.core.config import config
from axir.dialect.core.errors import (
    DTypeError,
    HostCallNeededError,
    ParameterError,
    ShapeError,
    UnsupportedRuleError,
)
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops import OPS
from axir.dialect.ops.linalg import blocked, householder, jacobi
from axir.dialect.ops.linalg.cholesky import cholesky
from axir.dialect.ops.linalg.eig import eig
from axir.dialect.ops.linalg.eigh import eigh
from axir.dialect.ops.linalg.lu import lu, lu_pivots_to_permutation
from axir.dialect.ops.linalg.lu_solve import solve
from axir.dialect.ops.linalg.qr import householder_product, qr
from axir.dialect.ops.linalg.schur import hessenberg, schur, tridiagonal
from axir.dialect.ops.linalg.svd import svd
from axir.dialect.ops.linalg.triangular_solve import triangular_solve
from axir.dialect.ops.linalg.tridiagonal_solve import tridiagonal_solve
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function
from axir.passes.transforms.lower_to_stablehlo import lower_functions

_DTYPES = ("float32", "float64", "complex64", "complex128")


@pytest.fixture(autouse=True)
def all_dtypes() -> Iterator[None]:
    with config(jax_enable_x64=True):
        yield


def _random(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    x = generator.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * generator.standard_normal(shape)
    return x.astype(dtype)


def _positive(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    x = _random(shape, dtype)
    return (x @ _adjoint(x) + shape[-1] * np.eye(shape[-1])).astype(dtype)


def _adjoint(x: np.ndarray) -> np.ndarray:
    return np.swapaxes(x.conj(), -1, -2)


def _assert_close(got: Any, want: np.ndarray, factor: float = 200.0) -> None:
    want = np.asarray(want)
    got = np.asarray(got.host() if hasattr(got, "host") else got)
    assert got.shape == want.shape
    scale = max(1.0, float(np.abs(want).max(initial=0.0)))
    tolerance = factor * float(np.finfo(want.dtype).eps) * scale
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance)


# The portable algorithms, by the evaluator of their elementary ops ------------------------------


@pytest.mark.parametrize("dtype", _DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (2, 3, 3), (40, 40)])
def test_portable_cholesky_is_lapacks(shape: tuple[int, ...], dtype: str) -> None:
    x = _positive(shape, dtype)
    _assert_close(blocked.factor_cholesky(as_array(x)), np.linalg.cholesky(x))


@pytest.mark.parametrize("dtype", _DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (5, 3), (40, 38)])
def test_portable_lu_and_qr_are_lapacks(shape: tuple[int, ...], dtype: str) -> None:
    x = _random(shape, dtype)
    factors, pivots, permutation = blocked.factor_lu(as_array(x))
    getrf = scipy.linalg.get_lapack_funcs("getrf", (x,))
    want, want_pivots, _ = getrf(x)
    _assert_close(factors, want)
    np.testing.assert_array_equal(pivots.host(), want_pivots)
    lower = np.tril(want, -1)[:, : min(shape)] + np.eye(shape[0], min(shape))
    _assert_close(x[permutation.host()], (lower @ np.triu(want)[: min(shape)]).astype(dtype))
    for full_matrices in (False, True):
        got = householder.orthonormal_and_triangle(as_array(x), full_matrices=full_matrices)
        mode = "complete" if full_matrices else "reduced"
        for factor, expected in zip(got, np.linalg.qr(x, mode), strict=True):
            _assert_close(factor, expected)


@pytest.mark.parametrize("dtype", _DTYPES)
@pytest.mark.parametrize("size", [1, 2, 7])
def test_portable_eigenvalues_are_lapacks(size: int, dtype: str) -> None:
    x = _positive((2, size, size), dtype)
    vectors, values = (r.host() for r in jacobi.eigenvectors(as_array(x), lower=True))
    _assert_close(values, np.linalg.eigvalsh(x))
    _assert_close((vectors * values[:, None, :]) @ _adjoint(vectors), x)
    _assert_close(_adjoint(vectors) @ vectors, np.stack([np.eye(size, dtype=dtype)] * 2))


@pytest.mark.parametrize("dtype", _DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (4, 2), (2, 4), (6, 5)])
def test_portable_singular_values_are_lapacks(shape: tuple[int, ...], dtype: str) -> None:
    x = _random(shape, dtype)
    size = min(shape)
    results = jacobi.singular_vectors(as_array(x), full_matrices=True, compute_uv=True)
    values, left, right = (r.host() for r in results)
    _assert_close(values, np.linalg.svd(x, compute_uv=False))
    _assert_close((left[:, :size] * values) @ right[:size], x)
    _assert_close(_adjoint(left) @ left, np.eye(shape[0], dtype=dtype))
    _assert_close(right @ _adjoint(right), np.eye(shape[1], dtype=dtype))


def test_portable_svd_completes_the_vectors_of_deficient_matrices() -> None:
    x = np.outer([1.0, 2.0, 3.0, 4.0], [1.0, -1.0, 2.0])
    results = jacobi.singular_vectors(as_array(x), full_matrices=True, compute_uv=True)
    values, left, right = (r.host() for r in results)
    assert np.sum(values > 1e-12) == 1
    _assert_close((left[:, :3] * values) @ right, x)
    _assert_close(left.T @ left, np.eye(4))
    _assert_close(right @ right.T, np.eye(3))


# Compiled without this process -----------------------------------------------------------------


def _traced(function: Callable[..., Any], *args: np.ndarray) -> Function:
    return trace_function(function, [ShapedArray(x.shape, x.dtype) for x in args], name="main")


def test_exported_solve_by_cholesky_needs_no_host() -> None:
    a, b = _positive((36, 36), "float32"), _random((36, 2), "float32")

    def program(a: Any, b: Any) -> list[Any]:
        factor = cholesky(a)
        y = triangular_solve(factor, b, left_side=True, lower=True)
        return [triangular_solve(factor, y, left_side=True, lower=True, transpose_a=True)]

    function = _traced(program, a, b)
    module = str(lower_functions({"main": function}))
    assert "custom_call" not in module
    assert "callback" not in module
    programs = Programs({"main": function}, with_host_calls=False)
    assert not programs.failures
    _assert_close(programs("main", a, b)[0], np.linalg.solve(a, b), factor=1000.0)


def test_portable_program_does_not_grow_with_the_matrix() -> None:
    functions = [_traced(lambda x: [lu(x)[0]], np.zeros((n, n), np.float32)) for n in (64, 640)]
    small, large = (len(str(lower_functions({"main": f}))) for f in functions)
    assert large < 1.1 * small


@pytest.mark.parametrize("decompose", [eig, schur, hessenberg, tridiagonal])
def test_lapack_only_ops_cannot_be_exported(decompose: Callable[..., Any]) -> None:
    function = _traced(lambda x: list(decompose(x)), _positive((3, 3), "float32"))
    with pytest.raises(HostCallNeededError, match="LAPACK in the calling process"):
        lower_functions({"main": function})


# Values at the edge ----------------------------------------------------------------------------


def test_cholesky_of_one_indefinite_matrix_of_a_stack_is_nan_there_only() -> None:
    good, bad = 4 * np.eye(2), np.array([[1.0, 2.0], [2.0, 1.0]])
    result = cholesky(as_array(np.stack([good, bad]))).host()
    np.testing.assert_array_equal(result[0], 2 * np.eye(2))
    np.testing.assert_array_equal(result[1], [[np.nan, 0], [np.nan, np.nan]])


def test_lu_of_a_singular_matrix_has_a_zero_on_the_diagonal() -> None:
    x = np.array([[1.0, 2.0], [2.0, 4.0]])
    assert lu(as_array(x))[0].host()[1, 1] == 0


def test_nan_gives_nan() -> None:
    x = as_array(np.full((2, 2), np.nan))
    assert np.isnan(eigh(x)[1].host()).all()
    assert np.isnan(svd(x, compute_uv=False).host()).all()
    assert np.isnan(eig(x)[0].host()).all()


def test_left_and_right_eigenvectors() -> None:
    x = _random((4, 4), "float64")
    values, left, right = (r.host() for r in eig(as_array(x)))
    _assert_close(x @ right, right * values, factor=1000.0)
    _assert_close(_adjoint(left) @ x, values[:, None] * _adjoint(left), factor=1000.0)


def test_schur_hessenberg_and_tridiagonal_reduce() -> None:
    x = _random((4, 4), "complex128")
    t, z = (r.host() for r in schur(as_array(x)))
    _assert_close(z @ t @ _adjoint(z), x)
    np.testing.assert_array_equal(np.tril(t, -1), 0)
    packed, _ = hessenberg(as_array(x))
    h = np.triu(packed.host(), -1)
    _assert_close(np.abs(h), np.abs(scipy.linalg.hessenberg(x)))
    symmetric = _positive((5, 5), "float64")
    _, main, other, _ = (r.host() for r in tridiagonal(as_array(symmetric)))
    dense = np.diag(main) + np.diag(other, 1) + np.diag(other, -1)
    _assert_close(np.linalg.eigvalsh(dense), np.linalg.eigvalsh(symmetric))


def test_pivots_that_are_no_rows_exchange_nothing() -> None:
    for pivots in ([4000, -3000, 2], [-1, 2, 4]):
        given = np.array(pivots, np.int32)
        eager = lu_pivots_to_permutation(as_array(given), 4)
        compiled = axir.jit(lambda x: lu_pivots_to_permutation(x, 4))(given)
        np.testing.assert_array_equal(eager, [0, *([1, 2] if pivots[1] < 0 else [2, 1]), 3])
        np.testing.assert_array_equal(compiled, eager)


def test_permutation_is_what_the_pivots_do() -> None:
    rows = list(range(5))
    for first, second in enumerate([3, 1, 4]):
        rows[first], rows[second] = rows[second], rows[first]
    result = lu_pivots_to_permutation(as_array(np.array([3, 1, 4], np.int32)), 5)
    assert result.host().tolist() == rows


# Errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [cholesky, eigh, eig, schur, hessenberg, tridiagonal])
def test_square_matrices_are_asked_for(function: Callable[..., Any]) -> None:
    with pytest.raises(ShapeError, match="requires square matrices.*2 by 3"):
        function(np.ones((2, 3), np.float32))


@pytest.mark.parametrize("function", [cholesky, lu, qr, eigh, svd, eig, schur])
def test_integers_are_rejected(function: Callable[..., Any]) -> None:
    with pytest.raises(DTypeError, match="does not accept int32"):
        function(np.ones((2, 2), np.int32))


@pytest.mark.parametrize("function", [lu, qr, svd])
def test_vectors_are_rejected(function: Callable[..., Any]) -> None:
    with pytest.raises(ShapeError, match="requires a matrix or a stack of matrices"):
        function(np.ones(3, np.float32))


def test_shapes_that_do_not_fit() -> None:
    x = np.eye(2, dtype=np.float32)
    with pytest.raises(ShapeError, match=r"does not fit a of shape \(2, 2\)"):
        triangular_solve(x, np.ones((3, 2), np.float32), left_side=True)
    with pytest.raises(ShapeError, match="m >= n"):
        householder_product(np.ones((2, 3), np.float32), np.ones(2, np.float32))
    with pytest.raises(ShapeError, match="three diagonals"):
        tridiagonal_solve(x[0], x[0], x[0], np.ones((3, 1), np.float32))
    with pytest.raises(ParameterError, match="less than the number of pivots"):
        lu_pivots_to_permutation(np.zeros(3, np.int32), 2)
    with pytest.raises(ParameterError, match="Slice the results"):
        eigh(x, subset_by_index=(0, 1))


def test_undetermined_vectors_have_no_derivative() -> None:
    from axir.dialect.program.derived_functions import derive

    params = {"full_matrices": True, "compute_uv": True}
    function = _traced(lambda x: OPS["svd"].bind(x, **params), _random((3, 2), "float32"))
    with pytest.raises(UnsupportedRuleError, match="full_matrices=False"):
        derive(function, "jvp", (True,))


# Solutions -------------------------------------------------------------------------------------


def test_solution_of_a_stack_of_equations() -> None:
    a, b = _random((3, 4, 4), "complex128"), _random((3, 4, 2), "complex128")
    _assert_close(solve(as_array(a), as_array(b)), np.linalg.solve(a, b), factor=1000.0)

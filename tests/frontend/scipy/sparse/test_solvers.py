"""`axir.scipy.sparse.linalg` against solutions by NumPy, eager and compiled, with derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir.scipy.sparse import linalg
from axir.test_util import check_grads

SIZE = 12
TOLERANCE = 1e-6
METHODS = {
    "cg": {},
    "bicgstab": {},
    "gmres": {},
    "gmres incremental": {"solve_method": "incremental"},
    "gmres restarted": {"restart": 5},
}


def _systems(is_complex: bool, dtype: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Makes a matrix that is Hermitian and positive definite, one that is not, and a vector."""
    generator = np.random.default_rng(3)
    parts = generator.standard_normal((2, SIZE + 1, SIZE))
    x = parts[0] + 1j * parts[1] if is_complex else parts[0]
    m, b = x[:-1], x[-1]
    dtype = np.result_type(dtype, np.complex64) if is_complex else dtype
    identity = SIZE * np.eye(SIZE)
    return tuple(a.astype(dtype) for a in (m @ m.conj().T + identity, m + identity, b))


def _solver(name: str, **options: Any) -> Callable[..., Any]:
    method = getattr(linalg, name.split()[0])
    return lambda a, b: method(a, b, tol=TOLERANCE, **METHODS[name], **options)


@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("name", METHODS)
def test_solutions(name: str, is_complex: bool) -> None:
    for bits in (32, 64):
        with axir.enable_x64(bits == 64):
            hermitian, general, b = _systems(is_complex, f"float{bits}")
            a = hermitian if name == "cg" else general
            inverse = np.diag(1 / np.diag(a))
            for M in (None, inverse):
                x, info = _solver(name, M=M)(a, b)
                assert x.dtype == b.dtype
                assert info == 0
                np.testing.assert_allclose(x, np.linalg.solve(a, b), atol=2e-6, rtol=1e-4)


@pytest.mark.parametrize("is_complex", [False, True])
def test_compiled_solutions(is_complex: bool) -> None:
    hermitian, general, b = _systems(is_complex, "float32")

    @axir.jit
    def solve(hermitian: Any, general: Any, b: Any) -> list[Any]:
        return [
            _solver(name)(hermitian if name == "cg" else general, b)
            for name in (("cg",) if is_complex else ("cg", "bicgstab", "gmres incremental"))
        ]

    for (x, info), a in zip(
        solve(hermitian, general, b), (hermitian, general, general), strict=False
    ):
        assert info == 0
        np.testing.assert_allclose(x, np.linalg.solve(a, b), atol=2e-6, rtol=1e-4)


@pytest.mark.parametrize("name", ["cg", "bicgstab", "gmres"])
def test_derivatives(name: str) -> None:
    with axir.enable_x64(True):
        _, general, b = _systems(False, np.float64)
        a, b = general[:3, :3], b[:3]
        solve = linalg.cg if name == "cg" else getattr(linalg, name.split()[0])
        options = {**METHODS[name], "tol": 1e-12}
        product = (lambda a: a @ a.T) if name == "cg" else (lambda a: a)
        check_grads(lambda a, b: solve(product(a), b, **options)[0], (a, b), order=1, rtol=1e-4)


def test_batches() -> None:
    hermitian, _, b = _systems(False, np.float32)
    right = np.stack([b, b[::-1], 0 * b])
    x, info = axir.vmap(lambda b: linalg.cg(hermitian, b, tol=1e-6))(right)
    np.testing.assert_allclose(x, np.linalg.solve(hermitian, right.T).T, atol=1e-5)
    np.testing.assert_array_equal(info, 0)


@pytest.mark.parametrize("name", METHODS)
def test_trees_and_starting_points(name: str) -> None:
    method = getattr(linalg, name.split()[0])
    b = {"matrix": jnp.ones((2, 3)), "number": 3.0}

    def multiply(x: Any) -> Any:
        total = x["number"] + x["matrix"].sum()
        return {"matrix": 5 * x["matrix"] + total, "number": 7 * x["number"] + total}

    start = axir.tree.map(lambda leaf: leaf + 1, b)
    x, info = method(multiply, b, start, M=lambda v: axir.tree.map(lambda a: a / 5, v))
    assert info == 0
    back = multiply(x)
    np.testing.assert_allclose(back["matrix"], 1, rtol=1e-4)
    np.testing.assert_allclose(back["number"], 3, rtol=1e-4)


def test_a_start_at_the_solution_takes_no_pass() -> None:
    hermitian, _, b = _systems(False, np.float32)
    x = np.linalg.solve(hermitian, b)
    for method in (linalg.cg, linalg.bicgstab, linalg.gmres):
        found, info = method(hermitian, b, x, maxiter=0, atol=1e-3)
        np.testing.assert_array_equal(found, x)
        assert info == 0


def test_what_did_not_converge_says_so() -> None:
    hermitian, _, b = _systems(False, np.float32)
    assert linalg.cg(hermitian, b, maxiter=2)[1] == 2
    assert linalg.bicgstab(hermitian, b, maxiter=1)[1] == 1
    assert linalg.gmres(hermitian, b, maxiter=1, restart=2)[1] == 1
    zeros = jnp.zeros((3, 3))
    assert linalg.cg(zeros, jnp.ones(3))[1] == -1
    assert linalg.bicgstab(zeros, jnp.ones(3))[1] == -1
    x, info = linalg.gmres(zeros, jnp.ones(3))
    assert info == 1
    np.testing.assert_array_equal(x, 0)
    turn = jnp.array([[0.0, 1.0], [-1.0, 0.0]])
    assert linalg.bicgstab(turn, jnp.ones(2))[1] < 0


def test_a_weak_right_hand_side_stays_weak() -> None:
    assert linalg.bicgstab(lambda x: x, 1.0)[0].weak_type


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: linalg.cg(jnp.ones((2, 3)), jnp.ones(3)), "MatrixShapeError", "A must be a sq"),
        (lambda: linalg.cg(3, jnp.ones(3)), "NonArrayArgumentError", "A is of type 'int'"),
        (lambda: linalg.gmres(abs, [1.0], (1.0,)), "TreeError", "x0 has structure"),
        (lambda: linalg.gmres(abs, jnp.ones(2), jnp.ones(3)), "ShapeError", "of shape (2,)"),
        (lambda: linalg.gmres(abs, 1.0, solve_method="x"), "ParameterError", "'incremental'"),
        (lambda: linalg.gmres(abs, 1.0, restart=0), "ParameterError", "at least 1"),
        (lambda: linalg.bicgstab(lambda x: x[:1], jnp.ones(2)), "CustomRuleError", "square"),
    ],
)
def test_errors(call: Callable[[], Any], error: str, text: str) -> None:
    with pytest.raises(axir.errors.AxirError) as caught:
        call()
    assert type(caught.value).__name__ == error
    assert text in str(caught.value)


def test_sparse_arrays_of_scipy_are_not_taken() -> None:
    scipy_sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(axir.errors.NonArrayArgumentError, match=r"BCOO\.from_scipy_sparse"):
        linalg.cg(scipy_sparse.eye(3), jnp.ones(3))

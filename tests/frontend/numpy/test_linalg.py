"""`axir.numpy.linalg` against JAX's: values, gradients, vmap, jit and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from jax.numpy import linalg as theirs
from support.against_jax import compare, same_error

import axir
import axir.numpy as jnp
from axir.numpy import linalg

_GENERATOR = np.random.default_rng(0)


def _random(*shape: int, is_complex: bool = False) -> np.ndarray:
    x = _GENERATOR.standard_normal(shape)
    if is_complex:
        return (x + 1j * _GENERATOR.standard_normal(shape)).astype(np.complex64)
    return x.astype(np.float32)


def _positive(*shape: int, is_complex: bool = False) -> np.ndarray:
    x = _random(*shape, is_complex=is_complex)
    return (x @ np.swapaxes(x.conj(), -1, -2) + shape[-1] * np.eye(shape[-1])).astype(x.dtype)


MATRIX, TALL, WIDE = _random(4, 4), _random(5, 3), _random(3, 5)
STACK, COMPLEX = _random(2, 3, 3), _random(3, 3, is_complex=True)
POSITIVE, HERMITIAN = _positive(3, 3), _positive(2, 3, 3, is_complex=True)
INTEGERS = np.array([[2, 1], [1, 3]])
FACTOR = 256.0

VALUES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("cholesky", (POSITIVE,), {}),
    ("cholesky", (HERMITIAN,), {"upper": True}),
    ("cholesky", (POSITIVE + MATRIX[:3, :3],), {"upper": True, "symmetrize_input": False}),
    *[(name, (x,), {}) for name in ("det", "inv", "slogdet") for x in (MATRIX, STACK, COMPLEX)],
    *[("det", (_random(n, n),), {}) for n in (1, 2, 3, 5)],
    ("solve", (MATRIX, _random(4)), {}),
    ("solve", (MATRIX, _random(3, 4, 2)), {}),
    ("solve", (STACK, _random(3, 2)), {}),
    ("eigvalsh", (HERMITIAN,), {}),
    ("eigvalsh", (MATRIX,), {"UPLO": "U", "symmetrize_input": False}),
    *[(name, (x,), {}) for name in ("svdvals", "pinv") for x in (TALL, WIDE, STACK)],
    *[("matrix_rank", (x,), {}) for x in (TALL, WIDE, STACK)],
    ("svd", (-POSITIVE,), {"hermitian": True, "compute_uv": False}),
    ("qr", (TALL,), {}),
    ("qr", (WIDE,), {"mode": "r"}),
    ("qr", (COMPLEX,), {"mode": "complete"}),
    *[("qr", (x,), {"mode": "raw"}) for x in (TALL, WIDE, COMPLEX)],
    ("lstsq", (TALL, _random(5, 2)), {}),
    ("lstsq", (WIDE, _random(3, 2)), {"numpy_resid": True}),
    ("lstsq", (TALL, _random(5)), {"numpy_resid": True}),
    *[("matrix_power", (STACK, n), {}) for n in (0, 1, 5, -2)],
    *[("norm", (TALL,), {"ord": o, "axis": (0, 1)}) for o in ("fro", "nuc", 1, -1, 2, -2, np.inf)],
    *[("norm", (TALL,), {"ord": o, "axis": 1}) for o in (None, 0, 1, 2, 3.5, np.inf, -np.inf)],
    ("norm", (STACK,), {"keepdims": True}),
    ("matrix_norm", (STACK,), {"ord": "nuc", "keepdims": True}),
    ("vector_norm", (STACK,), {"axis": (0, 2), "ord": 1}),
    *[("cond", (MATRIX,), {"p": p}) for p in (None, 2, -2, 1, "fro", np.inf)],
    ("multi_dot", ([TALL, WIDE, TALL, _random(3)],), {}),
    ("tensorinv", (_random(2, 3, 6),), {}),
    ("tensorsolve", (_random(2, 6, 3), _random(2, 3)), {"axes": (1,)}),
    ("cross", (TALL, TALL[::-1].copy()), {}),
    ("outer", (TALL[0], WIDE[0]), {}),
    ("trace", (STACK,), {"offset": 1}),
    ("diagonal", (STACK,), {"offset": -1}),
    ("matrix_transpose", (STACK,), {}),
    ("vecdot", (COMPLEX, COMPLEX), {}),
    ("matmul", (STACK, STACK), {}),
    ("tensordot", (TALL, WIDE), {"axes": 1}),
    *[(name, (INTEGERS,), {}) for name in ("inv", "det", "cholesky", "norm", "eigvalsh")],
]


@pytest.mark.parametrize("index", range(len(VALUES)))
def test_values_are_those_of_jax(index: int) -> None:
    name, args, options = VALUES[index]
    compare(getattr(linalg, name), getattr(theirs, name), *args, factor=FACTOR, **options)


def _rebuilt(library: Any, name: str) -> Callable[[Any], Any]:
    """A function of a decomposition that does not depend on the signs of vectors."""

    def eigh(x: Any) -> Any:
        values, vectors = library.linalg.eigh(x)
        squares = vectors * library.exp(-values)[..., None, :]
        return squares @ library.conj(library.swapaxes(vectors, -1, -2))

    def svd(x: Any) -> Any:
        left, values, right = library.linalg.svd(x, full_matrices=False)
        return (left * library.sin(values)[..., None, :]) @ right

    def eig(x: Any) -> Any:
        values, vectors = library.linalg.eig(x)
        return (vectors * values[..., None, :]) @ library.linalg.inv(vectors)

    return {"eigh": eigh, "svd": svd, "eig": eig}[name]


@pytest.mark.parametrize(
    ("name", "x"), [("eigh", POSITIVE), ("eigh", HERMITIAN), ("svd", TALL), ("svd", COMPLEX)]
)
def test_vectors_are_those_of_jax_up_to_signs(name: str, x: np.ndarray) -> None:
    compare(_rebuilt(jnp, name), _rebuilt(jax.numpy, name), x, factor=FACTOR)


def test_eigenvectors_diagonalize() -> None:
    x = jnp.array(MATRIX)
    np.testing.assert_allclose(_rebuilt(jnp, "eig")(x), MATRIX, atol=1e-4)


@pytest.mark.parametrize("x", [TALL, WIDE])
def test_packed_reflections_are_those_of_jax(x: np.ndarray) -> None:
    def factors(library: Any) -> Callable[..., Any]:
        return lambda x: library.linalg.qr(x, mode="raw")

    compare(factors(jnp), factors(jax.numpy), x, factor=FACTOR)


_SYMMETRIC = 0.5 * (POSITIVE + POSITIVE.T)
_DIFFERENTIATED: dict[str, tuple[Callable[[Any], Callable[..., Any]], tuple[np.ndarray, ...]]] = {
    "solve": (lambda m: lambda a, b: m.linalg.solve(a, b), (MATRIX, TALL[:4])),
    "inv": (lambda m: m.linalg.inv, (STACK,)),
    "det": (lambda m: m.linalg.det, (MATRIX,)),
    "slogdet": (lambda m: lambda x: m.linalg.slogdet(x)[1], (STACK,)),
    "cholesky": (lambda m: m.linalg.cholesky, (_SYMMETRIC,)),
    "qr": (lambda m: lambda x: m.linalg.qr(x)[1], (TALL,)),
    "eigh": (lambda m: _rebuilt(m, "eigh"), (_SYMMETRIC,)),
    "svd": (lambda m: _rebuilt(m, "svd"), (TALL,)),
    "pinv": (lambda m: m.linalg.pinv, (WIDE,)),
    "nuclear": (lambda m: lambda x: m.linalg.norm(x, "nuc"), (TALL,)),
}


def _loss(library: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: library.sum(library.sin(function(*args)))


@pytest.mark.parametrize("name", _DIFFERENTIATED)
def test_gradients_are_those_of_jax(name: str) -> None:
    make, args = _DIFFERENTIATED[name]
    places = tuple(range(len(args)))
    ours = axir.grad(_loss(jnp, make(jnp)), places)
    expected = jax.grad(_loss(jax.numpy, make(jax.numpy)), places)
    compare(ours, expected, *args, factor=8 * FACTOR)


@pytest.mark.parametrize("name", ["solve", "inv", "det", "cholesky"])
def test_second_derivatives_are_those_of_jax(name: str) -> None:
    make, args = _DIFFERENTIATED[name]
    ours = axir.hessian(_loss(jnp, make(jnp)))
    expected = jax.hessian(_loss(jax.numpy, make(jax.numpy)))
    compare(ours, expected, *args, factor=64 * FACTOR)


@pytest.mark.parametrize("rank", [3, 2, 0])
def test_gradient_of_a_determinant_of_a_singular_matrix_is_its_cofactors(rank: int) -> None:
    x = (_random(4, rank) @ _random(rank, 4)).astype(np.float32)
    cofactors = np.zeros((4, 4))
    for i, j in np.ndindex(4, 4):
        minor = np.delete(np.delete(x.astype(np.float64), i, 0), j, 1)
        cofactors[i, j] = (-1) ** (i + j) * np.linalg.det(minor)
    gradient = axir.grad(linalg.det)(jnp.array(x))
    np.testing.assert_allclose(gradient, cofactors, atol=1e-4 * max(1, np.abs(x).max() ** 3))


@pytest.mark.parametrize("name", ["solve", "inv", "det", "cholesky", "qr", "eigh", "svd"])
def test_compiled_and_vectorized_are_the_same(name: str) -> None:
    make, args = _DIFFERENTIATED[name]
    function = make(jnp)
    arrays = [jnp.array(x[0] if x.ndim == 3 else x) for x in args]
    single = function(*arrays)
    tolerance = 2e-4 * max(1.0, float(jnp.abs(single).max()))
    np.testing.assert_allclose(axir.jit(function)(*arrays), single, atol=tolerance)
    stacked = [jnp.stack([x, 2 * x]) for x in arrays]
    doubled = function(*[2 * x for x in arrays])
    mapped = axir.vmap(function)(*stacked)
    tolerance = 2e-4 * max(1.0, float(jnp.abs(doubled).max()))
    np.testing.assert_allclose(mapped[1], doubled, atol=tolerance)
    np.testing.assert_allclose(axir.jit(axir.vmap(function))(*stacked)[1], doubled, atol=tolerance)


def test_solutions_for_many_right_hand_sides_factor_once() -> None:
    jaxpr = str(axir.make_jaxpr(axir.vmap(linalg.solve, (None, 0)))(jnp.eye(3), jnp.ones((5, 3))))
    assert "lu_solve" in jaxpr
    assert "f32[5,3,3]" not in jaxpr


@pytest.mark.parametrize("name", ["inv", "det", "slogdet", "cholesky", "eig", "eigh", "eigvals"])
def test_matrices_must_be_square(name: str) -> None:
    error = same_error(getattr(linalg, name), getattr(theirs, name), TALL)
    assert "square" in str(error)


def test_errors_name_the_way_out() -> None:
    with pytest.raises(ValueError, match="'reduced', 'complete', 'r' or 'raw'"):
        linalg.qr(jnp.eye(2), mode="thin")
    with pytest.raises(ValueError, match="not a norm of matrices"):
        linalg.norm(jnp.eye(2), ord=3, axis=(0, 1))
    with pytest.raises(ValueError, match="vector_norm"):
        linalg.norm(jnp.ones((2, 2, 2)), ord=2)
    with pytest.raises(TypeError, match=r"does not fit matrices of shape \(2, 2\)"):
        linalg.solve(jnp.eye(2), jnp.ones(3))
    with pytest.raises(TypeError, match="chain of products"):
        linalg.multi_dot([jnp.ones((2, 3)), jnp.ones((2, 3))])


@pytest.mark.parametrize("shape", [(5, 3), (4, 1), (2, 4, 3), (3, 3), (3, 5)])
@pytest.mark.parametrize("is_complex", [False, True])
def test_derivative_of_all_columns_of_qr(shape: tuple[int, ...], is_complex: bool) -> None:
    """Against differences, and reverse mode against forward mode."""
    generator = np.random.default_rng(3)

    def draw(like: tuple[int, ...]) -> np.ndarray:
        drawn = generator.normal(size=(2, *like))
        return drawn[0] + 1j * drawn[1] if is_complex else drawn[0]

    x, direction = draw(shape), draw(shape)
    with axir.enable_x64(True):
        factors = lambda x: tuple(jnp.linalg.qr(x, mode="complete"))  # noqa: E731
        outs, tangents = axir.jvp(factors, (x,), (direction,))
        step = 1e-6 * direction
        for tangent, after, before in zip(
            tangents, factors(x + step), factors(x - step), strict=True
        ):
            np.testing.assert_allclose(tangent, (after - before) / 2e-6, rtol=1e-5, atol=1e-6)
        cotangents = tuple(draw(out.shape) for out in outs)
        (pulled,) = axir.vjp(factors, x)[1](cotangents)
        pairs = zip(cotangents, tangents, strict=True)
        right = sum(np.sum(np.real(ct * np.asarray(t))) for ct, t in pairs)
        np.testing.assert_allclose(np.sum(np.real(pulled * direction)), right, rtol=1e-9)

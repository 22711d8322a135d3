"""`custom_linear_solve` and `custom_root`: derivatives of the equation, not the solver."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import lax
from axir.dialect.core.errors import CustomRuleError, TreeError, UnsupportedRuleError

MATRIX = np.array([[4.0, 1.0], [2.0, 3.0]], np.float32)
RIGHT = np.array([1.0, 2.0], np.float32)


def inverse(lib: Any, a: Any) -> Any:
    numpy = lib.numpy
    determinant = a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]
    rows = [numpy.stack([a[1, 1], -a[0, 1]]), numpy.stack([-a[1, 0], a[0, 0]])]
    return numpy.stack(rows) / determinant


def solve(lib: Any, a: Any, b: Any) -> Any:
    fixed = lib.lax.stop_gradient(a)
    return lib.lax.custom_linear_solve(
        lambda x: a @ x,
        b,
        lambda matvec, right: inverse(lib, fixed) @ right,
        lambda vecmat, right: inverse(lib, fixed).T @ right,
    )


PROGRAMS = {
    "value": lambda lib: lambda a, b: solve(lib, a, b),
    "gradient": lambda lib: lib.grad(lambda a, b: (solve(lib, a, b) ** 2).sum(), (0, 1)),
    "jit gradient": lambda lib: lib.jit(
        lib.grad(lambda a, b: (solve(lib, a, b) ** 2).sum(), (0, 1))
    ),
    "gradient of jit": lambda lib: lib.grad(
        lib.jit(lambda a, b: (solve(lib, a, b) ** 2).sum()), (0, 1)
    ),
    "jvp": lambda lib: lambda a, b: lib.jvp(lambda a, b: solve(lib, a, b), (a, b), (a.T, b)),
    "vmap of b": lambda lib: (
        lambda a, b: lib.vmap(lambda b: solve(lib, a, b))(lib.numpy.stack([b, 2 * b, -b]))
    ),
    "vmap of gradient": lambda lib: (
        lambda a, b: lib.vmap(lib.grad(lambda a, b: solve(lib, a, b).sum(), (0, 1)), (0, None))(
            lib.numpy.stack([a, a.T]), b
        )
    ),
    "gradient of vmap": lambda lib: lib.grad(
        lambda a, b: (lib.vmap(lambda b: solve(lib, a, b))(lib.numpy.stack([b, 2 * b])) ** 2).sum()
    ),
    "second": lambda lib: lib.jacfwd(lib.grad(lambda a, b: (solve(lib, a, b) ** 2).sum()), 1),
    "second reverse": lambda lib: lib.jacrev(
        lib.grad(lambda a, b: (solve(lib, a, b) ** 2).sum()), (0, 1)
    ),
    "scan": lambda lib: lib.grad(
        lambda a, b: lib.lax.scan(lambda c, _: (solve(lib, a, c), None), b, None, length=2)[0].sum()
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_linear_solves_give_the_values_of_jax(name: str) -> None:
    ours = PROGRAMS[name](axir)(jnp.asarray(MATRIX), jnp.asarray(RIGHT))
    # Without fixing the solver's matrix: JAX differentiates the solver of fixed matrices in the
    # same way.
    theirs = PROGRAMS[name](jax)(jax.numpy.asarray(MATRIX), jax.numpy.asarray(RIGHT))
    for mine, other in zip(axir.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(np.asarray(mine), np.asarray(other), rtol=2e-5, atol=1e-6)


def test_the_solver_is_never_differentiated() -> None:
    def divide(a: Any, wrong: Any) -> Any:
        # A solver with a correct value and a wrong derivative.
        return lax.custom_linear_solve(
            lambda x: a * x, 6.0, lambda matvec, b: b / lax.round(a), symmetric=True
        )

    assert float(axir.grad(divide)(2.0, 1.0)) == -1.5
    assert float(axir.grad(axir.grad(divide))(2.0, 1.0)) == 1.5


def test_trees_and_auxiliary_results() -> None:
    def f(a: Any) -> Any:
        x, count = lax.custom_linear_solve(
            lambda v: {"p": a * v["p"], "q": 2 * v["q"]},
            {"p": 6.0, "q": 8.0},
            lambda matvec, b: ({"p": b["p"] / a, "q": b["q"] / 2}, {"steps": 3}),
            symmetric=True,
            has_aux=True,
        )
        return x["p"] + x["q"], count

    (value, auxiliary), gradient = axir.value_and_grad(f, has_aux=True)(2.0)
    assert (float(value), int(auxiliary["steps"]), float(gradient)) == (7, 3, -1.5)
    assert float(axir.jit(axir.grad(f, has_aux=True))(2.0)[0]) == -1.5


def test_reverse_mode_needs_the_transposed_solver() -> None:
    f = lambda a: lax.custom_linear_solve(lambda x: a * x, 6.0, lambda m, b: b / a)  # noqa: E731
    assert float(axir.jvp(f, (2.0,), (1.0,))[1]) == -1.5
    with pytest.raises(UnsupportedRuleError, match="transpose_solve was not given"):
        axir.grad(f)(2.0)


def test_vectors_are_checked() -> None:
    b = jnp.ones(2)
    with pytest.raises(CustomRuleError, match="matvec returned a value of type"):
        lax.custom_linear_solve(lambda x: x.sum(), b, lambda m, b: b)
    with pytest.raises(TreeError, match="solve returned a vector of structure"):
        lax.custom_linear_solve(lambda x: x, b, lambda m, b: (b, b))
    with pytest.raises(TreeError, match="has_aux=True solve must return"):
        lax.custom_linear_solve(lambda x: x, b, lambda m, b: b, has_aux=True)


def square_root(lib: Any, a: Any) -> Any:
    def newton(f: Any, x: Any) -> Any:
        return lib.lax.fori_loop(0, 12, lambda i, x: x - f(x) / (2 * x), x)

    return lib.lax.custom_root(
        lambda x: x**2 - a, lib.numpy.ones_like(a), newton, lambda g, y: y / g(1.0)
    )


@pytest.mark.parametrize(
    "compose",
    [
        lambda lib, f: f,
        lambda lib, f: lib.grad(f),
        lambda lib, f: lib.grad(lib.grad(f)),
        lambda lib, f: lib.jit(lib.grad(lib.jit(f))),
        lambda lib, f: lambda a: lib.vmap(lib.grad(f))(lib.numpy.stack([a, a + 1])),
        lambda lib, f: lambda a: lib.jvp(f, (a,), (a,)),
    ],
)
def test_roots_give_the_values_of_jax(compose: Any) -> None:
    ours = compose(axir, lambda a: square_root(axir, a))(4.0)
    theirs = compose(jax, lambda a: square_root(jax, a))(4.0)
    for mine, other in zip(axir.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(np.asarray(mine), np.asarray(other), rtol=2e-6)


def test_roots_with_auxiliary_results() -> None:
    def f(a: Any) -> Any:
        return lax.custom_root(
            lambda x: x - a, 0.0, lambda f, x: (a, 5), lambda g, y: y / g(1.0), has_aux=True
        )

    (value, count), gradient = axir.value_and_grad(f, has_aux=True)(3.0)
    assert (float(value), int(count), float(gradient)) == (3, 5, 1)


def test_solvers_of_a_root_may_close_over_what_is_differentiated() -> None:
    def solution(lib: Any, a: Any, b: Any) -> Any:
        a = a @ a.T
        factor = lib.numpy.linalg.inv(a)

        def solve(_: Any, b: Any) -> Any:
            return factor @ b

        def tangent_solve(g: Any, b: Any) -> Any:
            return lib.lax.custom_linear_solve(g, b, solve, symmetric=True)

        root = lib.lax.custom_root(lambda x: a @ x - b, b, solve, tangent_solve)
        return lib.numpy.sum(root * root)

    a, b = np.array([[1, 2], [0.3, -1]], np.float32), np.array([1, 2], np.float32)
    ours = axir.jit(axir.grad(lambda a, b: solution(axir, a, b), (0, 1)))(a, b)
    eager = axir.grad(lambda a, b: solution(axir, a, b), (0, 1))(a, b)
    theirs = jax.grad(lambda a, b: solution(jax, a, b), (0, 1))(a, b)
    for mine, other, third in zip(ours, eager, theirs, strict=True):
        np.testing.assert_allclose(mine, third, rtol=1e-4)
        np.testing.assert_allclose(other, third, rtol=1e-4)


@pytest.mark.parametrize(
    ("f", "solve", "name"),
    [(lambda x: (x, x), lambda f, x: x, "f"), (lambda x: x, lambda f, x: (x, x), "solve")],
)
def test_roots_have_the_structure_of_the_guess(f: Any, solve: Any, name: str) -> None:
    with pytest.raises(TreeError, match=f"custom_root: {name} returned a value of structure"):
        lax.custom_root(f, 0.0, solve, lambda f, x: x)


@pytest.mark.parametrize("wide", [False, True])
def test_a_weak_guess_takes_the_dtype_that_the_function_makes_of_it(wide: bool) -> None:
    def root(a: Any) -> Any:
        def newton(f: Any, x: Any) -> Any:
            return lax.fori_loop(0, 12, lambda i, x: x - f(x) / (2 * x), x)

        return lax.custom_root(lambda x: x * x - a, 1, newton, lambda g, y: y / g(1.0))

    a = np.float32(4)
    with axir.enable_x64(wide):
        for function, expected in ((root, 2.0), (axir.jit(root), 2.0), (axir.grad(root), 0.25)):
            result = function(a)
            assert (result.dtype, float(result)) == (np.float32, pytest.approx(expected))

"""Linear functions as values: pullbacks that are returned, carried, kept by rules; transposes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import errors

X = np.arange(3, dtype=np.float32) + 1
MATRIX = np.array([[3.0, 1.0], [0.5, 2.0]], np.float32)
VECTOR = np.array([1.0, 2.0], np.float32)


def f(lib: Any) -> Callable[[Any], Any]:
    return lambda x: lib.numpy.sin(x) * x


def ruled(lib: Any) -> Callable[[Any], Any]:
    """A function with functions as residuals."""

    @lib.custom_vjp
    def g(x: Any) -> Any:
        return f(lib)(x)

    def forward(x: Any) -> Any:
        out, pullback = lib.vjp(f(lib), x)
        return out, {"pull": pullback, "push": lib.linearize(f(lib), x)[1], "x": x}

    def backward(kept: Any, ct: Any) -> Any:
        return (kept["pull"](ct)[0] + 0.5 * kept["push"](kept["x"]),)

    g.defvjp(forward, backward)
    return g


def tripled(lib: Any) -> Callable[[Any], Any]:
    """A linear function with a rule that applies the function to tangents."""

    @lib.custom_jvp
    def triple(x: Any) -> Any:
        return 3.0 * x

    triple.defjvp(lambda primals, tangents: (triple(*primals), triple(*tangents)))
    return triple


def repeated(lib: Any, step: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: lib.lax.scan(lambda carry, _: (step(carry), None), x, None, length=3)[0]


def solved(lib: Any) -> Callable[[Any, Any], Any]:
    """The root of a y + y^3 = b, found and differentiated with values closed over."""

    def solve_linear(matvec: Any, b: Any) -> Any:
        return lib.numpy.linalg.solve(lib.jacfwd(matvec)(b), b)

    def root(a: Any, b: Any) -> Any:
        def equation(y: Any) -> Any:
            return a @ y + y**3 - b

        def solve(equation: Any, y: Any) -> Any:
            def newton(_: Any, y: Any) -> Any:
                return y - lib.numpy.linalg.solve(lib.jacfwd(equation)(y), equation(y))

            return lib.lax.fori_loop(0, 20, newton, y)

        def solve_tangent(matvec: Any, b: Any) -> Any:
            return lib.lax.custom_linear_solve(matvec, b, solve_linear, solve_linear)

        start = lib.numpy.zeros(2, lib.numpy.float32)
        return lib.lax.custom_root(equation, start, solve, solve_tangent).sum()

    return root


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "returned from jit": lambda lib: lib.jit(lambda x: lib.vjp(f(lib), x)[1])(X)(X),
    "linear, from jit": lambda lib: lib.jit(lambda x: lib.linearize(f(lib), x)[1])(X)(X),
    "passed to jit": lambda lib: lib.jit(lambda p, ct: p(ct))(lib.vjp(f(lib), X)[1], X),
    "mapped as a tree": lambda lib: lib.tree.map(lambda x: 2 * x, lib.vjp(lambda x: x * X, X)[1])(
        X
    ),
    "vmapped": lambda lib: lib.vmap(lambda p: p(1.0))(lib.vmap(lambda x: lib.vjp(f(lib), x)[1])(X)),
    "carried by scan": lambda lib: lib.lax.scan(
        lambda p, ct: (p, p(ct)), lib.vjp(f(lib), X)[1], np.stack([X, 2 * X])
    )[1],
    "stacked by scan": lambda lib: lib.vmap(lambda p: p(1.0))(
        lib.lax.scan(lambda c, x: (c, lib.vjp(f(lib), x)[1]), 0.0, X)[1]
    ),
    "residuals": lambda lib: lib.grad(ruled(lib))(2.0),
    "residuals, jit": lambda lib: lib.jit(lib.grad(ruled(lib)))(2.0),
    "residuals, vmap": lambda lib: lib.vmap(lib.grad(ruled(lib)))(X),
    "residuals, scan": lambda lib: lib.jit(lib.grad(repeated(lib, ruled(lib))))(1.5),
    "residuals, twice": lambda lib: lib.grad(lib.grad(ruled(lib)))(2.0),
    "rule transposed": lambda lib: lib.grad(tripled(lib))(1.0),
    "rule transposed in scan": lambda lib: lib.jit(lib.grad(repeated(lib, tripled(lib))))(1.0),
    "rule of linear_transpose": lambda lib: lib.linear_transpose(
        repeated(lib, tripled(lib)), np.float32(1)
    )(np.float32(1)),
    "rule, second derivative": lambda lib: lib.jacrev(lib.grad(lambda x: tripled(lib)(x) * x))(2.0),
    "root": lambda lib: lib.grad(solved(lib), (0, 1))(MATRIX, VECTOR),
    "root, jit": lambda lib: lib.jit(lib.grad(solved(lib), (0, 1)))(MATRIX, VECTOR),
    "root, jit within": lambda lib: lib.grad(
        lambda a: lib.jit(lambda b: solved(lib)(a, b))(VECTOR)
    )(MATRIX),
    "root, vmap within": lambda lib: lib.grad(
        lambda a: lib.vmap(lambda b: solved(lib)(a, b))(np.stack([VECTOR, 2 * VECTOR])).sum()
    )(MATRIX),
    "root, second derivative": lambda lib: lib.jacfwd(lib.grad(solved(lib), 1), 1)(MATRIX, VECTOR),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_agree_with_jax(name: str) -> None:
    ours, theirs = (axir.tree.leaves(PROGRAMS[name](lib)) for lib in (axir, jax))
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, rtol=2e-5, atol=1e-5)


def test_leaves_are_the_residuals() -> None:
    _, pullback = axir.vjp(lambda x: x * x * X, X)
    leaves = axir.tree.leaves(pullback)
    assert leaves
    assert all(isinstance(leaf, axir.Array) for leaf in leaves)
    assert repr(pullback) == "<Pullback of 'lambda'>"
    _, derivative = axir.linearize(jnp.sin, X)
    assert repr(derivative) == "<LinearFunction of 'sin'>"
    assert axir.tree.structure(pullback) == axir.tree.structure(pullback)


def test_pullbacks_of_other_functions_are_other_trees() -> None:
    def branch(scale: float) -> Callable[[Any], Any]:
        return lambda x: axir.vjp(lambda y: scale * jnp.sin(y), x)[1]

    with pytest.raises(errors.TreeError, match=r"branches must return values of one structure"):
        axir.make_jaxpr(lambda x: axir.lax.cond(True, branch(1.0), branch(2.0), x)(x))(X)


def test_equal_residuals_are_two_constants_as_of_a_tracer() -> None:
    def constants(scale: Any) -> list[tuple[int, ...]]:
        zero = jnp.zeros(())
        _, push = axir.linearize(lambda x: jnp.where(x > 2, x, zero * x) * scale, X)
        return sorted(c.shape for c in axir.make_jaxpr(push)(X).consts)

    known = constants(jnp.zeros(()))
    axir.eval_shape(lambda scale: known.append(constants(scale)) or scale, 0.0)
    assert known[:-1] == known[-1] == [(), (), (3,)]

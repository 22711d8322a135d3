"""Diagonals of sums and products are computed without the rest of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function
from axir.passes.transforms.simplify import simplify_function

GENERATOR = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return GENERATOR.normal(size=shape).astype(np.float32)


def similarity(a: Any, b: Any) -> Any:
    return jnp.exp(-jnp.sum((a - b) ** 2))


def variances(x: Any, v: Any) -> Any:
    """The posterior variances of a Gaussian process, by two `vmap`s and a product."""
    rows = axir.vmap(similarity, in_axes=(None, 0))
    return jnp.diag(3 * axir.vmap(rows, in_axes=(0, None))(x, x) - v.T @ v)


# Name -> function, arguments, and the largest number of elements of an array in the program.
SHORT: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...], int]] = {
    "variances": (variances, (floats(30, 2), floats(4, 30)), 120),
    "trace of a product": (lambda a, b: jnp.trace(a @ b), (floats(20, 3), floats(3, 20)), 60),
    "above": (lambda a, b: jnp.diagonal(a @ b, 3), (floats(20, 3), floats(3, 25)), 75),
    "below": (lambda a, b: jnp.diagonal(jnp.sin(a @ b), -4), (floats(25, 3), floats(3, 20)), 75),
    "stack": (
        lambda a, b: jnp.trace(a @ b, axis1=1, axis2=2),
        (floats(5, 20, 3), floats(5, 3, 20)),
        300,
    ),
    "columns of rows": (lambda x, y: jnp.diag(x[:, None] * y), (floats(30), floats(30)), 30),
    "turned": (lambda a, b: jnp.diagonal((a @ b).T, 2), (floats(20, 3), floats(3, 25)), 75),
    "part": (
        lambda a, b: jnp.diagonal((a @ b)[::2, 1:9, 2:], axis1=1, axis2=2),
        (floats(5, 20, 3), floats(5, 3, 20)),
        300,
    ),
    "maximum of axes": (
        lambda x, y: jnp.diag((x[:, None, :] * y[None]).max(-1)),
        (floats(20, 4), floats(20, 4)),
        80,
    ),
}
WHOLE: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "of an argument": (lambda a: jnp.diag(a) * 2, (floats(9, 9),)),
    "no diagonal": (lambda a, b: (a @ b).reshape(-1)[::9], (floats(9, 3), floats(3, 9))),
    "of a stack": (
        lambda v, s: jnp.diag(jnp.tensordot(v, s, 1)) + 1,
        (floats(3), floats(3, 9, 9)),
    ),
    "of a sort": (lambda a: jnp.diag(jnp.sort(a)) + 1, (floats(9, 9),)),
}
READ_TWICE = (lambda a, b: (jnp.diag(a @ b), (a @ b).sum()), (floats(9, 3), floats(3, 9)))


def simplified(function: Callable[..., Any], arguments: tuple[np.ndarray, ...]) -> Function:
    types = [jnp.asarray(x).type for x in arguments]
    traced = trace_function(lambda *xs: axir.tree.leaves(function(*xs)), types)
    return simplify_function(traced, is_final=True)


@pytest.mark.parametrize("name", SHORT)
def test_no_array_has_more_elements_than_the_operands(name: str) -> None:
    function, arguments, most = SHORT[name]
    short = simplified(function, arguments)
    assert max(v.type.size for x in short.equations for v in x.results) <= most


def test_values() -> None:
    programs = [*(x[:2] for x in SHORT.values()), *WHOLE.values(), READ_TWICE]
    for function, arguments in programs:
        found = axir.jit(function)(*arguments)
        with axir.disable_jit():
            wanted = function(*map(jnp.asarray, arguments))
        for one, other in zip(axir.tree.leaves(found), axir.tree.leaves(wanted), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", WHOLE)
def test_others_stay(name: str) -> None:
    function, arguments = WHOLE[name]
    names = [x.primitive.name for x in simplified(function, arguments).equations]
    assert names.count("slice") == 1, names
    assert names.count("dot_general") == (name in ("no diagonal", "of a stack"))


def test_gradients_are_those_of_the_whole_array() -> None:
    function, arguments, _ = SHORT["variances"]

    def loss(*xs: Any) -> Any:
        return jnp.sum(jnp.cos(function(*xs)))

    found = axir.jit(axir.grad(loss, argnums=(0, 1)))(*arguments)
    with axir.disable_jit():
        wanted = axir.grad(loss, argnums=(0, 1))(*map(jnp.asarray, arguments))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


def test_a_long_chain_is_not_followed_to_its_beginning() -> None:
    def chain(x: Any) -> Any:
        y = x[:, None] * x
        for _ in range(300):
            y = jnp.sin(y + 1)
        return jnp.trace(y)

    assert (
        max(v.type.size for x in simplified(chain, (floats(5),)).equations for v in x.results) == 25
    )

"""Programs nested hundreds of times, which take more frames than Python gives by default."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import lax
from axir.dialect.core.single_flight import DEEPEST, deep_recursion

LEVELS = 300


def nested(levels: int, wrap: Any) -> Any:
    function: Any = jnp.sin
    for _ in range(levels):
        function = wrap(function)
    return function


def jitted(inner: Any) -> Any:
    return axir.jit(lambda x: inner(x) * 0.999 + 0.001)


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: f,
        axir.grad,
        lambda f: axir.jit(axir.grad(f)),
        lambda f: lambda x: axir.jit(axir.vmap(f))(jnp.full(3, x))[0],
        lambda f: lambda x: axir.jvp(f, (x,), (1.0,))[1],
    ],
    ids=["call", "grad", "jit-grad", "jit-vmap", "jvp"],
)
def test_jit_in_jit(transform: Any) -> None:
    value = transform(nested(LEVELS, jitted))(0.5)
    with axir.disable_jit():
        expected = transform(nested(LEVELS, lambda f: lambda x: f(x) * 0.999 + 0.001))(0.5)
    np.testing.assert_allclose(value, expected, rtol=1e-4)


def test_branches_loops_and_rules_in_each_other() -> None:
    def branched(inner: Any) -> Any:
        return lambda x: lax.cond(x > -1e9, lambda y: inner(y) + 1, lambda y: y, x)

    def looped(inner: Any) -> Any:
        return lambda x: lax.scan(lambda c, _: (inner(c) + 1, None), x, None, length=1)[0]

    def checkpointed(inner: Any) -> Any:
        return axir.checkpoint(lambda x: inner(x) + 1)

    for wrap, levels in ((branched, 100), (looped, 60), (checkpointed, 200)):
        value = axir.jit(nested(levels, wrap))(1.0)
        np.testing.assert_allclose(value, levels + np.sin(np.float32(1)), rtol=1e-5)


def test_texts_of_nested_programs() -> None:
    function = nested(LEVELS, jitted)
    assert str(axir.make_jaxpr(function)(1.0)).count("jit[") == LEVELS
    assert axir.jit(function).lower(1.0).as_text().count("func.func") >= LEVELS


def test_the_limit_is_put_back() -> None:
    before = sys.getrecursionlimit()
    with deep_recursion:
        with deep_recursion:
            pass
        assert sys.getrecursionlimit() == DEEPEST
        thread = threading.Thread(target=nested(20, jitted), args=(1.0,))
        thread.start()
        thread.join()
        assert sys.getrecursionlimit() == DEEPEST
    assert sys.getrecursionlimit() == before


def test_endless_recursion_is_still_an_error() -> None:
    @axir.jit
    def endless(x: Any) -> Any:
        return endless(x + 1)

    with pytest.raises(RecursionError):
        axir.make_jaxpr(lambda x: endless((x, 1)[0]))(1.0)

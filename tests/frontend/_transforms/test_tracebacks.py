"""Tracebacks of errors in transformed functions: the frames of the user's files, and no others."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import lax
from axir._arguments.wrapping import boundary
from axir.dialect.core.config import config
from axir.dialect.core.errors import ShapeError


def bad(x: Any) -> Any:
    return x @ jnp.ones(5)


def raising(x: Any) -> Any:
    raise KeyError("mine")


def functions_in(error: BaseException) -> list[str]:
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


@axir.custom_jvp
def with_rule(x: Any) -> Any:
    return bad(x)


with_rule.defjvp(lambda primals, tangents: (primals[0], tangents[0]))

CALLS: dict[str, Callable[[Callable[[Any], Any], Any], Any]] = {
    "jit": lambda f, x: axir.jit(f)(x),
    "jit of jit": lambda f, x: axir.jit(axir.jit(f))(x),
    "lowered": lambda f, x: axir.jit(f).lower(x),
    "grad": lambda f, x: axir.grad(f)(x),
    "vmap": lambda f, x: axir.vmap(f)(x[None]),
    "jvp": lambda f, x: axir.jvp(f, (x,), (x,)),
    "vjp": lambda f, x: axir.vjp(f, x),
    "linearize": lambda f, x: axir.linearize(f, x),
    "jacfwd": lambda f, x: axir.jacfwd(f)(x),
    "hessian": lambda f, x: axir.hessian(f)(x),
    "checkpoint": lambda f, x: axir.checkpoint(f)(x),
    "eval_shape": lambda f, x: axir.eval_shape(f, x),
    "make_jaxpr": lambda f, x: axir.make_jaxpr(f)(x),
    "scan": lambda f, x: lax.scan(lambda carry, _: (f(carry), 0), x, None, length=2),
    "map": lambda f, x: lax.map(f, x[None]),
    "while_loop": lambda f, x: lax.while_loop(lambda _: True, f, x),
    "fori_loop": lambda f, x: lax.fori_loop(0, 3, lambda i, y: f(y), x),
    "cond": lambda f, x: lax.cond(True, f, f, x),
    "switch": lambda f, x: lax.switch(0, [f, f], x),
    "all of them": lambda f, x: axir.jit(axir.grad(lambda x: lax.map(axir.vmap(f), x[None, None])))(
        x
    ),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("function", [bad, raising])
def test_errors_have_the_frames_of_the_users_files(
    name: str, function: Callable[[Any], Any]
) -> None:
    with pytest.raises((ShapeError, KeyError)) as caught:
        CALLS[name](function, jnp.ones((3, 4)))
    found = functions_in(caught.value)
    assert set(found) <= {
        "test_errors_have_the_frames_of_the_users_files",
        "<lambda>",
        function.__name__,
    }
    assert found[-1] == function.__name__


def test_errors_in_rules_have_the_frames_of_the_users_files() -> None:
    with pytest.raises(ShapeError) as caught:
        axir.jit(with_rule)(jnp.ones((3, 4)))
    assert functions_in(caught.value)[1:] == ["with_rule", "bad"]


def test_an_option_keeps_all_frames() -> None:
    with config(jax_traceback_filtering="off"), pytest.raises(ShapeError) as caught:
        axir.jit(bad)(jnp.ones((3, 4)))
    assert "trace_abstract" in functions_in(caught.value)


def test_causes_have_the_frames_of_the_users_files() -> None:
    def wrapping(x: Any) -> Any:
        try:
            return axir.jit(bad)(x)
        except ShapeError as error:
            raise RuntimeError("mine") from error

    with pytest.raises(RuntimeError) as caught:
        axir.jit(wrapping)(jnp.ones((3, 4)))
    assert caught.value.__cause__ is not None
    assert functions_in(caught.value.__cause__) == ["wrapping", "bad"]


def test_a_fault_of_axir_keeps_the_frames_that_show_where(monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(*_: Any) -> Any:
        return np.vectorize(len)([0])  # NumPy's frames belong to the frames that call it

    monkeypatch.setattr("axir._transforms.jit_function.flatten_arguments", faulty)
    with pytest.raises(TypeError) as caught:
        axir.jit(bad)(jnp.ones((3, 4)))
    found = functions_in(caught.value)
    assert found[0] == "test_a_fault_of_axir_keeps_the_frames_that_show_where"
    assert found[-1] != found[0]


def test_errors_that_forbid_attributes_come_through() -> None:
    class Frozen(Exception):
        def __setattr__(self, name: str, value: object) -> None:
            raise AttributeError(name)

    @boundary
    def function(x: Any) -> Any:
        raise Frozen

    with pytest.raises(Frozen) as caught:
        function(1.0)
    assert functions_in(caught.value)[-1] == "function"


def test_deep_recursion_ends_with_its_own_error() -> None:
    @boundary
    def deeper(x: Any) -> Any:
        return deeper(x)

    with pytest.raises(RecursionError):
        deeper(1)

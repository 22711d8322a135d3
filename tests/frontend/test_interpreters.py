"""Interpreters of jaxprs written for JAX: one that goes into calls and loops, in both libraries."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import pytest

import axir

LIBRARIES = pytest.mark.parametrize("lib", [axir, jax], ids=["axir", "jax"])
TABLE = np.arange(3, dtype=np.float32)
X = np.array([0.1, 0.2, 0.3], np.float32)


class Interpreter:
    """Applies each primitive; with `goes_inside`, functions that ops call are interpreted, too."""

    def __init__(self, lib: Any, goes_inside: bool):
        self.lax = lib.lax
        self.literal = importlib.import_module(f"{lib.__name__}.extend.core").Literal
        self.goes_inside = goes_inside
        self.seen: list[str] = []

    def run(self, jaxpr: Any, consts: Sequence[Any], *args: Any) -> list[Any]:
        environment = dict(zip(jaxpr.constvars, consts, strict=True))
        environment.update(zip(jaxpr.invars, args, strict=True))

        def read(variable: Any) -> Any:
            is_literal = type(variable) is self.literal
            return variable.val if is_literal else environment[variable]

        for equation in jaxpr.eqns:
            self.seen.append(equation.primitive.name)
            results = self.apply(equation, [read(v) for v in equation.invars])
            results = results if equation.primitive.multiple_results else [results]
            environment.update(zip(equation.outvars, results, strict=True))
        return [read(v) for v in jaxpr.outvars]

    def call(self, closed: Any, *args: Any) -> list[Any]:
        return self.run(closed.jaxpr, closed.consts, *args)

    def apply(self, equation: Any, operands: list[Any]) -> Any:
        rule = getattr(self, equation.primitive.name, None) if self.goes_inside else None
        if rule is not None:
            return rule(operands, **equation.params)
        params = equation.primitive.get_bind_params(equation.params)
        return equation.primitive.bind(*operands, **params)

    def jit(self, operands: list[Any], *, jaxpr: Any, **params: Any) -> list[Any]:
        return self.call(jaxpr, *operands)

    def custom_jvp_call(self, operands: list[Any], *, call_jaxpr: Any, **params: Any) -> list[Any]:
        return self.call(call_jaxpr, *operands)

    def cond(self, operands: list[Any], *, branches: Any) -> Any:
        index, *rest = operands
        choices = [lambda *a, branch=branch: self.call(branch, *a) for branch in branches]
        return self.lax.switch(index, choices, *rest)

    def scan(
        self, operands: list[Any], *, jaxpr: Any, length: int, reverse: bool, num_consts: int,
        num_carry: int, **params: Any,
    ) -> list[Any]:  # fmt: skip
        consts, rest = operands[:num_consts], operands[num_consts:]

        def body(carry: Any, x: Any) -> Any:
            results = self.call(jaxpr, *consts, *carry, *x)
            return results[:num_carry], results[num_carry:]

        carry, ys = self.lax.scan(
            body, rest[:num_carry], rest[num_carry:], length=length, reverse=reverse
        )
        return [*carry, *ys]


def program(lib: Any) -> Any:
    lax, table = lib.lax, lib.numpy.asarray(TABLE)

    @lib.custom_jvp
    def doubled_slope(x: Any) -> Any:
        return lib.numpy.sin(x)

    doubled_slope.defjvp(lambda p, t: (doubled_slope(*p), 2 * lib.numpy.cos(p[0]) * t[0]))

    def f(x: Any) -> Any:
        y = lib.jit(lambda a: a * table + x)(doubled_slope(x))
        y, ys = lax.scan(lambda c, t: (c * t + x, c * table), y, lib.numpy.arange(3.0))
        z = lax.cond(x.sum() > 0, lambda a: a * table, lambda a: a + x, y)
        w = lax.while_loop(lambda c: c.sum() < 10, lambda c: c + 1 + x**2, z)
        return w + ys.sum(0), lib.checkpoint(lib.numpy.tanh)(z)

    return f


@LIBRARIES
@pytest.mark.parametrize("goes_inside", [False, True])
def test_an_interpreter_computes_what_the_program_does(lib: Any, goes_inside: bool) -> None:
    closed = lib.make_jaxpr(program(lib))(X)
    interpreter = Interpreter(lib, goes_inside)
    results = interpreter.call(closed, X)
    for mine, expected in zip(results, program(jax)(X), strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-5)
    assert {"jit", "custom_jvp_call", "scan", "cond", "while"} <= {*interpreter.seen}


@LIBRARIES
@pytest.mark.parametrize("goes_inside", [False, True])
def test_an_interpreted_program_is_transformed_like_any_other(lib: Any, goes_inside: bool) -> None:
    closed = lib.make_jaxpr(program(lib))(X)

    def total(x: Any) -> Any:
        return Interpreter(lib, goes_inside).call(closed, x)[1].sum()

    expected = jax.grad(lambda x: program(jax)(x)[1].sum())
    if goes_inside:  # rules are gone
        inlined = jax.make_jaxpr(program(jax))(X)
        expected = jax.grad(lambda x: Interpreter(jax, True).call(inlined, x)[1].sum())
    np.testing.assert_allclose(lib.grad(total)(X), expected(X), rtol=1e-4, atol=1e-6)
    rows = np.stack([X, 2 * X])
    np.testing.assert_allclose(lib.vmap(total)(rows), [total(x) for x in rows], rtol=1e-5)


@LIBRARIES
def test_what_ops_call_looks_like_a_closed_jaxpr(lib: Any) -> None:
    closed = lib.make_jaxpr(program(lib))(X)
    assert [str(t) for t in (*closed.in_avals, *closed.out_avals)] == ["float32[3]"] * 3
    assert closed.jaxpr.in_avals == closed.in_avals
    by_name = {e.primitive.name: e for e in closed.eqns}
    for name in ("jit", "scan", "custom_jvp_call"):
        params = by_name[name].params
        inner = params["call_jaxpr" if name == "custom_jvp_call" else "jaxpr"]
        assert len(inner.in_avals) == len(by_name[name].invars)
        assert inner.out_avals[0] == by_name[name].outvars[0].aval
        assert len(inner.jaxpr.constvars) == len(inner.consts) == 0


@LIBRARIES
def test_effects_are_told_apart(lib: Any) -> None:
    def prints(x: Any) -> Any:
        lib.debug.print("{}", x)
        return x

    acting, pure = lib.make_jaxpr(lib.jit(prints))(1.0), lib.make_jaxpr(lambda x: x + 1)(1.0)
    for with_effects in (acting, acting.jaxpr, acting.eqns[0], acting.eqns[0].params["jaxpr"]):
        assert with_effects.effects
    for without in (pure, pure.jaxpr, pure.eqns[0]):
        assert not without.effects

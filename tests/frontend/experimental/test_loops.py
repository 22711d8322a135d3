"""Loops and choices over mutable scopes, against Python's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir.errors import TracerIntegerConversionError
from axir.experimental import loops
from axir.experimental.loops import LoopScopeError


def program(x: Any) -> Any:
    with loops.Scope() as s:
        s.table = jnp.zeros((2, 3))
        s.state = {"total": x, "unchanged": 2.0}
        for i in s.range(2):
            for j in s.range(2, -1, -1):
                s.table = s.table.at[i, j].add(x * i + j)
            for _ in s.cond_range(s.state["total"] > 1.0):
                s.state = {**s.state, "total": s.state["total"] / s.state["unchanged"]}
        for _ in s.while_range(lambda: s.state["total"] < 5.0):
            s.state = {**s.state, "total": s.state["total"] * 3 + s.table[1, 2]}
        return s.state["total"]


def program_of_python(x: float) -> float:
    table, total = np.zeros((2, 3)), x
    for i in range(2):
        for j in range(2, -1, -1):
            table[i, j] += x * i + j
        if total > 1:
            total /= 2
    while total < 5:
        total = total * 3 + table[1, 2]
    return total


@pytest.mark.parametrize("x", [0.5, 1.5, 3.0])
def test_programs(x: float) -> None:
    expected = program_of_python(x)
    np.testing.assert_allclose(program(x), expected, rtol=1e-6)
    slope = (program_of_python(x + 1e-6) - expected) / 1e-6
    np.testing.assert_allclose(axir.jvp(program, (x,), (1.0,))[1], slope, rtol=1e-4)


def test_compiled_and_mapped() -> None:
    x = np.float32([0.5, 1.5, 3.0])
    expected = [program_of_python(float(v)) for v in x]
    np.testing.assert_allclose(axir.jit(axir.vmap(program))(x), expected, rtol=1e-5)


def test_ranges_and_scopes() -> None:
    with loops.Scope() as s:
        s.out = 0
        again = s.range(5)
        for _ in again:
            s.out += 1
        for _ in again:
            s.out += 1
        assert "test_loops.py" in again.location()
        with pytest.raises(AttributeError, match="The scope has no state 'missing'"):
            s.missing  # noqa: B018
    assert int(s.out) == 10
    gradient = axir.grad(lambda x: _sum_of_powers(x))(2.0)
    assert float(gradient) == 1 + 2 * 2 + 3 * 4


def _sum_of_powers(x: Any) -> Any:
    with loops.Scope() as s:
        s.power, s.total = 1.0, 0.0
        for _ in s.range(3):
            s.power *= x
            s.total += s.power
        return s.total


def _nested_reuse(s: loops.Scope) -> None:
    again = s.range(3)
    for _ in again:
        for _ in again:
            s.x += 1


def _broken(s: loops.Scope) -> None:
    for _ in s.range(3):
        for _ in s.range(555):
            break


def _new_state(s: loops.Scope) -> None:
    for _ in s.range(3):
        s.y = 1


def _index_of_a_choice(s: loops.Scope) -> None:
    for i in s.cond_range(True):
        s.x += i


def _changing_condition(s: loops.Scope) -> None:
    def holds() -> Any:
        s.x += 1
        return s.x < 5

    for _ in s.while_range(holds):
        s.x += 1


def _other_structure(s: loops.Scope) -> None:
    for _ in s.range(3):
        s.x = (s.x, s.x)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (_nested_reuse, r"Range is reused nested inside itself\."),
        (_broken, r"Some ranges have exited prematurely.*range\(555\)"),
        (_new_state, "New mutable state 'y' cannot be created inside a loop"),
        (_index_of_a_choice, "Body of cond_range or while_range should not use the index variable"),
        (_changing_condition, r"Conditional function modifies scope\.x field"),
        (_other_structure, "changes the structure of its scope's state"),
    ],
)
def test_misuse(body: Callable[[loops.Scope], None], expected: str) -> None:
    def run() -> None:
        with loops.Scope() as s:
            s.x = 0
            body(s)

    with pytest.raises(LoopScopeError, match=f"(?s){expected}"):
        run()
    assert axir.make_jaxpr(lambda x: x + 1)(1.0).jaxpr.eqns  # no trace is left open


def test_exceptions_and_tracers() -> None:
    def divide() -> None:
        with loops.Scope() as s:
            for _ in s.range(3):
                1 / 0  # noqa: B018

    def count(n: Any) -> None:
        with loops.Scope() as s:
            next(iter(s.range(n)))

    with pytest.raises(ZeroDivisionError):
        divide()
    with pytest.raises(TracerIntegerConversionError):
        axir.jit(count)(3)

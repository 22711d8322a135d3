"""Estimates of the cost model: their growth, and the decisions that follow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import axir as jax
import axir.numpy as jnp
from axir.dialect.program.costs import (
    COMPILED_PASS,
    PARALLEL_OPERATIONS,
    arithmetic_operations,
    compilation_time,
    interpretation_time,
    largest_operation,
    temporary_bytes,
)
from axir.dialect.program.function import Function, functions_of
from axir.dialect.program.function_tracing import trace_function

X = jnp.ones((8, 4))


def traced(function: Any, *args: Any) -> Function:
    types = [jnp.asarray(x).aval for x in args]
    return trace_function(lambda *xs: jax.tree.leaves(function(*xs)), types)


def scan(length: int) -> Function:
    return traced(lambda x: jax.lax.fori_loop(0, length, lambda i, c: jnp.sin(c), x), X)


def test_interpretation_grows_with_ops_elements_and_passes() -> None:
    one, two = (interpretation_time(traced(f, X)) for f in (jnp.sin, lambda x: jnp.sin(jnp.sin(x))))
    assert two == pytest.approx(2 * one)
    assert interpretation_time(traced(jnp.sin, jnp.ones((1000, 100)))) > 10 * one
    short, long = (interpretation_time(scan(n)) for n in (10, 1000))
    assert 90 < long / short < 100


def test_a_choice_takes_as_long_as_its_longer_branch() -> None:
    def choose(p: Any, x: Any) -> Any:
        return jax.lax.cond(p, jnp.sin, lambda x: jnp.sin(jnp.sin(jnp.sin(x))), x)

    longer = interpretation_time(traced(lambda x: jnp.sin(jnp.sin(jnp.sin(x))), X))
    assert interpretation_time(traced(choose, True, X)) < 2 * longer


def test_compilation_grows_with_the_ops_of_bodies() -> None:
    def params(count: int) -> dict[str, Any]:
        def body(c: Any, _: Any) -> Any:
            for _ in range(count):
                c = jnp.sin(c)
            return c, None

        function = traced(lambda x: jax.lax.scan(body, x, None, length=9)[0], X)
        return next(e.params for e in function.equations if list(functions_of(e.params)))

    few, many = (compilation_time(params(count)) for count in (1, 41))
    assert COMPILED_PASS < few < many
    assert many - few == pytest.approx(40 * (compilation_time(params(2)) - few))


def test_the_largest_operation_is_found_in_bodies_too() -> None:
    assert largest_operation(traced(jnp.sin, X)) == 32
    product = traced(lambda x, y: jnp.sum(jnp.matmul(x, y)), jnp.ones((8, 16)), jnp.ones((16, 32)))
    assert largest_operation(product) == 8 * 16 * 32
    called = traced(lambda x: jax.jit(lambda y: y @ y)(x), jnp.ones((256, 256)))
    assert largest_operation(called) == 256**3 >= PARALLEL_OPERATIONS
    assert largest_operation(traced(lambda: ())) == 0


ROWS = np.ones((4, 6), np.float32)


@pytest.mark.parametrize(
    ("function", "arguments", "count"),
    [
        (lambda x: x @ x.T, (ROWS,), 2 * 4 * 4 * 6),
        (lambda x: jnp.sin(x) + x, (ROWS,), 2 * 24),
        (lambda x: x.reshape(24)[::2], (ROWS,), 0),
        (lambda x: x.sum(), (ROWS,), 24),
        (lambda x: jax.lax.fori_loop(0, 5, lambda i, c: c * x, x), (ROWS,), 5 * (24 + 1)),
        (lambda x: jax.lax.cond(True, lambda x: x * x * x, lambda x: x, x), (ROWS,), 2 * 24),
        (lambda a: jax.lax.linalg.cholesky(a, symmetrize_input=False), (np.eye(6),), 6**3 // 3),
    ],
)
def test_arithmetic_is_counted(function: Any, arguments: tuple[Any, ...], count: int) -> None:
    assert arithmetic_operations(traced(function, *arguments)) == count


def test_convolutions_count_the_window() -> None:
    def convolved(x: Any, kernel: Any) -> Any:
        return jax.lax.conv(x, kernel, (1, 1), "VALID")

    function = traced(convolved, np.ones((2, 3, 8, 8)), np.ones((5, 3, 3, 3)))
    assert arithmetic_operations(function) == 2 * (2 * 5 * 6 * 6) * (3 * 3 * 3)


def test_temporaries_are_those_that_live_together() -> None:
    chain = traced(lambda x: jnp.sin(jnp.cos(jnp.tan(x))), ROWS)
    assert temporary_bytes(chain) == 2 * ROWS.nbytes  # an operand and a result
    kept = traced(lambda x: (jnp.sin(x), jnp.cos(x), jnp.tan(x)), ROWS)
    assert temporary_bytes(kept) == 3 * ROWS.nbytes

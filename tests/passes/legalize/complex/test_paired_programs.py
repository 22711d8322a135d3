"""`split-complex-loops`: loops carry parts of complex numbers, and compute the same."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.op_programs import Programs

import axir.numpy as jnp
from axir import lax
from axir.dialect.core.config import config
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function
from axir.passes.framework.pipeline import run_passes
from axir.passes.transforms.lower_to_stablehlo import lower_functions

RNG = np.random.default_rng(11)


def numbers(*shape: int, dtype: type = np.complex64) -> np.ndarray:
    return (RNG.normal(size=shape) + 1j * RNG.normal(size=shape)).astype(dtype)


def escapes(c: Any) -> Any:
    def goes_on(state: Any) -> Any:
        z, steps = state
        return (jnp.abs(z) < 2) & (steps < 9)

    z, steps = lax.while_loop(goes_on, lambda s: (s[0] * s[0] + c, s[1] + 1), (0 * c, 0))
    return z, steps


def functions_of_numbers(x: Any) -> Any:
    def step(z: Any, _: Any) -> Any:
        z = jnp.exp(1j * z) / (2 + jnp.sqrt(z)) - jnp.conj(z) * jnp.sin(z)
        return z, (jnp.abs(z), jnp.angle(z), z.real.astype(np.complex64) - z)

    return lax.scan(step, x, None, length=3)


def moved(x: Any, y: Any) -> Any:
    """Every operation that moves elements, with constants that differ."""
    weights = np.array([1j, 2, 3 - 1j, -1, 0, 2j], np.complex64)

    def step(i: Any, z: Any) -> Any:
        turned = z[::-1].reshape(2, 3).T.reshape(6) * weights + y[0]
        padded = lax.pad(turned, np.complex64(1 - 2j), [(1, 0, 0)])[1:]
        taken = padded[np.array([3, 0, 5, 1, 1, 2])]
        joined = jnp.concatenate([taken[:2], y, z[4:]])
        joined = joined.at[np.array([5, 1])].add(y).at[np.array([2, 0])].set(y * 1j)
        return joined.at[i].set(z.sum() + lax.dynamic_index_in_dim(y, i, keepdims=False))

    return lax.fori_loop(0, 2, step, x)


def branches(x: Any, y: Any) -> Any:
    """Branches, loops in loops, comparisons."""

    def step(i: Any, state: Any) -> Any:
        z, hits = state
        z = lax.cond(i % 2 == 0, lambda: z * y, lambda: lax.fori_loop(0, i, lambda _, u: u + x, z))
        hits = hits + (z == x).sum() + (z != y).sum()
        return lax.switch(i, [lambda: z, lambda: -z, lambda: z - 1j], *()), hits

    return lax.fori_loop(0, 3, step, (x, 0))


def exchanged(x: Any, y: Any) -> Any:
    """Carried values exchange places, some never change, one is only read by the condition."""

    def step(state: Any) -> Any:
        u, v, kept, _ = state
        return v, u * 1.5, kept, u * kept

    return lax.while_loop(lambda s: jnp.abs(s[3]).max() < 9, step, (x, y, x + 1.5, 0 * x))


def products(a: Any, v: Any) -> Any:
    """Products with a matrix."""
    return lax.fori_loop(0, 4, lambda i, v: (a @ v) * 0.3 - v, v)


def in_branch(x: Any) -> Any:
    return lax.cond(
        x.real.sum() > 0,
        lambda: lax.fori_loop(0, 3, lambda i, z: z * z, x),
        lambda: lax.fori_loop(0, 2, lambda i, z: z + 1j, x),
    )


CASES: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "escapes": (escapes, (numbers(),)),
    "functions_of_numbers": (functions_of_numbers, (numbers(5),)),
    "moved": (moved, (numbers(6), numbers(2))),
    "branches": (branches, (numbers(3), numbers(3))),
    "exchanged": (exchanged, (numbers(7), numbers(7))),
    "products": (products, (numbers(4, 4), numbers(4))),
    "wide": (products, (numbers(4, 4, dtype=np.complex128), numbers(4, dtype=np.complex128))),
    "in_branch": (in_branch, (numbers(9),)),
}


def traced(name: str) -> Function:
    function, arguments = CASES[name]
    types = [ShapedArray(x.shape, x.dtype) for x in map(np.asarray, arguments)]
    return trace_function(lambda *args: _leaves(function(*args)), types, name=name)


def _leaves(tree: Any) -> list[Any]:
    return [leaf for part in tree for leaf in _leaves(part)] if isinstance(tree, tuple) else [tree]


def loops_in(text: str) -> list[str]:
    return [line for line in text.splitlines() if "stablehlo.while" in line]


@pytest.fixture(scope="module")
def programs() -> Programs:
    return Programs({name: traced(name) for name in CASES}, fuses=True)


@pytest.mark.parametrize("name", CASES)
def test_values(programs: Programs, name: str) -> None:
    assert programs.failures == {}
    function = traced(name)
    arguments = [np.asarray(x) for x in CASES[name][1]]
    with config(jax_enable_x64=True):
        expected = [x.host() for x in function.evaluate(*arguments)]
    captured = [x.host() for x in function.captured]
    for got, want in zip(programs(name, *arguments, *captured), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5 * np.abs(want).max())


@pytest.mark.parametrize("name", CASES)
def test_loops_carry_no_complex_numbers(name: str) -> None:
    module = lower_functions({"main": traced(name)})
    assert any("complex" in line for line in loops_in(str(module)))
    run_passes(module, "expand-complex,split-complex-dot,split-complex-loops")
    loops = loops_in(str(module))
    assert loops
    assert not any("complex" in line for line in loops)


def test_what_stays_says_why(caplog: pytest.LogCaptureFixture) -> None:
    def sorted_parts(x: Any) -> Any:
        return [lax.fori_loop(0, 3, lambda i, z: z * jnp.prod(z), x)]

    kind = ShapedArray((3,), np.dtype(np.complex64))
    module = lower_functions({"main": trace_function(sorted_parts, [kind], name="main")})
    before = str(module)
    with caplog.at_level(logging.INFO, "axir.passes.legalize.complex.paired_programs"):
        run_passes(module, "split-complex-loops")
    assert str(module) == before
    assert "there is no rule for stablehlo.reduce" in caplog.text

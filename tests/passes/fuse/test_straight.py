"""Straight code of several shapes and types, among other operations, computes correct results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.function_tracing import trace_function
from axir.passes.framework.pipeline import run_passes
from axir.passes.transforms.lower_to_stablehlo import lower_functions


def mixed(x: Any, y: Any) -> list[Any]:
    """Floats, integers and booleans, with a sum every forty steps."""
    results = []
    for number in range(120):
        x = jnp.tanh(x) * y + 0.1 * (number % 5)
        if number % 17 == 0:
            results += [x.astype(np.int32) + number, x > y]
        y = jnp.where(x > y, y * 0.9, x - y * 0.3)
        if number % 40 == 39:
            x = x - jnp.mean(x)
    return [x, y, *results]


def of_two_shapes(x: Any, y: Any) -> list[Any]:
    """Arrays of two shapes in turn, and numbers between."""
    z = jnp.concatenate([x.ravel(), y.ravel()])
    total = jnp.sum(x) * 0.01
    results = []
    for number in range(90):
        z = jnp.sin(z) + total
        total = total * 0.5 + 0.01
        x = jnp.cos(x) * 1.1 + y * total
        if number % 20 == 0:
            results += [z, x]
    return [x, z, total, *results]


def many_at_a_time(x: Any, y: Any) -> list[Any]:
    """More values are needed at a time than there are registers."""
    values = [x * (number + 1) + y for number in range(150)]
    for step in (1, 7):
        values = [a * 0.5 + b for a, b in zip(values, values[step:] + values[:step], strict=True)]
    return values[::30]


@pytest.mark.parametrize("shape", [(3,), (37,), (100,), (7, 13), (5, 1), (4, 16)])
def test_straight_code_computes_what_the_evaluator_does(shape: tuple[int, ...]) -> None:
    generator = np.random.default_rng(5)
    x, y = (generator.normal(size=shape).astype(np.float32) for _ in range(2))
    programs = (mixed, of_two_shapes, many_at_a_time)

    def together(x: Any, y: Any) -> list[Any]:
        return [result for program in programs for result in program(x, y)]

    compiled = axir.jit(together)(x, y)
    with axir.disable_jit():
        expected = together(jnp.array(x), jnp.array(y))
    for result, want in zip(compiled, expected, strict=True):
        assert result.dtype == want.dtype
        if want.dtype.kind == "f":
            size = np.max(np.abs(want.host()), initial=1.0)
            np.testing.assert_allclose(result, want, rtol=1e-5, atol=1e-5 * size)
        else:  # near an integer, or near each other, rounding decides
            assert np.mean(np.asarray(result) != np.asarray(want)) < 0.01 + 1 / want.size


def multiples(x: Any, y: Any, count: int) -> list[Any]:
    return [x * (number + 1) + y for number in range(count)]


def test_a_loop_writes_few_arrays_and_a_kernel_thousands() -> None:
    kind = ShapedArray((100,), np.dtype(np.float32))
    function = trace_function(lambda x, y: multiples(x, y, 2500), [kind] * 2)
    module = lower_functions({"main": function})
    run_passes(module, "legalize-for-iree{part=numbers},fuse-whole-programs")
    text = str(module)
    assert text.count("flow.dispatch @") == 1
    _, *loops = text.split("scf.for")
    assert sum(loop.count("vector.store") for loop in loops) == 2500
    assert max(loop.count("vector.store") for loop in loops) <= 25
    # Arrays of one axis are read and written as they are.
    assert "reinterpret_cast" not in text


def test_hundreds_of_arrays_are_what_the_evaluator_makes() -> None:
    x, y = np.linspace(-2, 2, 37, dtype=np.float32), np.float32(0.5) * np.arange(37, dtype="f4")
    found = axir.jit(lambda x, y: multiples(x, y, 200))(x, y)
    for number, result in enumerate(found):
        want = x * np.float32(number + 1) + y
        np.testing.assert_allclose(result, want, rtol=1e-6, atol=1e-4)


def test_it_is_loops_of_several_hundred_operations() -> None:
    kind = ShapedArray((100,), np.dtype(np.float32))

    def coupled(x: Any, y: Any) -> Any:
        for _ in range(400):
            x, y = x * 0.5 + y, x - y * 0.25
        return x, y

    module = lower_functions({"main": trace_function(coupled, [kind] * 2)})
    run_passes(module, "legalize-for-iree{part=numbers},fuse-whole-programs")
    # 1,600 operations in parts of 500, and no loop for a remainder behind whole vectors.
    assert str(module).count("scf.for") == 4

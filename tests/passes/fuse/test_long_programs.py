"""Programs of hundreds of operations: the resulting code grows linearly with their length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.function_tracing import trace_function
from axir.passes.framework.pipeline import run_passes
from axir.passes.transforms.lower_to_stablehlo import lower_functions

Program = Callable[[Any, Any, int], Any]
SMALL, LARGE = (100,), (50_001,)


def chain(x: Any, y: Any, count: int) -> Any:
    for _ in range(count):
        x = jnp.sin(x) + y
    return x


def coupled(x: Any, y: Any, count: int) -> Any:
    for _ in range(count):
        x, y = jnp.sin(y) * 0.5 + x * 0.5, x * y * 0.5 + 0.1
    return x, y


def fan(x: Any, y: Any, count: int) -> Any:
    return sum(jnp.cos(x * (number + 1)) for number in range(count)) * y


def tree(x: Any, y: Any, count: int) -> Any:
    level = [x * (1 + number % 7) + y for number in range(count)]
    while len(level) > 1:
        rest = level[-1:] if len(level) % 2 else []
        level = [(a + b) * 0.5 for a, b in zip(level[::2], level[1::2], strict=False)] + rest
    return level[0]


def choices(x: Any, y: Any, count: int) -> Any:
    """Booleans and integers among floats: parts of arrays of several widths."""
    total = jnp.zeros(jnp.shape(x), np.int32)
    for number in range(count):
        is_less = x < y * (number % 3)
        x = jnp.where(is_less, x + 0.25, x * 0.75)
        total = total + is_less
    return x, total


PROGRAMS = (chain, coupled, fan, tree, choices)


def legalized(program: Program, shape: tuple[int, ...], count: int) -> str:
    kind = ShapedArray(shape, np.dtype(np.float32))
    traced = trace_function(lambda x, y: axir.tree.leaves(program(x, y, count)), [kind] * 2)
    module = lower_functions({"main": traced})
    run_passes(module, "legalize-for-iree")
    return str(module)


@pytest.mark.parametrize("shape", [(), SMALL, LARGE])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda x: x.__name__)
def test_text_grows_with_the_number_of_operations(program: Program, shape: tuple[int, ...]) -> None:
    short, long = (legalized(program, shape, count) for count in (80, 240))
    for text in (short, long):
        found = map(text.count, ("flow.dispatch @", "linalg.generic", "optimization_barrier"))
        assert list(found) == [1, 0, 0]
    # Parts of long code read arrays that earlier parts have stored.
    assert len(long) < 3.5 * len(short)


def test_a_part_of_an_array_is_computed_soon_before_it_is_read() -> None:
    """A thousand parts of leaves, which the program computes first, would not fit on the stack."""
    text = legalized(tree, LARGE, 1000)
    assert (text.count("flow.dispatch @"), text.count("linalg.generic")) == (1, 0)
    assert text.count("memref.alloca") < 20


def test_a_repeated_formula_is_a_function_of_the_kernel() -> None:
    texts = {count: legalized(chain, SMALL, count) for count in (10, 100)}
    assert "_function_" not in texts[10]
    # The four numbers behind whole vectors are computed again together with others.
    assert texts[100].count("func.func private @program_0_function_") == 1
    assert texts[100].count("no_inline") == 1
    assert texts[100].count("arith.mulf") < texts[10].count("arith.mulf")


def powers(x: Any, y: Any, count: int) -> Any:
    return sum(jnp.max((jnp.abs(x) + number) ** y) for number in range(count))


def test_a_long_formula_is_a_function_where_it_stands_in_several_places() -> None:
    assert "_function_" not in legalized(powers, (37,), 1)
    text = legalized(powers, (37,), 5)
    assert text.count("func.func private @program_0_function_") == 1
    assert text.count("func.call @program_0_function_0") == 5


def test_what_is_left_of_vectors_has_its_code_once() -> None:
    """Five numbers behind whole vectors are lanes of one vector that begins earlier."""
    text = legalized(lambda x, y, _: jnp.sum(jnp.tanh(x) * y), (37,), 1)
    assert text.count("math.tanh") == 2


def test_what_is_left_of_vectors_is_computed_as_they_are() -> None:
    generator = np.random.default_rng(4)
    for size in (9, 16, 37, 300):
        x, y = (generator.uniform(0.1, 2, size).astype(np.float32) for _ in "xy")
        for count in (1, 5):
            with axir.disable_jit():
                expected = powers(jnp.array(x), jnp.array(y), count)
            made = axir.jit(powers, static_argnums=2)(x, y, count)
            np.testing.assert_allclose(made, expected, rtol=2e-6)


def test_long_programs_compute_what_the_evaluator_does() -> None:
    generator = np.random.default_rng(0)
    for shape in ((), (1,), (37,), LARGE):
        x, y = (generator.uniform(0.1, 0.9, shape).astype(np.float32) for _ in range(2))

        def together(x: Any, y: Any, programs: Any = PROGRAMS) -> Any:
            return [program(x, y, 70) for program in programs]

        compiled = axir.jit(together)(x, y)
        with axir.disable_jit():
            expected = together(jnp.array(x), jnp.array(y))
        for name, a, b in zip(PROGRAMS, compiled, expected, strict=True):
            for one, other in zip(axir.tree.leaves(a), axir.tree.leaves(b), strict=True):
                np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5, err_msg=str(name))

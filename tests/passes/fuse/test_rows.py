"""Loops over arrays whose rows have a condition, or a number, each."""

from __future__ import annotations

from typing import Any

import numpy as np

import axir
import axir.numpy as jnp
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.function_tracing import trace_function
from axir.passes.framework.pipeline import run_passes
from axir.passes.transforms.lower_to_stablehlo import lower_functions

BOARDS = (6, 5, 7, 2)


def chosen(condition: Any, number: Any, x: Any, y: Any) -> Any:
    """Boards of games, each with a condition of its own."""
    places = (slice(None), None, None, None)
    moved = jnp.where(condition[places], x, y)
    scaled = jnp.where(number[places] > 1, moved * 2, x + number[places])
    return moved, scaled, jnp.where((condition & (number > 0))[places], scaled, 7)


def of_two_axes(scale: Any, x: Any, y: Any) -> Any:
    """Rows that keep two leading axes; one axis is repeated between them."""
    return x * scale[:, :, None, None] + y, x[:, :1] + scale[:, :, None, None] * y


def with_a_last_axis(scale: Any, x: Any) -> Any:
    """All axes are needed: numbers of the first and of the last one."""
    return x * scale[:, None, None, None] + scale[:2]


def test_values_are_those_of_the_evaluator() -> None:
    generator = np.random.default_rng(0)
    x, y = (generator.integers(0, 9, BOARDS).astype(np.int8) for _ in range(2))
    condition = generator.random(6) < 0.5
    number = generator.integers(0, 3, 6).astype(np.int8)
    a, b = (generator.normal(size=BOARDS).astype(np.float32) for _ in range(2))
    scale = generator.normal(size=(6, 5)).astype(np.float32)

    def together(*xs: Any) -> Any:
        condition, number, x, y, scale, a, b = xs
        return (
            chosen(condition, number, x, y),
            of_two_axes(scale, a, b),
            with_a_last_axis(scale[:, 0], a),
        )

    arguments = condition, number, x, y, scale, a, b
    found = axir.jit(together)(*arguments)
    with axir.disable_jit():
        wanted = together(*map(jnp.asarray, arguments))
    for one, other in zip(axir.tree.leaves(found), axir.tree.leaves(wanted), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


def test_axes_behind_those_of_the_condition_are_one_loop() -> None:
    kinds = [
        ShapedArray((6,), np.dtype(bool)),
        ShapedArray((6,), np.dtype(np.int8)),
        *[ShapedArray(BOARDS, np.dtype(np.int8))] * 2,
    ]
    module = lower_functions({"main": trace_function(chosen, kinds)})
    run_passes(module, "legalize-for-iree{part=numbers},fuse-whole-programs")
    text = str(module)
    assert "memref<6x70xi8>" in text
    assert "6x5x7x2xi8>, vector<2xi8>" not in text

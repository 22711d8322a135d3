"""`ragged_all_to_all` against loops, and `pcast`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import lax

POSITIONS, SLICES = 3, 6


def exchanged(groups: list[list[int]] | None) -> tuple[list[np.ndarray], np.ndarray]:
    """Returns arguments of every position, and the outputs as loops make them."""
    generator = np.random.default_rng(0)
    groups = groups or [list(range(POSITIONS))]
    count = SLICES // len(groups[0])
    sizes = generator.integers(0, 3, (POSITIONS, SLICES))
    starts = generator.integers(0, 4, (POSITIONS, SLICES))
    operand = generator.normal(size=(POSITIONS, 6, 2)).astype(np.float32)
    targets, received = np.zeros_like(sizes), np.zeros_like(sizes)
    output = np.full((POSITIONS, 14, 2), -1, np.float32)
    expected = output.copy()
    for group in groups:
        for place, receiver in enumerate(group):
            row = 0
            for other, sender in enumerate(group):
                for i in range(count):
                    k, size = place * count + i, sizes[sender, place * count + i]
                    block = operand[sender, starts[sender, k] : starts[sender, k] + size]
                    expected[receiver, row : row + size] = block
                    targets[sender, k] = row
                    received[receiver, other * count + i] = size
                    row += size
    return [operand, output, starts, sizes, targets, received], expected


@pytest.mark.parametrize("groups", [None, [[0], [2], [1]]])
def test_exchange_is_that_of_loops(groups: list[list[int]] | None) -> None:
    arguments, expected = exchanged(groups)

    def exchange(*parts: Any) -> Any:
        return lax.ragged_all_to_all(*parts, axis_name="i", axis_index_groups=groups)

    result = axir.vmap(exchange, axis_name="i")(*arguments)
    np.testing.assert_array_equal(result, expected)


def test_derivative_goes_back_to_the_sender() -> None:
    arguments, _ = exchanged(None)

    def total(operand: Any) -> Any:
        def exchange(*parts: Any) -> Any:
            return lax.ragged_all_to_all(*parts, axis_name="i")

        return axir.vmap(exchange, axis_name="i")(operand, *arguments[1:]).sum()

    expected = np.zeros((POSITIONS, 6, 2), np.float32)
    for sender in range(POSITIONS):
        for start, size in zip(arguments[2][sender], arguments[3][sender], strict=True):
            expected[sender, start : start + size] += 1
    np.testing.assert_array_equal(axir.grad(total)(arguments[0]), expected)


def test_bad_slices() -> None:
    x, k = jnp.ones((2, 4)), jnp.zeros((2, 3), int)

    def exchange(operand: Any, offsets: Any) -> Any:
        return lax.ragged_all_to_all(
            operand, operand, offsets, offsets, offsets, offsets, axis_name="i"
        )

    with pytest.raises(axir.errors.ShapeError, match="multiple of 2"):
        axir.vmap(exchange, axis_name="i")(x, k)


def test_pcast_changes_no_value() -> None:
    x = axir.vmap(lambda x: lax.pcast(x, "i", to="varying"), axis_name="i")(jnp.arange(3))
    assert x.tolist() == [0, 1, 2]
    with pytest.raises(axir.errors.ParameterError, match="varying"):
        axir.vmap(lambda x: lax.pcast(x, "i", to="other"), axis_name="i")(jnp.arange(3))

"""Ragged products, compared with JAX's in all modes, and their errors."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import axir
from axir import lax

SIZES = np.array([2, 0, 3], np.int32)
ROWS = np.array([[2, 0, 3], [1, 2, 3]], np.int32)
CASES = {
    "free": ((6, 4), (3, 4, 5), SIZES, ((((1,), (1,)), ((), ())), (0,), (0,))),
    "contracted": ((4, 6), (6, 5), SIZES, ((((1,), (0,)), ((), ())), (1,), ())),
    "batched free": ((2, 6, 4), (3, 2, 4, 5), SIZES, ((((2,), (2,)), ((0,), (1,))), (1,), (0,))),
    "sizes by batch": ((2, 6, 4), (3, 2, 4, 5), ROWS, ((((2,), (2,)), ((0,), (1,))), (1,), (0,))),
    "batched contracted": ((2, 4, 6), (2, 6, 5), ROWS, ((((2,), (1,)), ((0,), (0,))), (2,), ())),
    "batch": ((6, 3, 4), (6, 4, 5), SIZES, ((((2,), (1,)), ((0,), (0,))), (0,), ())),
}


def _operands(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    return [generator.normal(size=shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("name", CASES)
def test_modes_agree_with_jax(name: str) -> None:
    lhs_shape, rhs_shape, sizes, numbers = CASES[name]
    lhs, rhs = _operands(lhs_shape, rhs_shape)
    theirs = jax.lax.ragged_dot_general(
        lhs, rhs, sizes, jax.lax.RaggedDotDimensionNumbers(*numbers)
    )

    def product(*operands: Any) -> Any:
        return lax.ragged_dot_general(*operands, lax.RaggedDotDimensionNumbers(*numbers))

    for function in (product, axir.jit(product)):
        ours = np.asarray(function(lhs, rhs, sizes))
        np.testing.assert_allclose(ours, np.asarray(theirs), rtol=1e-5, atol=1e-6)


def test_derivative_agrees_with_jax() -> None:
    lhs, rhs = _operands((6, 4), (3, 4, 5))
    ours = axir.grad(lambda y: (lax.ragged_dot(lhs, y, SIZES) ** 2).sum())(rhs)
    theirs = jax.grad(lambda y: (jax.lax.ragged_dot(lhs, y, SIZES) ** 2).sum())(rhs)
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-4, atol=1e-5)


def test_errors_name_what_is_wrong() -> None:
    lhs, rhs = _operands((6, 4), (3, 4, 5))
    with pytest.raises(axir.errors.DTypeError, match="integers"):
        lax.ragged_dot(lhs, rhs, np.ones(3, np.float32))
    with pytest.raises(axir.errors.ShapeError, match="do not fit"):
        lax.ragged_dot(lhs, rhs, np.ones((2, 3), np.int32))
    with pytest.raises(axir.errors.ParameterError, match="group_offset"):
        lax.ragged_dot(lhs, rhs, SIZES, group_offset=np.array([1]))
    numbers = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), ())
    with pytest.raises(axir.errors.ParameterError, match="needs 1 group"):
        lax.ragged_dot_general(lhs, rhs, SIZES, numbers)


def test_platform_dependent_takes_the_function_of_the_platform() -> None:
    assert float(lax.platform_dependent(1.0, default=lambda x: x + 2)) == 3.0
    name = axir.default_backend()
    chosen = lax.platform_dependent(1.0, **{name: lambda x: x + 1}, default=lambda x: x)
    assert float(chosen) == 2.0
    with pytest.raises(axir.errors.ParameterError, match="no function for the platform"):
        lax.platform_dependent(1.0, tpu=lambda x: x)


def test_rng_uniform_draws_other_numbers_each_time_a_program_runs() -> None:
    draw = axir.jit(lambda: lax.rng_uniform(2.0, 3.0, (100,)))
    first, second = np.asarray(draw()), np.asarray(draw())
    assert first.min() >= 2
    assert first.max() < 3
    assert not np.array_equal(first, second)


def test_clear_caches_traces_anew() -> None:
    traced = []
    f = axir.jit(lambda x: traced.append(x) or x + 1)
    assert float(f(1.0)) == float(f(1.0)) == 2.0
    assert len(traced) == 1
    axir.clear_caches()
    assert float(f(1.0)) == 2.0
    assert len(traced) == 2

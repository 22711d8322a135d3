"""Derivatives of functions of complex numbers: random programs, edge cases, JAX's conventions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest

import axir
from axir.dialect.core.config import config

_HOLOMORPHIC = (
    "neg", "square", "exp", "exp2", "log", "expm1", "log1p", "logistic", "sqrt", "rsqrt", "sin",
    "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "atanh",
)  # fmt: skip
_HOLOMORPHIC_BINARY = ("add", "sub", "mul", "div", "pow", "atan2")
# Each takes complex numbers to complex numbers and is not holomorphic.
_OTHERS: dict[str, Callable[[Any, Any], Any]] = {
    "conj": lambda lax, z: lax.conj(z),
    "abs": lambda lax, z: lax.complex(lax.abs(z), lax.neg(lax.abs(z))),
    "real": lambda lax, z: lax.complex(lax.sin(lax.real(z)), lax.real(z)),
    "imag": lambda lax, z: lax.complex(lax.imag(z), lax.exp(lax.imag(z))),
    "angle": lambda lax, z: lax.complex(lax.atan2(lax.imag(z), lax.real(z)), lax.real(z)),
    "parts": lambda lax, z: lax.mul(z, lax.conj(z)),
    "max": lambda lax, z: lax.max(z, lax.neg(z)),
}
_RESOLUTION = {"complex64": 1e-3, "complex128": 1e-9}


@pytest.fixture(autouse=True)
def wide_dtypes() -> Iterator[None]:
    """Lets both sides keep 64-bit dtypes."""
    with config(jax_enable_x64=True), jax.enable_x64(True):
        yield


def _program(seed: int, is_holomorphic: bool) -> Callable[..., Any]:
    """A random program of two complex vectors; it gets the `lax` of either side."""
    generator = np.random.default_rng(seed)
    steps: list[tuple[str, int, int]] = []
    names = [*_HOLOMORPHIC, *_HOLOMORPHIC_BINARY]
    if not is_holomorphic:
        names += [*_OTHERS, *_OTHERS]
    for count in range(2, 8):
        steps.append((str(generator.choice(names)), *map(int, generator.integers(0, count, 2))))

    def run(lax: Any, x: Any, y: Any) -> Any:
        values = [x, y]
        for name, first, second in steps:
            operand = values[first]
            if name in _OTHERS:
                result = _OTHERS[name](lax, operand)
            elif name in _HOLOMORPHIC_BINARY:
                result = getattr(lax, name)(operand, values[second])
            else:
                result = getattr(lax, name)(operand)
            # A bounded, smooth function keeps the values moderate (and is itself complex).
            values.append(lax.tanh(lax.mul(result, lax.full_like(result, 0.3 + 0.1j))))
        return lax.add(values[-1], lax.mul(values[-2], values[-3]))

    return run


def _operands(seed: int, dtype: str) -> tuple[np.ndarray, ...]:
    """Two primals, away from branch points, and two tangents."""
    generator = np.random.default_rng([seed, 1])

    def draw(low: float, high: float) -> np.ndarray:
        radius, angle = generator.uniform(low, high, 3), generator.uniform(-2.5, 2.5, 3)
        return (radius * np.exp(1j * angle)).astype(dtype)

    return draw(0.3, 0.8), draw(0.3, 0.8), draw(0.5, 1), draw(0.5, 1)


def _assert_close(ours: Any, theirs: Any, dtype: str, what: str) -> None:
    for mine, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        mine, other = np.asarray(mine), np.asarray(other)
        assert mine.dtype == other.dtype, what
        # At a singularity the one is nan where the other is infinite, next to it both are noise.
        is_regular = np.isfinite(other)
        scale = max(1.0, float(np.abs(other[is_regular]).max(initial=0)))
        if scale < 1e3:
            np.testing.assert_allclose(
                mine[is_regular],
                other[is_regular],
                rtol=0,
                atol=_RESOLUTION[dtype] * scale,
                err_msg=what,
            )


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("seed", range(6))
def test_random_program_has_the_derivatives_of_jax(seed: int, dtype: str) -> None:
    program = _program(seed, is_holomorphic=False)

    def derivatives(module: Any, x: Any, y: Any, dx: Any, dy: Any) -> dict[str, Any]:
        def function(a: Any, b: Any) -> Any:
            return program(module.lax, a, b)

        def loss(a: Any, b: Any) -> Any:
            z = function(a, b)
            numpy = module.numpy
            return numpy.sum(numpy.real(z) ** 2 + numpy.real(z) * numpy.imag(z))

        def tangent(a: Any, b: Any) -> Any:
            return module.jvp(function, (a, b), (dx, dy))[1]

        value, pull_back = module.vjp(function, x, y)
        return {
            "jvp": module.jvp(function, (x, y), (dx, dy)),
            "vjp": (value, pull_back(dx)),
            "second": module.jvp(tangent, (x, y), (dy, dx)),
            "grad": module.grad(loss, (0, 1))(x, y),
            "jvp of grad": module.jvp(module.grad(loss, (0, 1)), (x, y), (dx, dy))[1],
        }

    operands = _operands(seed, dtype)
    ours = derivatives(axir, *operands)
    theirs = jax.jit(functools.partial(derivatives, jax))(*operands)
    for name in ours:
        _assert_close(ours[name], theirs[name], dtype, name)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("seed", range(3))
def test_holomorphic_derivatives_are_those_of_jax(seed: int, dtype: str) -> None:
    program = _program(seed + 1000, is_holomorphic=True)
    operands = _operands(seed, dtype)[:2]

    def derivatives(module: Any, x: Any, y: Any) -> dict[str, Any]:
        def function(a: Any) -> Any:
            return program(module.lax, a, y)

        def total(a: Any) -> Any:
            return module.numpy.sum(function(a))

        return {
            "grad": module.grad(total, holomorphic=True)(x),
            "grad of grad": module.grad(
                lambda a: module.numpy.sum(module.grad(total, holomorphic=True)(a)),
                holomorphic=True,
            )(x),
            "jacfwd": module.jacfwd(function, holomorphic=True)(x),
            "jacrev": module.jacrev(function, holomorphic=True)(x),
        }

    ours = derivatives(axir, *operands)
    theirs = jax.jit(functools.partial(derivatives, jax))(*operands)
    for name in ours:
        _assert_close(ours[name], theirs[name], dtype, name)


def test_compiled_gradient_of_complex_program_is_the_eager_one() -> None:
    lax, jnp = axir.lax, axir.numpy
    x, y, _, _ = _operands(0, "complex128")

    def loss(a: Any, b: Any) -> Any:
        z = lax.mul(lax.sin(lax.div(a, b)), lax.conj(b))
        return jnp.sum(jnp.abs(z) + jnp.imag(lax.max(a, b)))

    gradient = axir.grad(loss, (0, 1))
    for eager, compiled in zip(gradient(x, y), axir.jit(gradient)(x, y), strict=True):
        np.testing.assert_allclose(np.asarray(compiled), np.asarray(eager), rtol=1e-12)


def test_gradient_is_the_conjugate_of_the_direction_of_steepest_ascent() -> None:
    # grad of u(x + iy) is du/dx - i du/dy.
    z = np.complex128(1 + 2j)
    assert complex(axir.grad(lambda z: axir.numpy.real(z))(z)) == 1
    assert complex(axir.grad(lambda z: axir.numpy.imag(z))(z)) == -1j
    squared = axir.grad(lambda z: axir.numpy.real(z) ** 2 + axir.numpy.imag(z) ** 2)(z)
    assert complex(squared) == 2 - 4j


def test_derivative_of_the_modulus_at_the_origin_is_zero() -> None:
    zero = np.complex128(0)
    assert complex(axir.grad(axir.numpy.abs)(zero)) == 0
    assert float(axir.jvp(axir.numpy.abs, (zero,), (np.complex128(1 + 1j),))[1]) == 0


def test_derivative_of_a_direction_is_tangential() -> None:
    # z / |z| turns with the tangent's orthogonal part and does not change along z.
    z = np.complex128(3 + 4j)
    along = axir.jvp(axir.numpy.sign, (z,), (z,))[1]
    across = axir.jvp(axir.numpy.sign, (z,), (1j * z,))[1]
    np.testing.assert_allclose(complex(along), 0, atol=1e-15)
    np.testing.assert_allclose(complex(across), 1j * z / 5, rtol=1e-14)


def test_derivative_of_acosh_is_right_in_the_left_half_plane() -> None:
    z, step = np.complex128(-0.7 + 0.2j), 1e-6
    slope = complex(axir.grad(axir.lax.acosh, holomorphic=True)(z))
    difference = (np.arccosh(z + step) - np.arccosh(z - step)) / (2 * step)
    np.testing.assert_allclose(slope, difference, rtol=1e-8)


def test_power_has_mixed_derivatives_at_exponent_zero() -> None:
    def slope(y: Any) -> Any:
        return axir.grad(axir.lax.pow)(np.float64(2.0), y)

    np.testing.assert_allclose(float(axir.grad(slope)(np.float64(0.0))), 0.5)


def test_gradients_of_the_wrong_kind_are_refused() -> None:
    with pytest.raises(TypeError, match="holomorphic"):
        axir.grad(axir.numpy.sin, holomorphic=True)(1.0)
    with pytest.raises(TypeError, match="holomorphic"):
        axir.grad(lambda z: z * 1j)(1.0 + 1j)

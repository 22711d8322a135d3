"""Programs as users write them, with an oracle for each: their runs and comparisons.

A program is run eagerly and under `jit`; its oracle is computed by NumPy or SciPy in double
precision. If a program is differentiated, the gradients of both runs are compared with each other
and with the slope of the oracle along a fixed direction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import axir as jax
import axir.numpy as jnp


@dataclass(frozen=True)
class Program:
    """A function, its arguments, and a function of NumPy arrays with the expected results.

    Attributes:
        function: takes `arguments`, trees of NumPy arrays.
        expected: takes the same arguments, floats in double precision.
        tolerance: of floats, relative to the largest entry; integers are exact.
        gradient: the positions of the arguments to differentiate by.
        x64: whether to run with 64-bit types.
    """

    function: Callable
    arguments: tuple
    expected: Callable
    tolerance: float = 1e-5
    gradient: tuple[int, ...] = ()
    x64: bool = False

    def __str__(self) -> str:
        return self.function.__name__

    def check(self) -> None:
        """Asserts that eager and compiled results are the oracle's, and so are gradients."""
        in_double = jax.tree.map(as_double, self.arguments)
        expected = self.expected(*in_double)
        with jax.enable_x64(self.x64):
            arguments = jax.tree.map(jnp.asarray, self.arguments)
            assert_close(self.function(*arguments), expected, self.tolerance)
            if not self.gradient:
                assert_close(jax.jit(self.function)(*arguments), expected, self.tolerance)
                return
            differentiated = jax.grad(self.objective, self.gradient, has_aux=True)
            eager, _ = differentiated(*arguments)
            compiled, outputs = jax.jit(differentiated)(*arguments)
        assert_close(outputs, expected, self.tolerance)
        assert_close(compiled, eager, 10 * self.tolerance)
        self.check_slope(in_double, compiled)

    def objective(self, *arguments: Any) -> tuple[Any, Any]:
        """A number that depends on every float that the program returns, and the results."""
        outputs = self.function(*arguments)
        floats = [x for x in jax.tree.leaves(outputs) if jnp.issubdtype(x.dtype, jnp.floating)]
        return sum(jnp.mean(x * jnp.asarray(weights(x.shape), x.dtype)) for x in floats), outputs

    def check_slope(self, arguments: tuple, gradient: Any) -> None:
        """Compares the derivative along a direction with a difference quotient of the oracle."""
        leaves, tree = jax.tree.flatten([arguments[position] for position in self.gradient])
        directions = [weights(leaf.shape, 1.3) for leaf in leaves]

        def along(step: float) -> float:
            moved = [x + step * v for x, v in zip(leaves, directions, strict=True)]
            inputs = list(arguments)
            for position, argument in zip(self.gradient, tree.unflatten(moved), strict=True):
                inputs[position] = argument
            outputs = map(np.asarray, jax.tree.leaves(self.expected(*inputs)))
            floats = [x for x in outputs if x.dtype.kind == "f"]
            return sum(np.mean(x * weights(x.shape)) for x in floats)

        slope = (along(1e-5) - along(-1e-5)) / 2e-5
        slopes = map(as_double, jax.tree.leaves(gradient))
        parts = [g * v for g, v in zip(slopes, directions, strict=True)]
        size = sum(np.abs(part).sum() for part in parts)
        assert abs(sum(part.sum() for part in parts) - slope) <= 20 * self.tolerance * size


def as_double(x: Any) -> Any:
    """Gives an array of floats in double precision, and others as they are."""
    x = np.asarray(x)
    return x if x.dtype.kind in "iubc" else x.astype(np.float64)


def weights(shape: tuple[int, ...], frequency: float = 1.0) -> np.ndarray:
    """Different numbers between -1 and 1."""
    return np.cos(frequency * (1 + np.arange(np.prod(shape, dtype=int)))).reshape(shape)


def normal(*shape: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    """Normal f32 numbers, the same for the same shape and seed."""
    return (scale * np.random.default_rng([seed, *shape]).normal(size=shape)).astype(np.float32)


def numerical_gradient(function: Callable, parameters: Any) -> Any:
    """The gradient of a function of NumPy arrays in double precision, by central differences."""
    leaves, tree = jax.tree.flatten(parameters)
    leaves = [np.array(leaf, np.float64) for leaf in leaves]
    gradients = [np.zeros_like(leaf) for leaf in leaves]
    for leaf, gradient in zip(leaves, gradients, strict=True):
        for place in np.ndindex(leaf.shape):
            middle = leaf[place]
            leaf[place] = middle + 1e-5
            above = function(tree.unflatten(leaves))
            leaf[place] = middle - 1e-5
            gradient[place] = (above - function(tree.unflatten(leaves))) / 2e-5
            leaf[place] = middle
    return tree.unflatten(gradients)


def assert_close(results: Any, expected: Any, tolerance: float) -> None:
    """Asserts equal structure and shapes; floats up to the tolerance, all others exactly."""
    ours, theirs = jax.tree.leaves(results), jax.tree.leaves(expected)
    assert len(ours) == len(theirs), f"{len(ours)} results, not {len(theirs)}"
    for place, (result, value) in enumerate(zip(ours, theirs, strict=True)):
        result, value = as_double(result), as_double(value)
        assert result.shape == value.shape, f"result {place}: {result.shape}, not {value.shape}"
        if value.dtype.kind not in "fc":
            np.testing.assert_array_equal(result, value, err_msg=f"result {place}")
            continue
        finite = np.abs(value)[np.isfinite(value)]
        scale = float(finite.max(initial=1e-30))
        np.testing.assert_allclose(
            result, value, rtol=0, atol=tolerance * scale, err_msg=f"result {place}"
        )


def over(programs: list[Program]) -> Any:
    """The mark that runs a test of one `program` for each of them."""
    return pytest.mark.parametrize("program", programs, ids=str)

"""Names that documents of some years ago use, against what NumPy calls them today."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp

X = np.random.default_rng(0).integers(0, 3, (4, 3)).astype(np.float32)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("alltrue", (X, 0), np.all(X, 0)),
        ("sometrue", (X, 1), np.any(X, 1)),
        ("product", (X + 1, 0), np.prod(X + 1, 0)),
        ("cumproduct", (X + 1, 0), np.cumprod(X + 1, 0)),
        ("row_stack", ((X, X),), np.vstack((X, X))),
        ("trapz", (X,), np.trapezoid(X)),
        ("msort", (X,), np.sort(X, axis=0)),
        ("in1d", (X, X[0]), np.isin(X, X[0]).reshape(-1)),
    ],
)
def test_functions_of_numpy(name: str, arguments: Any, expected: np.ndarray) -> None:
    function = getattr(jnp, name)
    np.testing.assert_allclose(function(*arguments), expected, rtol=1e-6)
    assert function.__name__ == name
    assert "deprecated" in function.__doc__


def test_categories_of_arrays() -> None:
    assert jnp.issubsctype(jnp.ones(2), jnp.floating)
    assert not jnp.issubsctype(jnp.int32, jnp.floating)
    assert (jnp.NINF, jnp.PZERO, str(jnp.NZERO)) == (-np.inf, 0.0, "-0.0")


def test_shuffle_permutes_each_vector_along_the_axis() -> None:
    x = np.arange(60).reshape(20, 3)
    shuffled = np.asarray(axir.random.shuffle(axir.random.key(0), x))
    np.testing.assert_array_equal(np.sort(shuffled, axis=0), x)
    assert (shuffled % 3 == x % 3).all()
    assert len({tuple(column // 3) for column in shuffled.T}) == 3


def test_normalize_is_standardize() -> None:
    np.testing.assert_array_equal(axir.nn.normalize(X), axir.nn.standardize(X))


def test_traced_values_are_their_own_copies() -> None:
    def program(x: Any) -> Any:
        assert copy.copy(x) is x
        assert copy.deepcopy({"x": x})["x"] is x
        return x + 1

    assert str(axir.make_jaxpr(program)(1.0)).count("add") == 1


def test_generators_are_no_programs() -> None:
    def numbers(x: Any) -> Any:
        yield x

    with pytest.raises(TypeError, match="generator function 'numbers'"):
        axir.jit(numbers)


def test_programs_inside_of_programs_print_as_such() -> None:
    """Prints the function that an equation calls, as interpreters look at it."""
    outer = axir.make_jaxpr(lambda x: axir.lax.scan(lambda c, y: (jnp.cos(c) * y, c), x, X[0]))(1.0)
    (equation,) = [e for e in outer.jaxpr.eqns if e.primitive.name == "scan"]
    assert " cos " in str(equation.params["jaxpr"])

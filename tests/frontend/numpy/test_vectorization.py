"""`vectorize` against JAX."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from support.against_jax import compare, same_error

import axir
import axir.numpy as jnp
from axir.dialect.core.errors import ParameterError, ShapeError


def both(function: Callable[..., Any], **options: Any) -> list[Callable[..., Any]]:
    return [library.vectorize(function, **options) for library in (jnp, jax.numpy)]


def ones(*shape: int) -> np.ndarray:
    return np.arange(1.0, 1 + np.prod(shape, dtype=int)).reshape(shape).astype(np.float32)


SHAPES = [
    ((), ()),
    ((3,), ()),
    ((), (3,)),
    ((2, 3), (3,)),
    ((2, 1), (1, 3)),
    ((1, 1), (1,)),
    ((4, 1, 3), (2, 1)),
    ((0, 3), (3,)),
]


@pytest.mark.parametrize("shapes", SHAPES)
def test_scalars(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    compare(*both(lambda x, y: x * y + x), *(ones(*shape) for shape in shapes))


@pytest.mark.parametrize("shapes", SHAPES)
def test_core_dimensions(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    x, y = ones(*shapes[0], 2, 4), ones(*shapes[1], 4)
    compare(*both(lambda x, y: x @ y, signature="(n,m),(m)->(n)"), x, y)


def test_several_results() -> None:
    compare(*both(lambda x: (x.sum(), x * 2), signature="(n)->(),(n)"), ones(2, 3))
    compare(*both(lambda x: (x, -x)), ones(2, 3))


def test_fixed_and_new_dimensions() -> None:
    compare(*both(lambda x: x[:2], signature="(3)->(k)"), ones(5, 3))
    assert "'3'" in str(same_error(*both(lambda x: x, signature="(3)->()"), ones(5, 4)))


def test_excluded() -> None:
    compare(*both(lambda x, y: x + y.sum(), excluded={1}), ones(3), ones(2))
    compare(*both(lambda x, y: x if y is None else y), ones(3), None)
    result = jnp.vectorize(lambda x, *, n: x**n, excluded={"n"})(ones(3), n=2)
    np.testing.assert_array_equal(result, [1, 4, 9])


def test_a_function_may_return_a_node_with_a_shape() -> None:
    @axir.tree_util.register_dataclass
    @dataclasses.dataclass
    class Wrapped:
        value: Any

        @property
        def shape(self) -> tuple[int, ...]:
            return self.value.shape

        def __array__(self) -> np.ndarray:
            return np.asarray(self.value)

    wrap = jnp.vectorize(lambda x: Wrapped(jnp.stack([x, -x])), signature="()->(n)")
    np.testing.assert_array_equal(axir.jit(wrap)(ones(3)).value, [[1, -1], [2, -2], [3, -3]])


def test_nested_transformations() -> None:
    gradient = jnp.vectorize(axir.grad(lambda x, y: x**2 * y))
    result = axir.jit(gradient)(ones(2, 1), ones(3))
    np.testing.assert_allclose(result, 2 * ones(2, 1) * ones(3))


def test_errors_of_shapes() -> None:
    matvec = both(lambda x, y: x @ y, signature="(n,m),(m)->(n)")
    assert "inconsistent size" in str(same_error(*matvec, ones(5, 2, 3), ones(4)))
    assert "core dimensions (n, m)" in str(same_error(*matvec, ones(3), ones(3)))
    assert "2 arguments, but got 1" in str(same_error(*matvec, ones(2, 3)))
    same_error(*both(lambda x, y: x + y), ones(2), ones(3))


def test_errors_of_results() -> None:
    x = ones(3)
    assert "returned 2" in str(same_error(*both(lambda x: (x, x), signature="()->()"), x))
    assert "tuple" in str(same_error(*both(lambda x: x, signature="()->(),()"), x))
    assert "result of shape ()" in str(same_error(*both(lambda x: x, signature="()->(n)"), x))
    same_error(*both(lambda x: x[:2], signature="(n)->(n)"), x)


@pytest.mark.parametrize("signature", ["(n->", "n->()", "()", "(n)->", "(n m)->()"])
def test_errors_of_signatures(signature: str) -> None:
    with pytest.raises(ParameterError, match="is not a signature"):
        jnp.vectorize(lambda x: x, signature=signature)(ones(3))


def test_errors_of_excluded() -> None:
    with pytest.raises(ValueError, match="negative position"):
        jnp.vectorize(lambda x: x, excluded={-1})
    with pytest.raises(TypeError, match="positions and names"):
        jnp.vectorize(lambda x: x, excluded={1.5})
    with pytest.raises(TypeError, match="by position"):
        jnp.vectorize(lambda x, y: x)(ones(3), y=ones(3))


def test_shape_errors_are_shape_errors() -> None:
    with pytest.raises(ShapeError):
        jnp.vectorize(lambda x: x, signature="(n,n)->()")(ones(2, 3))

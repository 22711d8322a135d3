"""`pmap` on one device: values and derivatives are the same as the mapped function's."""

from __future__ import annotations

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import lax
from axir.dialect.core.errors import TreeError
from axir.runtime import DeviceNotFoundError


def normalized(x, scale):
    return x * scale / lax.psum(jnp.sum(x), "i")


X = jnp.array([[1.0, 3.0]])


def test_values() -> None:
    result = axir.pmap(normalized, "i", in_axes=(0, None))(X, 2.0)
    np.testing.assert_allclose(np.asarray(result), [[0.5, 1.5]])


def test_gradient_through_the_map() -> None:
    def loss(mapping):
        return lambda x: jnp.sum(mapping(x, 2.0) ** 2)

    ours = loss(axir.pmap(normalized, "i", in_axes=(0, None)))
    vectorized = loss(axir.vmap(normalized, in_axes=(0, None), axis_name="i"))
    np.testing.assert_allclose(axir.grad(ours)(X), axir.grad(vectorized)(X), rtol=1e-6)
    np.testing.assert_allclose(axir.jit(axir.grad(ours))(X), axir.grad(vectorized)(X), rtol=1e-6)


def test_the_jaxpr_shows_the_function_of_one_element() -> None:
    mapped = axir.pmap(lambda x: x / lax.psum(x, axis_name="rows"), axis_name="rows")
    text = str(axir.make_jaxpr(mapped)(jnp.ones((3, 4))))
    assert "shard_map[\n      auto=()\n      axes=(('rows', 3),)\n" in text
    assert "in_layouts=((('rows',), ()),)\n      jaxpr={ lambda ; c:f32[1,4]." in text
    assert "psum[axes=('rows',)" in text


def test_static_arguments_are_passed_on() -> None:
    mapped = axir.pmap(lambda n, x: x * len(n), static_broadcasted_argnums=0)
    np.testing.assert_array_equal(np.asarray(mapped("abc", X)), 3 * np.asarray(X))
    with pytest.raises(TreeError, match="static_broadcasted_argnums"):
        axir.pmap(lambda x: x, static_broadcasted_argnums=4)(X)


def test_maps_of_one_function_share_programs() -> None:
    traces = []

    def double(x):
        traces.append(x.shape)
        return x * 2

    for _ in range(2):
        axir.pmap(double)(X)
        axir.pmap(double, "i")(X)
        axir.pmap(double, in_axes=[0])(X)  # options that cannot be compared
    assert len(traces) <= 4
    np.testing.assert_array_equal(axir.pmap(double, out_axes=1)(X), 2 * np.asarray(X).T)


def test_too_few_devices_are_counted() -> None:
    with pytest.raises(DeviceNotFoundError, match="extent 3, but there are 1 devices"):
        axir.pmap(lambda x: x)(jnp.ones(3))

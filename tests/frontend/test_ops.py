"""`axir.ops`: segments and functional updates, compared with JAX and NumPy."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from support.against_jax import assert_same

import axir
import axir.numpy as jnp
from axir import ops
from axir.dialect.core.errors import ConcretizationTypeError, DTypeError, ParameterError, ShapeError

NAMES = ("segment_sum", "segment_prod", "segment_max", "segment_min")
IDS = np.array([0, 2, 2, 5, -1, 1, 0], np.int32)
RNG = np.random.default_rng(0)


def data(dtype: Any, *shape: int) -> np.ndarray:
    return RNG.integers(0, 9, shape).astype(dtype)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8", "bfloat16", "bool"])
def test_segments_are_jax_s(name: str, dtype: str) -> None:
    if dtype == "bool" and name in NAMES[:2]:
        pytest.skip("bools have neither sum nor product")
    ours, theirs = getattr(ops, name), getattr(jax.ops, name)
    for shape in ((7,), (7, 2), (7, 0)):
        x = data(dtype if dtype != "bfloat16" else jax.numpy.bfloat16, *shape)
        for options in ({}, {"num_segments": 4}, {"num_segments": 3, "mode": "clip"}):
            assert_same(ours(x, IDS, **options), theirs(x, IDS, **options), what=name)
        options = {"num_segments": 4, "bucket_size": 3}
        assert_same(ours(x, IDS, **options), theirs(x, IDS, **options), 16.0, what=name)


@pytest.mark.parametrize("name", NAMES)
def test_segments_are_compiled_and_differentiated(name: str) -> None:
    x = RNG.normal(size=(7, 3)).astype(np.float32)

    def reduced(module: Any) -> Any:
        return lambda x, ids: getattr(module.ops, name)(x, ids, 4, unique_indices=False)

    compiled = axir.jit(reduced(axir))(x, IDS)
    np.testing.assert_allclose(compiled, reduced(axir)(x, IDS), rtol=1e-6)
    if name != "segment_prod":  # a product has no derivative where segments have several elements
        weights = RNG.normal(size=(4, 3)).astype(np.float32)
        ours = axir.grad(
            lambda x: (
                jnp.where(jnp.isfinite(r := reduced(axir)(x, IDS)), r, 0).ravel() @ weights.ravel()
            )
        )(x)
        theirs = jax.grad(
            lambda x: (
                jax.numpy.where(jax.numpy.isfinite(r := reduced(jax)(x, IDS)), r, 0).ravel()
                @ weights.ravel()
            )
        )(x)
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_large_segments_take_the_way_of_ops() -> None:
    x, ids = data("float32", 5000), RNG.integers(0, 100, 5000).astype(np.int32)
    np.testing.assert_array_equal(ops.segment_sum(x, ids, 100), np.bincount(ids, x, 100))


def test_errors_of_segments() -> None:
    x = np.ones(7, np.float32)
    with pytest.raises(ConcretizationTypeError, match="num_segments"):
        axir.jit(ops.segment_sum)(x, IDS)
    with pytest.raises(ShapeError, match="broadcast"):
        ops.segment_sum(x, IDS[:3])
    with pytest.raises(DTypeError, match="integers"):
        ops.segment_max(x, x)
    with pytest.raises(DTypeError, match="segment_max"):
        ops.segment_sum(x > 0, IDS)
    with pytest.raises(ParameterError, match="bucket_size"):
        ops.segment_sum(x, IDS, bucket_size=0)
    with pytest.raises(ParameterError, match="negative"):
        ops.segment_sum(x, IDS, num_segments=-1)


def test_index_updates() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    part = ops.index[1:, ::2]
    expected = {
        "index_update": np.full((2, 2), 5),
        "index_add": x[part] + 5,
        "index_mul": x[part] * 5,
        "index_min": np.minimum(x[part], 5),
        "index_max": np.maximum(x[part], 5),
    }
    for name, values in expected.items():
        whole = x.copy()
        whole[part] = values
        np.testing.assert_array_equal(getattr(ops, name)(x, part, 5), whole, err_msg=name)
        compiled = axir.jit(lambda x, y, name=name: getattr(ops, name)(x, part, y))
        np.testing.assert_array_equal(compiled(x, 5.0), whole, err_msg=name)

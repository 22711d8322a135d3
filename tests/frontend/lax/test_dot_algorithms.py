"""Algorithms of contractions, scaled products, accuracy of functions."""

from __future__ import annotations

from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import lax

X = np.random.default_rng(0).normal(size=(6, 8)).astype(np.float32)
F8 = ml_dtypes.float8_e4m3fn


def product_of(x: np.ndarray, dtype: Any) -> np.ndarray:
    rounded = x.astype(dtype).astype(np.float64)
    return rounded @ rounded.T


@pytest.mark.parametrize(
    ("precision", "dtype"),
    [
        ("BF16_BF16_F32", ml_dtypes.bfloat16),
        ("F16_F16_F32", np.float16),
        ("F32_F32_F32", np.float32),
        ("BF16_BF16_F32_X3", np.float32),
        (lax.DotAlgorithmPreset.TF32_TF32_F32, np.float32),
        (lax.DotAlgorithm(jnp.float8_e5m2, jnp.float8_e5m2, jnp.float32), ml_dtypes.float8_e5m2),
    ],
)
def test_operands_are_rounded(precision: Any, dtype: Any) -> None:
    result = jnp.matmul(X, X.T, precision=precision)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, product_of(X, dtype), rtol=2e-6, atol=4e-6)


def test_presets_are_those_of_jax() -> None:
    assert list(lax.DotAlgorithmPreset.__members__) == list(jax.lax.DotAlgorithmPreset.__members__)
    assert list(lax.AccuracyMode.__members__) == list(jax.lax.AccuracyMode.__members__)


def test_sums_are_in_the_accumulation_type() -> None:
    x = np.full((4096,), 0.25, np.float16)
    total = lax.dot(x, np.ones_like(x), precision="F16_F16_F32")
    assert total.dtype == np.float16
    assert float(total) == 1024.0
    wide = lax.dot(x, x, precision="F16_F16_F32", preferred_element_type=jnp.float32)
    assert wide.dtype == np.float32
    assert float(wide) == 256.0


def test_narrow_operands_of_two_dtypes() -> None:
    a, b = X.astype(F8), X.astype(ml_dtypes.float8_e5m2)
    expected = a.astype(np.float64) @ b.astype(np.float64).T
    numbers = (((1,), (1,)), ((), ()))
    for precision in (None, "ANY_F8_ANY_F8_F32"):
        result = lax.dot_general(a, b, numbers, precision, preferred_element_type=jnp.float32)
        np.testing.assert_allclose(result, expected, rtol=2e-6, atol=4e-6)


def test_scaled_dot() -> None:
    scale = np.exp2(np.arange(12).reshape(6, 2) % 5).astype(np.float32)
    expected = (X * np.repeat(scale, 4, axis=1)) @ X.T
    result = lax.scaled_dot(X, X.T, lhs_scale=scale, preferred_element_type=jnp.float32)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)
    assert lax.scaled_dot(X[None], X.T[None]).dtype == jnp.bfloat16


def test_modes_of_accuracy() -> None:
    assert float(lax.sin(1.0, accuracy=lax.AccuracyMode.HIGHEST)) == float(lax.sin(1.0))
    with pytest.raises(axir.errors.ParameterError, match="AccuracyMode"):
        lax.sin(1.0, accuracy=lax.Tolerance(rtol=1e-3))


def test_a_sharding_over_one_device_is_where_values_are() -> None:
    here = axir.sharding.SingleDeviceSharding(axir.devices()[0])
    tree = {"a": jnp.ones(2)}
    assert lax.with_sharding_constraint(tree, here)["a"].tolist() == [1.0, 1.0]
    with pytest.raises(axir.errors.ParameterError, match="neither a device nor a sharding"):
        lax.with_sharding_constraint(tree, "rows")


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: lax.dot(X, X.T, precision="ANY_F8_ANY_F8_F32"), "DTypeError", "8-bit floats"),
        (lambda: lax.dot(jnp.arange(2), jnp.arange(2), precision="F32_F32_F32"), "DTypeError",
         "real floats"),
        (lambda: lax.dot(X, X.T, precision="F32"), "ParameterError", "not a precision"),
        (lambda: lax.scaled_dot(X, X.T, lhs_scale=X[:, :3]), "ShapeError", "do not divide"),
        (lambda: lax.scaled_dot(X[0], X[0]), "ShapeError", "dimension_numbers"),
        (lambda: lax.Tolerance(rtol=-1.0), "ParameterError", "not negative"),
        (lambda: lax.Tolerance(rtol=1.0, ulps=1), "ParameterError", "rtol and ulps"),
    ],
)  # fmt: skip
def test_errors(call: Any, error: str, text: str) -> None:
    with pytest.raises(getattr(axir.errors, error), match=text):
        call()

"""`scaled_matmul` and `scaled_dot_general`: products of matrices in floats of few bits."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir.nn import get_scaled_dot_general_config, scaled_dot_general, scaled_matmul

NUMBERS = (((2,), (2,)), ((0,), (0,)))
GENERATOR = np.random.default_rng(0)
LHS = GENERATOR.normal(size=(2, 4, 64)).astype(np.float32)
RHS = GENERATOR.normal(size=(2, 32, 64)).astype(np.float32)


def configs(mode: str) -> list[Any]:
    return [get_scaled_dot_general_config(mode)] * 3


def test_scaled_matmul() -> None:
    a, b = LHS.astype(ml_dtypes.float8_e4m3fn), RHS.astype(ml_dtypes.float8_e4m3fn)
    scales = np.exp2(GENERATOR.integers(-3, 4, (2, 32, 2))).astype(ml_dtypes.float8_e8m0fnu)
    expected = np.einsum(
        "bmk,bnk->bmn",
        a.astype(np.float32) * np.repeat(scales[:, :4].astype(np.float32), 32, -1),
        b.astype(np.float32) * np.repeat(scales.astype(np.float32), 32, -1),
    )
    result = scaled_matmul(a, b, scales[:, :4], scales)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(("mode", "error"), [("mxfp8", 0.05), ("nvfp4", 0.2)])
def test_rounded_products_are_close(mode: str, error: float) -> None:
    exact = np.einsum("bmk,bnk->bmn", LHS, RHS)
    result = scaled_dot_general(LHS, RHS, NUMBERS, configs=configs(mode))
    distance = np.linalg.norm(np.asarray(result) - exact) / np.linalg.norm(exact)
    assert 0 < distance < error


def test_elements_of_the_format_are_not_rounded() -> None:
    """Multiplies what float8_e4m3fn holds, times powers of two by block."""
    x = LHS.astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
    x[..., :32] *= 2.0**-5
    x[..., ::32] = 448 * np.array([2.0**-5, 1.0])
    result = scaled_dot_general(x, x, NUMBERS, configs=configs("mxfp8"))
    np.testing.assert_allclose(result, np.einsum("bmk,bnk->bmn", x, x), rtol=1e-5)


def test_without_formats_nothing_is_rounded() -> None:
    result = scaled_dot_general(LHS, RHS, NUMBERS)
    np.testing.assert_allclose(result, np.einsum("bmk,bnk->bmn", LHS, RHS), rtol=1e-5, atol=1e-5)


def test_derivatives_and_other_axes() -> None:
    def loss(a: Any, b: Any, formats: Any) -> Any:
        return (scaled_dot_general(a, b, (((0,), (1,)), ((), ())), configs=formats) ** 2).sum()

    a, b = LHS[0].T, RHS[0]
    exact = axir.grad(lambda a, b: ((a.T @ b.T) ** 2).sum(), (0, 1))(jnp.asarray(a), jnp.asarray(b))
    rounded = axir.grad(loss, (0, 1))(jnp.asarray(a), jnp.asarray(b), configs("mxfp8"))
    for ours, expected in zip(rounded, exact, strict=True):
        distance = np.linalg.norm(np.asarray(ours - expected)) / np.linalg.norm(expected)
        assert 0 < distance < 0.1


def test_errors() -> None:
    with pytest.raises(axir.errors.ParameterError, match="mxfp8"):
        get_scaled_dot_general_config("int8")
    with pytest.raises(axir.errors.ShapeError, match="blocks of 32"):
        scaled_dot_general(LHS[..., :40], RHS[..., :40], NUMBERS, configs=configs("mxfp8"))
    with pytest.raises(axir.errors.ShapeError, match="3-dimensional"):
        scaled_matmul(LHS[0], RHS[0], LHS[0], RHS[0])
    with pytest.raises(axir.errors.ShapeError, match=r"\(B, M, K\)"):
        scaled_matmul(LHS, RHS, LHS, RHS[:, :3])
    with pytest.warns(DeprecationWarning, match="ignored"):
        scaled_dot_general(LHS, RHS, NUMBERS, implementation="cudnn")

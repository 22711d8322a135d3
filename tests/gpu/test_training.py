"""Steps of training and large operations on a GPU give what the CPU's evaluator gives.

`GPU_TESTS=all` runs them; extents are those of real programs, or small on a software device.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from support.gpus import RUNS_ALL, is_software

import axir
import axir.numpy as jnp
from axir.runtime import Device

RNG = np.random.default_rng(0)


def normal(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.asarray(jnp.asarray(RNG.normal(size=shape).astype(np.float32) * 0.3, dtype))


def attention(x: jnp.ndarray, weights: jnp.ndarray, heads: int) -> jnp.ndarray:
    """Causal attention of several heads."""
    length, width = x.shape[-2:]
    parts = (x @ weights).reshape(*x.shape[:-1], 3, heads, width // heads)
    q, k, v = (jnp.moveaxis(parts[..., n, :, :], -2, -3) for n in range(3))
    scores = q @ jnp.swapaxes(k, -1, -2) / np.sqrt(width // heads)
    masked = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
    mixed = axir.nn.softmax(masked.astype(jnp.float32)).astype(x.dtype) @ v
    return jnp.moveaxis(mixed, -3, -2).reshape(x.shape)


def transformer_loss(params, tokens):
    x = params["table"][tokens[:, :-1]]
    x = x + attention(_normalized(x), params["mix"], 2)
    x = x + axir.nn.gelu(_normalized(x) @ params["up"]) @ params["down"]
    logits = axir.nn.log_softmax((_normalized(x) @ params["table"].T).astype(jnp.float32))
    return -jnp.mean(jnp.take_along_axis(logits, tokens[:, 1:, None], -1))


def _normalized(x):
    centered = x - jnp.mean(x, -1, keepdims=True)
    return centered * axir.lax.rsqrt(jnp.mean(centered**2, -1, keepdims=True) + 1e-5)


def convolutional_loss(params, images, labels):
    x = axir.lax.conv_general_dilated(
        images, params["kernel"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    x = axir.lax.reduce_window(
        axir.nn.relu(x), -jnp.inf, axir.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"
    )
    logits = x.reshape(x.shape[0], -1) @ params["out"] + params["bias"]
    return -jnp.mean(jnp.sum(axir.nn.log_softmax(logits) * axir.nn.one_hot(labels, 10), -1))


def perceptron_loss(params, x, y):
    for weights, bias in params:
        x = jnp.tanh(x @ weights + bias)
    return jnp.mean((x - y) ** 2)


def transformer(dtype: str, is_large: bool):
    width, count = (128, 64) if is_large else (16, 8)
    shapes = {
        "table": (50, width), "mix": (width, 3 * width), "up": (width, 2 * width),
        "down": (2 * width, width),
    }  # fmt: skip
    params = {name: normal(*shape, dtype=dtype) for name, shape in shapes.items()}
    return transformer_loss, (params, RNG.integers(0, 50, (4, count)).astype(np.int32))


def convolutional(dtype: str, is_large: bool):
    side, features = (28, 32) if is_large else (8, 4)
    params = {
        "kernel": normal(3, 3, 1, features, dtype=dtype),
        "out": normal(side**2 // 4 * features, 10, dtype=dtype),
        "bias": normal(10, dtype=dtype),
    }
    images = normal(8, side, side, 1, dtype=dtype)
    return convolutional_loss, (params, images, RNG.integers(0, 10, 8).astype(np.int32))


def perceptron(dtype: str, is_large: bool):
    sizes = (784, 512, 10) if is_large else (20, 30, 5)
    params = [
        (normal(n, m, dtype=dtype), normal(m, dtype=dtype)) for n, m in itertools.pairwise(sizes)
    ]
    x, y = normal(32, sizes[0], dtype=dtype), normal(32, sizes[-1], dtype=dtype)
    return perceptron_loss, (params, x, y)


MODELS = {"mlp": perceptron, "cnn": convolutional, "transformer": transformer}
TOLERANCES = {"float32": 2e-4, "bfloat16": 6e-2, "float64": 1e-10}


@pytest.mark.skipif(not RUNS_ALL, reason="GPU_TESTS=all runs steps of training")
@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("name", MODELS)
def test_steps_of_training(gpu: Device, name: str, dtype: str) -> None:
    if dtype == "float64" and gpu.platform == "vulkan":
        pytest.skip("SPIR-V has no functions of 64-bit floats")
    if (name, dtype) == ("cnn", "bfloat16") and is_software(gpu):
        pytest.skip("takes more than five minutes to compile and run on a CPU")
    with axir.enable_x64(dtype == "float64"):
        loss, (params, *data) = MODELS[name](dtype, not is_software(gpu))
        step = axir.value_and_grad(loss)
        value, gradients = axir.jit(step, device=gpu)(params, *data)
        expected, wanted = axir.jit(step, backend="cpu")(params, *data)
        _compare(value, expected, dtype)
        for got, want in zip(*map(axir.tree_util.tree_leaves, (gradients, wanted)), strict=True):
            _compare(got, want, dtype)


def _compare(got, want, dtype: str) -> None:
    got, want = (np.asarray(x).astype(np.float64) for x in (got, want))
    scale = np.abs(want).max()
    np.testing.assert_allclose(got, want, rtol=0, atol=TOLERANCES[dtype] * scale)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"] if RUNS_ALL else ["bfloat16"])
def test_products_of_matrices(gpu: Device, dtype: str) -> None:
    for n in (64,) if is_software(gpu) else (512, 1000, 64):
        x, y = normal(n, n, dtype=dtype), normal(n, n, dtype=dtype)
        found = np.asarray(axir.jit(jnp.matmul, device=gpu)(x, y)).astype(np.float64)
        wanted = x.astype(np.float64) @ y.astype(np.float64)
        bound = np.abs(wanted).max() * (2**-7 if dtype == "bfloat16" else 1e-5)
        assert np.abs(found - wanted).max() <= bound


@pytest.mark.skipif(not RUNS_ALL, reason="GPU_TESTS=all runs large sorts")
def test_large_sorts(gpu: Device) -> None:
    length = 20_000 if is_software(gpu) else 1 << 20
    x = RNG.integers(0, 1 << 30, length).astype(np.int32)
    found, order = axir.jit(lambda x: (jnp.sort(x), jnp.argsort(x)), device=gpu)(x)
    np.testing.assert_array_equal(found, np.sort(x))
    np.testing.assert_array_equal(order, np.argsort(x, kind="stable"))


@pytest.mark.skipif(not RUNS_ALL, reason="GPU_TESTS=all runs loops of blocks")
def test_loops_keep_what_they_work_on(gpu: Device) -> None:
    x = normal(37, 37)
    packed, pivots, permutation = axir.jit(axir.lax.linalg.lu, device=gpu)(x)
    lower = np.tril(packed, -1) + np.eye(37)
    np.testing.assert_allclose(lower @ np.triu(packed), x[np.asarray(permutation)], atol=1e-4)
    assert np.all(np.asarray(pivots) >= np.arange(37))

"""Reductions with what may be computed beside them in a dispatch: in any order of the axes."""

from __future__ import annotations

import numpy as np

import axir
import axir.numpy as jnp
from axir.runtime import Device

RNG = np.random.default_rng(0)


def beside_reductions(x, v, labels):
    """Returns what a dispatch may compute of a reduction, by name."""
    rows = jnp.arange(x.shape[0])[:, None]
    return {
        "centered columns": x - jnp.sum(x, 0),
        "centered rows": (x - jnp.max(x, 1, keepdims=True)).T,
        "softmax of columns": axir.nn.softmax(x, axis=0),
        "exchanged rows": jnp.where(rows == 3, jnp.sum(jnp.where(rows == 9, x, 0), 0), x),
        "product": x - v @ x,
        "largest only": jnp.where(rows == jnp.argmax(x, 0), x, 0),
        "of labels": axir.nn.log_softmax(x) * axir.nn.one_hot(labels, x.shape[1]),
    }


def test_what_is_beside_reductions(gpu: Device) -> None:
    x = RNG.normal(size=(37, 36)).astype(np.float32)
    arguments = x, x[:, 0].copy(), RNG.integers(0, 36, 37).astype(np.int32)
    found = axir.jit(beside_reductions, device=gpu)(*arguments)
    for name, wanted in beside_reductions(*map(jnp.asarray, arguments)).items():
        np.testing.assert_allclose(found[name], wanted, rtol=1e-4, atol=1e-5, err_msg=name)


def test_running_reductions_of_complex_numbers(gpu: Device) -> None:
    z = (RNG.normal(size=(3, 9)) + 1j * RNG.normal(size=(3, 9))).astype(np.complex64)

    def running(z):
        return jnp.cumsum(z, 1), jnp.cumprod(z, 0)

    for found, wanted in zip(
        axir.jit(running, device=gpu)(z), (np.cumsum(z, 1), np.cumprod(z, 0)), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_reductions_of_widened_numbers(gpu: Device) -> None:
    x = RNG.integers(-9, 9, (70, 131))

    def widened(half, byte):
        y, truth = half.astype(np.float32), byte > 0
        number, mask = byte.astype(np.int32), truth.astype(np.float32)
        return {
            "columns": y - y.sum(0),
            "all": y - y.sum(),
            "extremes": number * number.max(0) - number.min(0),
            "product": mask @ mask.T,
            "variance": jnp.var(half, 0),
        }

    arguments = x.astype(np.float16), x.astype(np.int8)
    found = axir.jit(widened, device=gpu)(*arguments)
    for name, wanted in widened(*map(jnp.asarray, arguments)).items():
        np.testing.assert_allclose(found[name], wanted, rtol=1e-3, err_msg=name)


def test_extremes_of_rows_of_brain_floats(gpu: Device) -> None:
    x = jnp.asarray(RNG.normal(size=(70, 32)), jnp.bfloat16)

    def extremes(x):
        return jnp.max(x, 1), jnp.max(x, 0) - jnp.min(x, 0), axir.nn.softmax(x)

    for found, wanted in zip(axir.jit(extremes, device=gpu)(x), extremes(x), strict=True):
        wide = (np.asarray(y).astype(np.float32) for y in (found, wanted))
        np.testing.assert_allclose(*wide, rtol=0.05)

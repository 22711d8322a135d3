"""Arrays that are updated with parts of themselves, which lie elsewhere in them."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import lax

X = np.random.default_rng(0).normal(size=(40, 40)).astype(np.float32)


def shifted(x, n):
    y = jnp.tanh(x)
    sums = jnp.sort(x, 1)
    return (
        y.at[1:].set(y[:-1]),
        jnp.cos(x).at[1:, 1:].set(jnp.cos(x)[:-1, :-1]),
        jnp.exp(x).at[:-1].set(jnp.exp(x)[1:]),
        sums.at[:, 1:].set(sums[:, :-1]),
        jnp.sin(x).at[:30, :30].set(jnp.sin(x)[:30, :30].T),
        lax.dynamic_update_slice(jnp.sinh(x), jnp.sinh(x)[:-1, :-3], (n, n + 2)),
        lax.fori_loop(0, 3, lambda i, z: z.at[1:, 1:].set(z[:-1, :-1]), jnp.cosh(x)),
    )


def test_an_array_is_shifted_within_itself(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "axir.runtime.compiler.compilation"):
        made = axir.jit(shifted)(X, 1)
    with axir.disable_jit():
        meant = shifted(X, 1)
    for got, want in zip(made, meant, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)
    again = [x for x in caplog.records if "compiled again" in x.getMessage()]
    assert not again

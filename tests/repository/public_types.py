"""The types of public names in type checkers; `make lint` checks this file, and no test runs it."""

from __future__ import annotations

from typing import Any

from typing_extensions import assert_type

import axir
import axir.numpy as jnp
from axir import Array, lax, nn, random


def scaled(x: Array, factor: float) -> Array:
    return factor * x


assert_type(axir.jit(scaled)(jnp.ones(3), 2.0), Array)
assert_type(axir.jit(static_argnums=1)(scaled)(jnp.ones(3), 2.0), Array)
assert_type(axir.vmap(scaled)(jnp.ones(3), 2.0), Array)
assert_type(axir.checkpoint(scaled)(jnp.ones(3), 2.0), Array)
assert_type(axir.value_and_grad(scaled)(jnp.ones(()), 2.0), tuple[Array, Any])
assert_type(axir.device_put({"a": jnp.ones(3)}), dict[str, Array])
assert_type(axir.nn.relu(1.0), Array)
assert_type(nn.initializers.zeros(random.key(0), (2,)), Array)
assert_type(random.normal(random.key(0), (2,)), Array)
assert_type(lax.fori_loop(0, 3, lambda i, x: x + i, jnp.ones(3)), Array)
assert_type(lax.while_loop(lambda x: x < 3, lambda x: x + 1, jnp.ones(())), Array)
assert_type(jnp.zeros(3), Array)
assert_type(jnp.ones_like([1.0]), Array)
assert_type(jnp.where(True, 1, 2), Array)
assert_type(jnp.where(jnp.ones(3)), tuple[Array, ...])
assert_type(jnp.ones(3) + 1, Array)
assert_type(jnp.ones(3)[0], Array)
assert_type(jnp.ones(3).at[0].set(1), Array)

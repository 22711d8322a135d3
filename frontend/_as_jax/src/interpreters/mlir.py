"""`jax._src.interpreters.mlir`: the names of `jax.interpreters.mlir`."""

from __future__ import annotations

from axir.interpreters.mlir import *  # noqa: F403

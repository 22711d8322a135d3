"""Names of `jax._src.interpreters.mlir`, the same as in `jax.interpreters.mlir`."""

from __future__ import annotations

from axir.interpreters.mlir import *  # noqa: F403

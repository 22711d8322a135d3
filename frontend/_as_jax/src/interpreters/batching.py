"""Names of `jax._src.interpreters.batching`: those of `jax.interpreters.batching`."""

from __future__ import annotations

from axir.interpreters.batching import *  # noqa: F403

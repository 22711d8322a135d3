"""Names of `jax._src.interpreters.ad`: those of `jax.interpreters.ad`."""

from __future__ import annotations

from axir.interpreters.ad import *  # noqa: F403

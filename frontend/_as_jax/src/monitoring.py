"""Names of `jax._src.monitoring`: those of `axir.monitoring`."""

from __future__ import annotations

from axir.monitoring import *  # noqa: F403

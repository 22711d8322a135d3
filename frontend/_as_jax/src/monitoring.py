"""Names of `jax._src.monitoring`, the same as in `axir.monitoring`."""

from __future__ import annotations

from axir.monitoring import *  # noqa: F403

"""`jax._src.monitoring`: the names of `axir.monitoring`."""

from __future__ import annotations

from axir.monitoring import *  # noqa: F403

"""Names of `jax._src.checkify`: those of `jax.experimental.checkify`."""

from __future__ import annotations

from axir.experimental.checkify import *  # noqa: F403

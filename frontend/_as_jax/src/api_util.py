"""Names of `jax._src.api_util`: those of `axir.api_util`."""

from __future__ import annotations

from axir.api_util import *  # noqa: F403

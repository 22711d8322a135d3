"""Names of `jax._src.linear_util`, the same as in `axir.extend.linear_util`."""

from __future__ import annotations

from axir.extend.linear_util import *  # noqa: F403

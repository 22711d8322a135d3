"""`jax._src.linear_util`: the names of `axir.extend.linear_util`."""

from __future__ import annotations

from axir.extend.linear_util import *  # noqa: F403

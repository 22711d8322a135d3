"""Names of `jax._src.ad_checkpoint`: the names of `axir.ad_checkpoint`, and the primitive."""

from __future__ import annotations

from axir._primitive_names import primitive_named
from axir.ad_checkpoint import *  # noqa: F403

remat_p = primitive_named("remat_p")

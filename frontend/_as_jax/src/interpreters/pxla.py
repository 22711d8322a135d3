"""Names of `jax._src.interpreters.pxla`: those of `jax.interpreters.pxla`."""

from __future__ import annotations

from axir.interpreters.pxla import *  # noqa: F403

"""Names of `jax._src.interpreters.pxla`, the same as in `jax.interpreters.pxla`."""

from __future__ import annotations

from axir.interpreters.pxla import *  # noqa: F403

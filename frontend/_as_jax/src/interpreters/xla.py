"""Names of `jax._src.interpreters.xla`, the same as in `jax.interpreters.xla`."""

from __future__ import annotations

from axir.interpreters.xla import *  # noqa: F403

"""`jax._src.interpreters.xla`: the names of `jax.interpreters.xla`."""

from __future__ import annotations

from axir.interpreters.xla import *  # noqa: F403

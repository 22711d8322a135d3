"""`jax._src.interpreters.pxla`: the names of `jax.interpreters.pxla`."""

from __future__ import annotations

from axir.interpreters.pxla import *  # noqa: F403

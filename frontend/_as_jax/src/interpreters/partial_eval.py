"""`jax._src.interpreters.partial_eval`: the names of `jax.interpreters.partial_eval`."""

from __future__ import annotations

from axir.interpreters.partial_eval import *  # noqa: F403

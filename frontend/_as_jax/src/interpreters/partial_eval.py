"""Names of `jax._src.interpreters.partial_eval`, the same as in `jax.interpreters.partial_eval`."""

from __future__ import annotations

from axir.interpreters.partial_eval import *  # noqa: F403

"""Names of `jax._src.interpreters.batching`, the same as in `jax.interpreters.batching`."""

from __future__ import annotations

from axir._transforms.mapped_containers import is_vmappable as is_vmappable
from axir.interpreters.batching import *  # noqa: F403

"""Names of `jax._src.dispatch`: waiting for running programs, and applying a primitive."""

from __future__ import annotations

from axir._transforms.callbacks import effects_barrier
from axir.interpreters.xla import apply_primitive

__all__ = ["apply_primitive", "wait_for_tokens"]

wait_for_tokens = effects_barrier

"""Names of `jax._src.distributed`: the state of a single process."""

from __future__ import annotations

from axir.distributed import initialize, is_initialized, shutdown, state

__all__ = ["global_state", "initialize", "is_initialized", "shutdown"]

global_state = state

"""Names of `jax.experimental.pallas.ops.tpu.random.prng_utils`, which exist only for TPUs."""

from __future__ import annotations

from axir.experimental.pallas._accelerators import only_on

__getattr__, __dir__, __all__ = only_on(
    "TPUs",
    __name__,
    "blocked_iota compute_scalar_offset round_up",
    "Use axir.random, whose keys and numbers are JAX's.",
)

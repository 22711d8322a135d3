"""Names of `jax.experimental.pallas.ops.tpu.random.philox`, which exist only for TPUs."""

from __future__ import annotations

from axir.experimental.pallas._accelerators import only_on

__getattr__, __dir__, __all__ = only_on(
    "TPUs",
    __name__,
    "mul32_hi_lo philox_4x32 philox_4x32_count philox_4x32_kernel philox_fold_in "
    "philox_random_bits philox_split plphilox_prng_impl",
    "Use axir.random, whose keys and numbers are JAX's.",
)

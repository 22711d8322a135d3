"""Names of `jax.experimental.pallas.ops.tpu.random.threefry`, which exist only for TPUs."""

from __future__ import annotations

from axir.experimental.pallas._accelerators import only_on

__getattr__, __dir__, __all__ = only_on(
    "TPUs",
    __name__,
    "plthreefry_prng_impl plthreefry_random_bits threefry_2x32_count",
    "Use axir.random, whose keys and numbers are JAX's.",
)

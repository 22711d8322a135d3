"""Names of `jax.experimental.pallas.ops.tpu.megablox.common`, which exist only for TPUs."""

from __future__ import annotations

from axir.experimental.pallas._accelerators import only_on

__getattr__, __dir__, __all__ = only_on(
    "TPUs",
    __name__,
    "assert_is_supported_dtype is_tpu select_input_dtype supports_bfloat16_matmul "
    "tpu_generation tpu_kind",
    "Use axir.lax.ragged_dot, which compiles for the CPU.",
)

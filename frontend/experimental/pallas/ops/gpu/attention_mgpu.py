"""Names of `jax.experimental.pallas.ops.gpu.attention_mgpu`, which exist only for GPUs."""

from __future__ import annotations

from axir.experimental.pallas._accelerators import only_on

__getattr__, __dir__, __all__ = only_on(
    "GPUs",
    __name__,
    "PipelineCallback TuningConfig attention attention_reference attention_with_pipeline_emitter",
    "Use axir.nn.dot_product_attention, which compiles for the CPU.",
)

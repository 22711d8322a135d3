"""Names of `jax.experimental.pallas.ops.gpu.hopper_matmul_mgpu`, which exist only for GPUs."""

from __future__ import annotations

from axir.experimental.pallas._accelerators import only_on

__getattr__, __dir__, __all__ = only_on(
    "GPUs",
    __name__,
    "MatmulDimension TuningConfig get_num_sms kernel matmul",
    "Use axir.numpy.matmul, which compiles for the CPU.",
)

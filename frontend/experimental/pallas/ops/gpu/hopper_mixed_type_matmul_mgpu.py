"""Names that exist only for GPUs, of
`jax.experimental.pallas.ops.gpu.hopper_mixed_type_matmul_mgpu`.
"""

from __future__ import annotations

from axir.experimental.pallas._accelerators import only_on

__getattr__, __dir__, __all__ = only_on(
    "GPUs",
    __name__,
    "MatmulDimension TuningConfig mixed_matmul_kernel reference",
    "Use axir.numpy.matmul, which compiles for the CPU.",
)

"""Functions that are kernels for GPUs elsewhere.

`attention`, `layer_norm`, `rms_norm` and `softmax` compile for the CPU. The other modules have
names that raise `AcceleratorOnlyError` if they are used.
"""

from __future__ import annotations

from axir._made_modules import MadeModule
from axir.experimental.pallas._accelerators import modules_here, modules_only_on

from . import _rows

_COLLECTIVES = "Use axir.lax's collectives in axir.shard_map."
_ATTENTION = "Use axir.nn.dot_product_attention, which compiles for the CPU."
_PRODUCT = "Use axir.numpy.matmul, which compiles for the CPU."
_RAGGED = "Use axir.lax.ragged_dot, which compiles for the CPU."

# Modules, the advice of their errors, and their names.
_ELSEWHERE = {
    "all_gather_mgpu": (
        _COLLECTIVES,
        "all_gather",
    ),
    "attention_mgpu": (
        _ATTENTION,
        "PipelineCallback TuningConfig attention attention_reference "
        "attention_with_pipeline_emitter",
    ),
    "blackwell_matmul_mgpu": (
        _PRODUCT,
        "MatmulDimension TuningConfig matmul_kernel",
    ),
    "blackwell_ragged_dot_mgpu": (
        _RAGGED,
        "TuningConfig do_matmul ragged_dot_kernel ragged_dot_reference sample_group_sizes",
    ),
    "collective_matmul_mgpu": (
        _COLLECTIVES,
        "MatmulDimension TuningConfig all_gather_lhs_matmul is_nvshmem_used",
    ),
    "decode_attention": (
        _ATTENTION,
        "attn_forward_kernel decode_attn_unbatched gqa gqa_reference mha_reference mqa "
        "mqa_reference",
    ),
    "hopper_matmul_mgpu": (
        _PRODUCT,
        "MatmulDimension TuningConfig get_num_sms kernel matmul",
    ),
    "hopper_mixed_type_matmul_mgpu": (
        _PRODUCT,
        "MatmulDimension TuningConfig mixed_matmul_kernel reference",
    ),
    "paged_attention": (
        _ATTENTION,
        "paged_attention paged_attention_kernel paged_attention_reference "
        "paged_attention_unbatched",
    ),
    "ragged_dot_mgpu": (
        _RAGGED,
        "GroupInfo ragged_dot",
    ),
    "reduce_scatter_mgpu": (
        _COLLECTIVES,
        "reduce_scatter",
    ),
    "transposed_ragged_dot_mgpu": (
        _RAGGED,
        "ref_transposed_ragged_dot transposed_ragged_dot",
    ),
}

modules_here(
    __name__,
    _rows,
    {
        "layer_norm": "layer_norm layer_norm_reference",
        "rms_norm": "rms_norm rms_norm_reference",
        "softmax": "softmax",
    },
)
modules_only_on("GPUs", __name__, _ELSEWHERE)

__all__: list[str] = []


def __dir__() -> list[str]:
    return sorted(name for name, value in globals().items() if isinstance(value, MadeModule))

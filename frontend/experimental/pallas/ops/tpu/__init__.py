"""Functions that are kernels for TPUs elsewhere.

Products, `flash_attention` and `splash_attention` compile for the CPU. The other modules have names
that raise `AcceleratorOnlyError` if they are used.
"""

from __future__ import annotations

import sys

from axir._made_modules import MadeModule
from axir.experimental.pallas._accelerators import modules_here, modules_only_on

from . import _products

_COLLECTIVES = "Use axir.lax's collectives in axir.shard_map."
_ATTENTION = "Use axir.nn.dot_product_attention, which compiles for the CPU."
_RAGGED = "Use axir.lax.ragged_dot, which compiles for the CPU."
_RANDOM = "Use axir.random, whose keys and numbers are JAX's."

# Packages, and the names that they have of their modules.
_PACKAGES = {
    "megablox": {"ops": "gmm"},
    "paged_attention": {"paged_attention_kernel": "paged_attention"},
    "ragged_paged_attention": {
        "kernel": "dynamic_validate_inputs ragged_paged_attention ref_ragged_paged_attention "
        "static_validate_inputs",
        "tuned_block_sizes": "get_tuned_block_sizes",
    },
    "random": {},
}
# Modules that compile for the CPU, and their functions.
_HERE = {
    "example_kernel": "double double_kernel",
    "matmul": "matmul matmul_kernel",
    "megablox.gmm": "gmm",
    "megablox.ops": "gmm",
}
# Modules, the advice of their errors, and their names.
_ELSEWHERE = {
    "all_gather": (
        _COLLECTIVES,
        "ag_kernel all_gather get_neighbor",
    ),
    "megablox.common": (
        _RAGGED,
        "assert_is_supported_dtype is_tpu select_input_dtype supports_bfloat16_matmul "
        "tpu_generation tpu_kind",
    ),
    "paged_attention.paged_attention_kernel": (
        _ATTENTION,
        "MultiPageAsyncCopyDescriptor paged_attention paged_flash_attention_kernel "
        "paged_flash_attention_kernel_inline_seq_dim",
    ),
    "paged_attention.quantization_utils": (
        _ATTENTION,
        "QuantizedTensor from_int8 get_quantization_scales quantize_to_int8 to_int8 "
        "unquantize_from_int8",
    ),
    "paged_attention.util": (
        _ATTENTION,
        "grouped_query_attention_reference",
    ),
    "ragged_paged_attention.kernel": (
        _ATTENTION,
        "MultiPageAsyncCopyDescriptor dynamic_validate_inputs get_dtype_packing "
        "get_min_heads_per_blk ragged_paged_attention ragged_paged_attention_kernel "
        "ref_ragged_paged_attention static_validate_inputs",
    ),
    "ragged_paged_attention.tuned_block_sizes": (
        _ATTENTION,
        "get_device_name get_min_page_size get_tpu_version get_tuned_block_sizes "
        "next_power_of_2 simplify_key",
    ),
    "random.philox": (
        _RANDOM,
        "mul32_hi_lo philox_4x32 philox_4x32_count philox_4x32_kernel philox_fold_in "
        "philox_random_bits philox_split plphilox_prng_impl",
    ),
    "random.prng_utils": (
        _RANDOM,
        "blocked_iota compute_scalar_offset round_up",
    ),
    "random.threefry": (
        _RANDOM,
        "plthreefry_prng_impl plthreefry_random_bits threefry_2x32_count",
    ),
}

_PATHS = {package: f"{__name__}.{package}" for package in _PACKAGES}
_MADE = {
    package: MadeModule(path, f"Names of `{path.replace('axir', 'jax', 1)}`.", {}, is_package=True)
    for package, path in _PATHS.items()
}
modules_here(__name__, _products, _HERE)
modules_only_on("TPUs", __name__, _ELSEWHERE)
for _package, _module in _MADE.items():
    for _inside, _names in _PACKAGES[_package].items():
        _source = sys.modules[f"{_PATHS[_package]}.{_inside}"]
        _module.offer({_name: getattr(_source, _name) for _name in _names.split()})


def __dir__() -> list[str]:
    return sorted(name for name, value in globals().items() if isinstance(value, MadeModule))

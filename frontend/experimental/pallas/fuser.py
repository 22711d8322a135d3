"""Fusion of kernels with neighbouring operations: the names of `jax.experimental.pallas.fuser`.

Compiled programs are fused by axir's own passes.
"""

from __future__ import annotations

from ._accelerators import only_on

__getattr__, __dir__, __all__ = only_on(
    "the compilers of accelerators",
    __name__,
    "BlockIndexTransform Fusion block_spec_with_prefetch custom_evaluate custom_fusion evaluate "
    "filter_no_block_specs fuse fusible push_pull_block_spec "
    "get_fusion_values get_stateful_input_fusion_values get_stateful_output_fusion_values "
    "make_scalar_prefetch_handler pull_block_spec push_block_spec",
    "Compile the whole with axir.jit, which fuses by itself.",
)

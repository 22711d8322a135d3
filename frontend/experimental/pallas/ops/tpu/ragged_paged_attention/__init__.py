"""Attention to pages of keys, under names that exist only for TPUs."""

from __future__ import annotations

from .kernel import (
    dynamic_validate_inputs,
    ragged_paged_attention,
    ref_ragged_paged_attention,
    static_validate_inputs,
)
from .tuned_block_sizes import get_tuned_block_sizes

__all__ = [
    "dynamic_validate_inputs",
    "get_tuned_block_sizes",
    "ragged_paged_attention",
    "ref_ragged_paged_attention",
    "static_validate_inputs",
]

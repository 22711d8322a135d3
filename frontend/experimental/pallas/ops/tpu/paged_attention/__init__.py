"""Attention to pages of keys, under names that exist only for TPUs."""

from __future__ import annotations

from .paged_attention_kernel import paged_attention

__all__ = ["paged_attention"]

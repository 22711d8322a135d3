"""The tables of rules by transformation, for users' own primitives: `ad`, `batching`, `mlir`."""

from __future__ import annotations

from . import ad, batching, mlir, partial_eval, pxla, xla

__all__ = ["ad", "batching", "mlir", "partial_eval", "pxla", "xla"]

"""The tables of rules by transformation, for users' own primitives: `ad`, `batching`, `mlir`."""

from __future__ import annotations

from . import ad, batching, mlir

__all__ = ["ad", "batching", "mlir"]

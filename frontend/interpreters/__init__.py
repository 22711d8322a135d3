"""The tables of rules by transformation, for users' own primitives: `ad`, `batching`, `mlir`."""

from __future__ import annotations

from axir._made_modules import MadeModule

from . import ad, batching, mlir, partial_eval, xla

__all__ = ["ad", "batching", "mlir", "partial_eval", "pxla", "xla"]

pxla = MadeModule(f"{__name__}.pxla", "Parts of XLA: no name is left here.", {})


def __dir__() -> list[str]:
    return __all__

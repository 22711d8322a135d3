"""The module `jax.interpreters.pxla`, which has only parts of XLA: nothing is left here."""

from __future__ import annotations

__all__: list[str] = []

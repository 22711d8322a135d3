"""The module `jax.interpreters.pxla`, of which nothing is left that is no part of XLA."""

from __future__ import annotations

__all__: list[str] = []

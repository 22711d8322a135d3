"""The module `jax.extend.ifrt_programs`, of which nothing is left that is no part of IFRT."""

from __future__ import annotations

from types import SimpleNamespace

__all__ = ["ifrt_programs"]


def __dir__() -> list[str]:
    return __all__


ifrt_programs = SimpleNamespace()
"""What makes programs for IFRT, a runtime that is not used here: it has no names."""

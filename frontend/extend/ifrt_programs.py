"""The module `jax.extend.ifrt_programs`, which has only parts of IFRT: nothing is left here."""

from __future__ import annotations

from types import SimpleNamespace

__all__ = ["ifrt_programs"]


def __dir__() -> list[str]:
    return __all__


ifrt_programs = SimpleNamespace()
"""What makes programs for IFRT, a runtime that is not used here: it has no names."""

"""`axir.scipy`: functions of SciPy, with JAX's names."""

from __future__ import annotations

from . import special

__all__ = ["special"]

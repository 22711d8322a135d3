"""`axir.scipy.cluster`: groups of observations (`vq`)."""

from __future__ import annotations

from . import vq

__all__ = ["vq"]

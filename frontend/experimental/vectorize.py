"""`axir.numpy.vectorize`, under its name of 2020."""

from __future__ import annotations

from axir.numpy import vectorize

__all__ = ["vectorize"]

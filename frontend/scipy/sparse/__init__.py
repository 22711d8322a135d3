"""`axir.scipy.sparse`: solvers of linear systems that ask only for products (`linalg`).

Sparse arrays live in `axir.experimental.sparse`.
"""

from __future__ import annotations

from . import linalg

__all__ = ["linalg"]

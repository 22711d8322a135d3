"""Sparse arrays of all formats as `BCOO`."""

from __future__ import annotations

from axir.dialect.core.annotations import UserObject

from ._bcoo import BCOO


def to_bcoo(x: UserObject) -> BCOO:
    """Returns a sparse array of any format as a `BCOO`."""
    return x if isinstance(x, BCOO) else x.to_bcoo()

"""The operations of the dialect: one file per family, all rules of an op together.

Importing this package fills the op table (`table.OPS`).
"""

from __future__ import annotations

from . import (
    arg_reduce,
    call,
    constants,
    conversion,
    cumulative,
    dot,
    elementwise,
    indexing,
    random_bits,
    reduce,
    scatter,
    shape,
    slicing,
    sort,
    transcendental,
    variadic_reduce,
)
from .table import OPS, declare

__all__ = [
    "OPS",
    "arg_reduce",
    "call",
    "constants",
    "conversion",
    "cumulative",
    "declare",
    "dot",
    "elementwise",
    "indexing",
    "random_bits",
    "reduce",
    "scatter",
    "shape",
    "slicing",
    "sort",
    "transcendental",
    "variadic_reduce",
]

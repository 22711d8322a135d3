"""Shared code of the tests of indexing: an array, the kinds of updates, and indices as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from axir.dialect.core.array import from_numpy

X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
UPDATES = {
    "set": lambda old, new: new, "add": np.add, "subtract": np.subtract, "multiply": np.multiply,
    "divide": np.divide, "power": np.power, "min": np.minimum, "max": np.maximum,
}  # fmt: skip


def ours_of(index: Any) -> Any:
    """An index with arrays of axir in place of NumPy's arrays."""
    if isinstance(index, tuple):
        return tuple(ours_of(item) for item in index)
    return from_numpy(index) if isinstance(index, np.ndarray) else index


def name_of(index: Any) -> str:
    """The name of the test of an index."""
    return str(index).replace("\n", "")

"""Names of `jax._src.array`: the class of arrays, and functions that make arrays from parts."""

from __future__ import annotations

from axir import (
    Shard,
    make_array_from_callback,
    make_array_from_process_local_data,
    make_array_from_single_device_arrays,
)
from axir.dialect.core.array import ConcreteArray as ArrayImpl

__all__ = [
    "ArrayImpl", "Shard", "make_array_from_callback", "make_array_from_process_local_data",
    "make_array_from_single_device_arrays",
]  # fmt: skip

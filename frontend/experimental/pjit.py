"""`jit` and constraints of placement, under their older names."""

from __future__ import annotations

from axir._transforms.jit import jit as pjit
from axir._transforms.sharded import with_sharding_constraint
from axir.sharding import PartitionSpec

__all__ = ["PartitionSpec", "pjit", "with_sharding_constraint"]

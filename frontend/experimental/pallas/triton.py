"""Kernels as Triton has them, under the names of `jax.experimental.pallas.triton`.

Masks and atomic operations work; names that generate GPU code do not.

>>> import axir, axir.numpy as jnp
>>> from axir.experimental import pallas as pl
>>> from axir.experimental.pallas import triton
>>> def add_one(x_ref, o_ref):
...     place = pl.ds(pl.program_id(0) * 4, 4)
...     mask = pl.program_id(0) * 4 + jnp.arange(4) < x_ref.shape[0]
...     x = triton.load(x_ref.at[place], mask=mask)
...     triton.store(o_ref.at[place], x + 1.0, mask=mask)
>>> x = jnp.arange(6.0)
>>> pl.pallas_call(add_one, x, grid=2)(x)
Array([1., 2., 3., 4., 5., 6.], dtype=float32)
"""

from __future__ import annotations

import dataclasses

from axir.dialect.program.rules import Value
from axir.numpy import tanh

from ._accelerators import only_on
from ._access import (
    atomic_add,
    atomic_and,
    atomic_cas,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_xchg,
    atomic_xor,
    load,
    store,
)
from ._inside import dot, max_contiguous

__getattr__, _, _names = only_on(
    "Triton's compiler for GPUs",
    __name__,
    "CUSTOM_CALL_TARGET_NAME GpuInfo GpuVersion elementwise_inline_asm get_gpu_info "
    "get_gpu_info_from_version is_gpu_device",
    "Write the operation with axir.numpy.",
)

__all__ = [
    "CompilerParams", "approx_tanh", "atomic_add", "atomic_and", "atomic_cas", "atomic_max",
    "atomic_min", "atomic_or", "atomic_xchg", "atomic_xor", "debug_barrier", "dot", "load",
    "max_contiguous", "store", *_names,
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


@dataclasses.dataclass(frozen=True)
class CompilerParams:
    """Options of Triton's compiler; stored, and not used.

    Attributes:
        num_warps: Threads of an instance, in groups of 32.
        num_stages: Stages of loops as pipelines.
    """

    num_warps: int | None = None
    num_stages: int | None = None


def approx_tanh(x: Value) -> Value:
    """Returns the hyperbolic tangent, with the precision that there is anyway."""
    return tanh(x)


def debug_barrier() -> None:
    """Does nothing: an instance has one thread."""

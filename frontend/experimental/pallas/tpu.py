"""Kernels as TPUs have them, under the names of `jax.experimental.pallas.tpu`.

Memory spaces name the one memory of a CPU; semaphores count, and copies are done at once; operands
that index maps read work. Requests for TPU units or for other devices raise `AcceleratorOnlyError`.

>>> import axir, axir.numpy as jnp
>>> from axir.experimental import pallas as pl
>>> from axir.experimental.pallas import tpu as pltpu
>>> def copy(order_ref, x_ref, o_ref):
...     o_ref[...] = x_ref[...]
>>> spec = pltpu.PrefetchScalarGridSpec(
...     num_scalar_prefetch=1,
...     grid=(3,),
...     in_specs=[pl.BlockSpec((1,), lambda i, order: order[i])],
...     out_specs=pl.BlockSpec((1,), lambda i, order: i),
... )
>>> x = jnp.array([1.0, 2.0, 3.0])
>>> pl.pallas_call(copy, x, grid_spec=spec)(jnp.array([2, 0, 1]), x)
Array([3., 1., 2.], dtype=float32)
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from axir import lax
from axir._transforms.refs import AnyRef
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import (
    AnyDtype,
    DTypeLike,
    PyTree,
    UserObject,
)
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ParameterError
from axir.dialect.program.rules import Value
from axir.numpy import asarray, concatenate, split, swapaxes, tile
from axir.numpy import roll as numpy_roll

from . import _access
from ._accelerators import only_on
from ._memory import SEMAPHORE_DTYPE, MemoryRef, Space
from ._memory import MemorySpace as _AnySpace
from ._pipeline import emit_pipeline
from ._semaphores import (
    DeviceIdType,
    async_copy,
    async_remote_copy,
    make_async_copy,
    make_async_remote_copy,
    semaphore_memory,
    semaphore_read,
    semaphore_signal,
    semaphore_wait,
    sync_copy,
)
from ._specs import GridLike, GridSpec, no_block_spec

__getattr__, _, _names = only_on(
    "TPUs",
    __name__,
    "ACC BufferedRef BufferedRefBase BufferType ChipVersion CoreType LoweringException "
    "PipelineStep TensorCoreMesh Tiling TpuInfo annotate conv emit_pipeline_with_async_prefetch "
    "has_memory_space join_bits matmul_lhs_fifo matmul_pop_fifo pack_fp6 split_bits unpack_fp6 "
    "core_barrier create_tensorcore_mesh dma_semaphore einshape emit_pipeline_with_allocations "
    "get_barrier_semaphore get_tpu_info get_tpu_info_for_chip matmul_acc_lhs matmul_pop "
    "matmul_push_rhs pack_elementwise prng_random_bits prng_seed run_on_first_core sample_block "
    "stateful_bernoulli stateful_bits stateful_normal stateful_uniform stochastic_round "
    "to_pallas_key trace_value unpack_elementwise semaphore",
    "Write this part with axir.numpy, axir.lax and axir.random, which work in kernels.",
)

__all__ = [
    "ANY", "ARBITRARY", "CMEM", "CORE_PARALLEL", "CompilerParams", "DeviceIdType",
    "GridDimensionSemantics", "HBM", "HOST", "InterpretParams", "MemorySpace", "PARALLEL",
    "PrefetchScalarGridSpec", "SEMAPHORE", "SMEM", "SUBCORE_PARALLEL", "SemaphoreType",
    "SideEffectType", "VMEM", "VMEM_SHARED", "async_copy", "async_remote_copy", "bitcast",
    "emit_pipeline", "force_tpu_interpret_mode", "is_tpu_device", "load", "make_async_copy",
    "make_async_remote_copy", "reciprocal", "repeat", "reset_tpu_interpret_mode_state", "roll",
    "semaphore_read", "semaphore_signal", "semaphore_wait", "set_tpu_interpret_mode", "store",
    "sync_copy", "touch", "with_memory_space_constraint", *_names,
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


class MemorySpace(Space):
    """Memories of a TPU, which name the one that there is."""

    VMEM = "vmem"
    VMEM_SHARED = "vmem_shared"
    SMEM = "smem"
    CMEM = "cmem"
    SEMAPHORE = "semaphore_mem"
    HBM = "hbm"

    def like(self, shape_dtype_like: UserObject) -> MemoryRef:
        """Returns the request for a ref of an array's shape and dtype."""
        return self(tuple(shape_dtype_like.shape), shape_dtype_like.dtype)


ANY, HOST = _AnySpace.ANY, _AnySpace.HOST
CMEM, SMEM, VMEM = MemorySpace.CMEM, MemorySpace.SMEM, MemorySpace.VMEM
VMEM_SHARED, HBM, SEMAPHORE = MemorySpace.VMEM_SHARED, MemorySpace.HBM, MemorySpace.SEMAPHORE


class SemaphoreType(enum.Enum):
    """Kinds of semaphores: `SemaphoreType.DMA`, or `SemaphoreType.DMA((2,))` for several."""

    REGULAR = "regular"
    DMA = "dma"
    BARRIER = "barrier"

    def __call__(self, shape: tuple[int, ...]) -> MemoryRef:
        """Returns the request for semaphores."""
        return semaphore_memory(MemorySpace.SEMAPHORE, shape)

    @property
    def dtype(self) -> AnyDtype:
        """dtype of the counter."""
        return SEMAPHORE_DTYPE

    @property
    def memory_type(self) -> MemoryRef:
        """The request for one semaphore."""
        return self(())


class GridDimensionSemantics(enum.Enum):
    """Whether instances along an axis may run in another order. Here they run in order."""

    PARALLEL = "parallel"
    CORE_PARALLEL = "core_parallel"
    SUBCORE_PARALLEL = "subcore_parallel"
    ARBITRARY = "arbitrary"


PARALLEL = GridDimensionSemantics.PARALLEL
CORE_PARALLEL = GridDimensionSemantics.CORE_PARALLEL
SUBCORE_PARALLEL = GridDimensionSemantics.SUBCORE_PARALLEL
ARBITRARY = GridDimensionSemantics.ARBITRARY


class SideEffectType(enum.Enum):
    """Whether a call may be dropped or merged with an equal one."""

    PURE = "pure"
    DATAFLOW_SIDE_EFFECTING = "dataflow_side_effecting"
    SIDE_EFFECTING = "side_effecting"


@dataclasses.dataclass(frozen=True)
class CompilerParams:
    """Options of the TPU compiler; stored, and not used."""

    dimension_semantics: Sequence[GridDimensionSemantics | str] | None = None
    allow_input_fusion: Sequence[bool] | None = None
    vmem_limit_bytes: int | None = None
    collective_id: int | None = None
    has_side_effects: bool | SideEffectType = False
    flags: Mapping[str, UserObject] | None = None
    internal_scratch_in_bytes: int | None = None
    serialization_format: int = 1
    disable_bounds_checks: bool = False
    disable_semaphore_checks: bool = False
    skip_device_barrier: bool = False
    allow_collective_id_without_custom_barrier: bool = False
    shape_invariant_numerics: bool = True
    use_tc_tiling_on_sc: bool | None = None
    needs_layout_passes: bool = True
    fuse_transposed_lhs_in_matmul: bool = False

    def replace(self, **changes: UserObject) -> CompilerParams:
        """Returns the same with other fields."""
        return dataclasses.replace(self, **changes)


@dataclasses.dataclass(frozen=True, init=False)
class InterpretParams:
    """Options for interpreting TPU kernels; stored, and not used: kernels are compiled."""

    options: Mapping[str, UserObject]

    def __init__(self, **options: UserObject):
        object.__setattr__(self, "options", options)


@contextmanager
def force_tpu_interpret_mode(params: InterpretParams | None = None) -> Iterator[None]:
    """Does nothing while a `with` block runs: kernels are compiled in any case."""
    yield


def set_tpu_interpret_mode(params: InterpretParams | None = None) -> None:
    """Does nothing: kernels are compiled in any case."""


def reset_tpu_interpret_mode_state() -> None:
    """Does nothing, because there is nothing to reset."""


def is_tpu_device() -> bool:
    """Tells whether there is a TPU: no."""
    return False


class PrefetchScalarGridSpec(GridSpec):
    """A grid with index maps that read operands: their refs come after the grid position.

    Args:
        num_scalar_prefetch: How many operands come first that have no blocks; the kernel gets refs
            of them first, and index maps last.
        grid: How often the kernel runs along each axis.
        in_specs: `BlockSpec`s of the other operands.
        out_specs: `BlockSpec`s of the results.
        scratch_shapes: Memory of the kernel's own.
    """

    def __init__(
        self,
        num_scalar_prefetch: int,
        grid: GridLike = (),
        in_specs: PyTree = no_block_spec,
        out_specs: PyTree = no_block_spec,
        scratch_shapes: PyTree = (),
    ):
        super().__init__(grid, in_specs, out_specs, scratch_shapes)
        self.num_scalar_prefetch = num_scalar_prefetch


# Operations --------------------------------------------------------------------------------------


def load(ref: AnyRef, *, mask: ArrayLike | None = None) -> Value:
    """Returns the contents of a ref; elements outside the mask are unspecified."""
    return _access.load(ref, mask=mask)


def store(ref: AnyRef, val: ArrayLike, *, mask: ArrayLike | None = None) -> None:
    """Writes a ref, where a mask holds."""
    _access.store(ref, val, mask=mask)


def touch(ref: AnyRef) -> None:
    """Does nothing, because the reads and writes of a kernel are known."""


def with_memory_space_constraint(x: Value, memory_space: object) -> Value:
    """Returns an array unchanged, because a CPU has one memory."""
    return x


def repeat(x: Value, repeats: int, axis: int) -> Value:
    """Returns an array several times, one behind the other along an axis."""
    at = axis % x.ndim
    return tile(x, [repeats if n == at else 1 for n in range(x.ndim)])


def roll(
    x: Value,
    shift: ArrayLike,
    axis: int,
    *,
    stride: int | None = None,
    stride_axis: int | None = None,
) -> Value:
    """Returns an array rotated along an axis: elements at the end move to the beginning.

    Args:
        x: The array.
        shift: How far, not negative.
        axis: Along which axis.
        stride: How much further each slice along another axis is moved.
        stride_axis: That axis.

    >>> import axir.numpy as jnp
    >>> roll(jnp.arange(6).reshape(2, 3), 1, 1, stride=1, stride_axis=0)
    Array([[2, 0, 1],
           [4, 5, 3]], dtype=int32)
    """
    axes = [axis] if stride_axis is None else [axis, stride_axis]
    is_fit = all(0 <= n < x.ndim for n in axes) and len(set(axes)) == len(axes)
    if not is_fit or (stride is None) != (stride_axis is None):
        raise ParameterError(
            f"roll: axis {axis}, stride {stride} and stride_axis {stride_axis} do not fit an "
            f"array of shape {x.shape}.",
            "Give axes of the array, and stride and stride_axis together or not at all.",
        )
    if isinstance(shift, int) and shift < 0:
        raise ParameterError(f"roll: shift must be non-negative, not {shift}.", "Add the extent.")
    if stride is None or stride_axis is None:
        return numpy_roll(x, shift, axis)
    parts = split(x, x.shape[stride_axis], stride_axis)
    first = asarray(shift)
    moved = [numpy_roll(part, first + n * stride, axis) for n, part in enumerate(parts)]
    return concatenate(moved, stride_axis)


def reciprocal(x: Value, *, approx: bool = False, full_range: bool = False) -> Value:
    """Returns 1 / x of floats, elementwise and exact.

    Args:
        x: The array.
        approx, full_range: Accepted for compatibility: there is one way to divide.

    >>> import axir.numpy as jnp
    >>> reciprocal(jnp.array([2.0, 4.0]))
    Array([0.5 , 0.25], dtype=float32)
    """
    return lax.integer_pow(x, -1)


def bitcast(x: Value, ty: DTypeLike) -> Value:
    """Returns the bits of an array as another dtype; the last axis but one is packed or unpacked.

    >>> import axir.numpy as jnp
    >>> bitcast(jnp.ones((2, 3), "int16"), "int32").shape
    (1, 3)
    """
    wanted = dtypes.as_dtype(ty)
    here, there = np.dtype(x.dtype).itemsize, np.dtype(wanted).itemsize
    if x.ndim < 2 or x.shape[-2] * here % there:
        raise ParameterError(
            f"bitcast: an array of shape {x.shape} and {x.dtype} cannot be packed as {wanted}.",
            "The last axis but one must hold whole elements.",
        )
    *leading, rows, columns = x.shape
    if here < there:
        packing = there // here
        grouped = x.reshape(*leading, rows // packing, packing, columns)
        return lax.bitcast_convert_type(swapaxes(grouped, -1, -2), wanted)
    made = lax.bitcast_convert_type(x, wanted)
    if here == there:
        return made
    return swapaxes(made, -1, -2).reshape(*leading, rows * (here // there), columns)

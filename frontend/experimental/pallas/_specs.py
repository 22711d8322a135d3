"""Specifications of blocks and of the grid: `BlockSpec`, `GridSpec`, and their parts.

Elsewhere: their use (`_blocks.py`, `_call.py`).
"""

from __future__ import annotations

import dataclasses
import enum
import operator
from collections.abc import Callable, Sequence
from typing import TypeAlias

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import PyTree, UserFunction, UserObject
from axir.dialect.core.errors import ParameterError


class BlockSpecError(ParameterError):
    """The blocks or the grid of a kernel call are invalid."""


# How an axis is cut -----------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Blocked:
    """An axis in blocks side by side; the index map gives the number of a block."""

    block_size: int


@dataclasses.dataclass(frozen=True)
class Squeezed:
    """An axis that a kernel sees at one position, removed; the index map gives the position."""

    @property
    def block_size(self) -> int:
        """One."""
        return 1


@dataclasses.dataclass(frozen=True)
class Element:
    """An axis with some positions visible to a kernel; the index map gives the first one.

    Attributes:
        block_size: How many places.
        padding: The padding in front of the axis and behind it, with unspecified elements.
    """

    block_size: int
    padding: tuple[int, int] = (0, 0)


@dataclasses.dataclass(frozen=True)
class BoundedSlice:
    """An axis for which the index map gives a `pl.ds`, of at most this size."""

    block_size: int


@dataclasses.dataclass(frozen=True)
class Indirect:
    """An axis for which the index map gives an array of positions."""

    block_size: int


squeezed = Squeezed()
BlockDim: TypeAlias = Blocked | Squeezed | Element | BoundedSlice | Indirect


def block_dim(given: UserObject) -> BlockDim:
    """Returns the block dimension for an integer, None, or an existing block dimension.

    Raises:
        BlockSpecError: for anything else.
    """
    if given is None:
        return squeezed
    if isinstance(given, (Blocked, Squeezed, Element, BoundedSlice, Indirect)):
        return given
    try:
        return Blocked(operator.index(given))
    except TypeError:
        raise BlockSpecError(
            f"Unsupported block dimension type: {type(given)} in a block shape.",
            "Give an integer, None, or one of pl.Blocked, pl.Squeezed, pl.Element, "
            "pl.BoundedSlice, pl.Indirect for each axis.",
        ) from None


def get_block_size(given: object) -> int:
    """Returns how many places of an axis a block has."""
    return block_dim(given).block_size


# Blocks ------------------------------------------------------------------------------------------


class RevisitMode(enum.Enum):
    """When the block of a result may come again: at the next instance, or at any."""

    IMMEDIATE = "immediate"
    ANY = "any"


@dataclasses.dataclass(frozen=True)
class Buffered:
    """How many buffers a pipeline has for a block. A CPU reads blocks where they lie."""

    buffer_count: int
    use_lookahead: bool = False
    revisit: RevisitMode | None = None


@dataclasses.dataclass
class BlockSpec:
    """Which block of an array an instance of a kernel sees.

    Attributes:
        block_shape: For each axis an integer, None for an axis that it sees at one position, or
            `Element`, `BoundedSlice`, `Indirect`. None stands for the whole array.
        index_map: From the place in the grid to the number of the block along each axis. The
            default gives zeros.
        memory_space: Where the block should lie; a CPU has one memory.
        pipeline_mode: Accepted for compatibility.
        data_movement: Accepted for compatibility.
    """

    block_shape: Sequence[UserObject] | None = None
    index_map: UserFunction | None = None
    memory_space: UserObject = dataclasses.field(kw_only=True, default=None)
    pipeline_mode: Buffered | None = None

    def replace(self, **changes: UserObject) -> BlockSpec:
        """Returns the same with other fields."""
        return dataclasses.replace(self, **changes)


class NoBlockSpec:
    """Stands where no `BlockSpec` is given: an instance sees the whole array."""

    def __repr__(self) -> str:
        return "NoBlockSpec"


no_block_spec = NoBlockSpec()
GridLike: TypeAlias = UserObject


def is_spec(x: object) -> bool:
    """Tells whether a leaf of a tree of specs is one."""
    return isinstance(x, (BlockSpec, NoBlockSpec))


class GridSpec:
    """The number of runs of a kernel, and the blocks of each run.

    Attributes:
        grid: How often it runs along each axis; the last axis runs fastest.
        grid_names: Names of the axes, of a grid that is written as pairs of a name and a number.
        in_specs: Tree of `BlockSpec`s of the operands.
        out_specs: Tree of the results' blocks.
        scratch_shapes: Memory of the kernel's own.
        num_scalar_prefetch: How many operands come first that index maps read.
    """

    num_scalar_prefetch = 0

    def __init__(
        self,
        grid: GridLike = (),
        in_specs: PyTree = no_block_spec,
        out_specs: PyTree = no_block_spec,
        scratch_shapes: PyTree = (),
    ):
        if not isinstance(in_specs, (NoBlockSpec, list, tuple)):
            raise BlockSpecError(
                f"`in_specs` must be a tuple or a list. Found: {in_specs}",
                "Write in_specs=[pl.BlockSpec(...), ...], with one for each operand.",
            )
        self.in_specs = tuple(in_specs) if isinstance(in_specs, list) else in_specs
        self.out_specs = tuple(out_specs) if isinstance(out_specs, list) else out_specs
        is_tree = isinstance(scratch_shapes, dict)
        self.scratch_shapes = scratch_shapes if is_tree else tuple(scratch_shapes)
        self.grid, self.grid_names = _grid(grid)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(grid={self.grid}, in_specs={self.in_specs})"


def _grid(grid: GridLike) -> tuple[tuple[UserObject, ...], tuple[UserObject, ...] | None]:
    extents = (grid,) if not isinstance(grid, (tuple, list)) else tuple(grid)
    names = None
    if extents and all(isinstance(x, tuple) and len(x) == 2 for x in extents):
        names, extents = zip(*extents, strict=True)
    if not all(map(_is_extent, extents)):
        raise BlockSpecError(
            f"Grid must be a tuple of integers or jax.Array, got {grid}",
            "Pass grid=(m, n), or an integer.",
        )
    return tuple(x if not _is_known(x) else operator.index(x) for x in extents), names


def _is_known(x: object) -> bool:
    return not hasattr(x, "aval") and hasattr(type(x), "__index__")


def _is_extent(x: UserObject) -> bool:
    if _is_known(x):
        return not isinstance(x, bool)
    return hasattr(x, "dtype") and x.shape == () and dtypes.kind(x.dtype) in "iu"


@dataclasses.dataclass(frozen=True)
class CostEstimate:
    """The user's estimate of a kernel's cost. Stored, and not used: axir measures kernels.

    Attributes:
        flops: Operations on floats.
        transcendentals: Calls of functions such as `exp`.
        bytes_accessed: Bytes that are read or written.
        remote_bytes_transferred: Bytes that go to other devices.
    """

    flops: int
    transcendentals: int
    bytes_accessed: int
    remote_bytes_transferred: int = 0

    def __post_init__(self) -> None:
        for name, value in dataclasses.asdict(self).items():
            if not isinstance(value, int):
                raise BlockSpecError(
                    f"All fields in CostEstimate must be ints. {name} is not an int: "
                    f"{type(value)}({value})",
                    "Round it.",
                )


IndexMap: TypeAlias = Callable[..., UserObject]

"""Shared code of gathers and scatters: the places of their windows.

A gather reads, and a scatter writes, one window of the operand per index vector. This file has the
modes for windows that do not fit, checks of dimension numbers, and the arithmetic that turns index
vectors into positions for NumPy. The ops themselves stand in `gather.py` and `scatter.py`, the
form of indices in StableHLO in `lowered_indices.py`.
"""

from __future__ import annotations

import enum
import functools
import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.errors import DTypeError, ParameterError, ShapeError
from axir.dialect.core.types import ShapedArray

CLIP, FILL, PROMISE_IN_BOUNDS = "clip", "fill", "promise_in_bounds"
_LARGEST_INT64 = 2**63 - 1
# The largest number of cached offsets of a window's elements.
_REMEMBERED_OFFSETS = 4096


class GatherScatterMode(str, enum.Enum):
    """The treatment of windows that do not fit into the operand.

    | mode | gather | scatter |
    | --- | --- | --- |
    | `CLIP` | moves the window inside | moves the window inside |
    | `FILL_OR_DROP` | gives `fill_value` | drops the window |
    | `PROMISE_IN_BOUNDS` | never happens (else moves it inside) | never happens (else drops it) |

    >>> GatherScatterMode.from_any("drop").value
    'fill'
    """

    CLIP = CLIP
    FILL_OR_DROP = FILL
    PROMISE_IN_BOUNDS = PROMISE_IN_BOUNDS

    @staticmethod
    def from_any(mode: object) -> GatherScatterMode:
        """Returns the mode of a name: clip, fill (or drop, or None), promise_in_bounds.

        Raises:
            ParameterError: for any other value.
        """
        if mode is None or mode == "drop":
            return GatherScatterMode.FILL_OR_DROP
        try:
            return GatherScatterMode(mode)
        except ValueError:
            raise ParameterError(
                f"{mode!r} is not a mode for indices out of bounds.",
                "Modes are 'clip', 'fill' (of a scatter also 'drop') and 'promise_in_bounds'.",
            ) from None


_NAMES = (CLIP, FILL, PROMISE_IN_BOUNDS)


def mode_name(mode: object) -> str:
    """Returns a mode as the plain string that parameters hold."""
    return mode if type(mode) is str and mode in _NAMES else GatherScatterMode.from_any(mode).value


@functools.lru_cache(maxsize=1024)
def _dimension_numbers(kind: type, numbers: UserObject) -> UserObject:
    return kind(*(tuple(int(d) for d in dimensions) for dimensions in numbers))


_Numbers = TypeVar("_Numbers")


def as_dimension_numbers(kind: type[_Numbers], numbers: object) -> _Numbers:
    """Returns dimension numbers as the named tuple `kind` of tuples of Python integers."""
    try:
        return _dimension_numbers(kind, numbers)  # type: ignore[arg-type]
    except TypeError:  # lists are not hashable
        return _dimension_numbers.__wrapped__(kind, numbers)


def shift(dimensions: Sequence[int]) -> tuple[int, ...]:
    """Makes room for a new dimension in front."""
    return tuple(d + 1 for d in dimensions)


def check_batching(
    name: str,
    operand: ShapedArray,
    indices: ShapedArray,
    first: Sequence[int],
    second: Sequence[int],
) -> None:
    """Checks that batching dimensions of the operand and of the indices correspond."""
    check_distinct(name, indices.ndim - 1, indices_batching_dims=second)
    extents = [operand.shape[d] for d in first], [indices.shape[d] for d in second]
    if extents[0] != extents[1]:
        raise ShapeError(
            f"{name}: batching dimensions {tuple(first)} of the operand {operand} and "
            f"{tuple(second)} of the indices {indices} must correspond and be equal in size."
        )


def is_sorted_in_range(dimensions: Sequence[int], ndim: int) -> bool:
    """Tells whether dimensions increase strictly and lie in [0, ndim)."""
    bounded = (-1, *dimensions, ndim)
    return all(a < b for a, b in itertools.pairwise(bounded))


class GatherDimensionNumbers(NamedTuple):
    """The correspondence of a gather's operand, index and result dimensions.

    Attributes:
        offset_dims: Result dimensions that run over the windows.
        collapsed_slice_dims: Operand dimensions that the result lacks; windows have size 1 there.
        start_index_map: The operand dimension that each entry of an index vector indexes.
        operand_batching_dims: Operand dimensions along which each index vector has its own slice.
        start_indices_batching_dims: The corresponding dimensions of the indices.
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class Windows:
    """The geometry of a gather; of a scatter too, with the operand's windows and the updates.

    A position is the row-major number of an operand element. The *canonical* order of the axes of a
    result is: the batch axes (of the index vectors), then the window axes in the operand's order.

    Attributes:
        limits: For each entry of an index vector, the largest start where the window fits.
        strides: For each entry of an index vector, the stride of its axis in the position.
        permutation: Canonical axis for each result axis, or None if they agree.
        take_axis: The operand axis if a plain `numpy.take` along it suffices, else None.
        take_permutation: For each result axis the axis in the result of `take`, or None if they
            agree.
    """

    def __init__(
        self,
        operand_shape: tuple[int, ...],
        batch_shape: tuple[int, ...],
        window_axes: tuple[int, ...],
        collapsed: tuple[int, ...],
        index_map: tuple[int, ...],
        operand_batching: tuple[int, ...],
        indices_batching: tuple[int, ...],
        sizes: tuple[int, ...],
    ):
        rank = len(operand_shape)
        self.operand_shape, self.batch_shape, self.sizes = operand_shape, batch_shape, sizes
        self._strides = tuple(math.prod(operand_shape[d + 1 :]) for d in range(rank))
        hidden = {*collapsed, *operand_batching}
        self.window_dimensions = tuple(d for d in range(rank) if d not in hidden)
        self._batching = tuple(zip(operand_batching, indices_batching, strict=True))
        self.limits = np.array([operand_shape[d] - sizes[d] for d in index_map], np.int64)
        self.strides = np.array([self._strides[d] for d in index_map], np.int64)
        batch_rank, window_rank = len(batch_shape), len(self.window_dimensions)
        result_rank = batch_rank + window_rank
        batch_axes = [axis for axis in range(result_rank) if axis not in window_axes]
        # Canonical axis c is result axis order[c].
        order = [*batch_axes, *window_axes]
        self.permutation = _unless_identity(tuple(order.index(axis) for axis in range(result_rank)))
        self.canonical = _unless_identity(tuple(order))
        self.take_axis = self._plain_axis(collapsed, index_map)
        self.take_permutation = self._after_take(order, batch_rank)

    def _plain_axis(self, collapsed: tuple[int, ...], index_map: tuple[int, ...]) -> int | None:
        if len(index_map) != 1 or collapsed != index_map or self._batching:
            return None
        axis = index_map[0]
        rest = (d for d in range(len(self.sizes)) if d != axis)
        is_whole = all(self.sizes[d] == self.operand_shape[d] for d in rest)
        return axis if is_whole and self.sizes[axis] == 1 else None

    def _after_take(self, order: list[int], batch_rank: int) -> tuple[int, ...] | None:
        if self.take_axis is None:
            return None
        axis, window_rank = self.take_axis, len(order) - batch_rank
        source = [axis + b for b in range(batch_rank)]
        source += [w if w < axis else w + batch_rank for w in range(window_rank)]
        taken = [0] * len(order)
        for canonical, result_axis in enumerate(order):
            taken[result_axis] = source[canonical]
        return _unless_identity(tuple(taken))

    @property
    def batch_rank(self) -> int:
        """Number of axes of the array of index vectors."""
        return len(self.batch_shape)

    @functools.cached_property
    def _remembered_offsets(self) -> np.ndarray:
        return self._window_offsets()

    def _window_offsets(self) -> np.ndarray:
        offsets = np.zeros((1,) * len(self.window_dimensions), np.int64)
        for axis, d in enumerate(self.window_dimensions):
            shape = [1] * len(self.window_dimensions)
            shape[axis] = self.sizes[d]
            steps = np.arange(self.sizes[d], dtype=np.int64) * self._strides[d]
            offsets = offsets + steps.reshape(shape)
        return offsets

    def batch_positions(self, starts: np.ndarray) -> np.ndarray:
        """Returns the starts of windows as positions in the batch shape, if all windows fit."""
        positions = np.asarray(starts @ self.strides)
        for d, axis in self._batching:
            shape = [1] * self.batch_rank
            shape[axis] = self.batch_shape[axis]
            steps = np.arange(self.batch_shape[axis], dtype=np.int64) * self._strides[d]
            positions = positions + steps.reshape(shape)
        return positions

    def spread(self, positions: np.ndarray) -> np.ndarray:
        """Returns the positions of all elements of the windows that start at given positions."""
        window = [self.sizes[d] for d in self.window_dimensions]
        if math.prod(window) == 1:
            return positions.reshape((*positions.shape, *window))
        is_small = math.prod(window) <= _REMEMBERED_OFFSETS
        offsets = self._remembered_offsets if is_small else self._window_offsets()
        return positions.reshape((*positions.shape, *[1] * len(window))) + offsets

    def fits(self, indices: np.ndarray) -> np.ndarray:
        """Tells for each index vector whether its whole window lies within the operand."""
        if indices.shape[-1] == 1:
            indices, limit = indices[..., 0], self.limits[0]
            return np.asarray((indices >= 0) & (indices <= limit))
        return np.asarray(((indices >= 0) & (indices <= self.limits)).all(-1))

    def clip(self, indices: np.ndarray) -> np.ndarray:
        """Moves the windows that do not fit into the operand."""
        return np.minimum(np.maximum(indices, 0), self.limits)


def _unless_identity(permutation: tuple[int, ...]) -> tuple[int, ...] | None:
    return None if permutation == tuple(range(len(permutation))) else permutation


def as_int64(indices: np.ndarray) -> np.ndarray:
    """Returns indices as int64; unsigned ones beyond int64 stay out of bounds of every array."""
    if indices.dtype == np.uint64:
        indices = np.minimum(indices, _LARGEST_INT64)
    return indices.astype(np.int64, copy=False)


def check_index_type(name: str, indices: ShapedArray, count: int, batch_rank: int | None) -> None:
    """Checks the array of index vectors of a gather or scatter.

    Args:
        name: The op.
        indices: Type of the index vectors; the vectors lie along the last axis.
        count: The required number of entries of each vector.
        batch_rank: The required number of further axes; None for any number.
    """
    if not dtypes.is_integer(indices.dtype):
        raise DTypeError(
            f"{name}: indices must be integers, not {indices.dtype}.", "Cast with x.astype(int)."
        )
    if not indices.ndim or indices.shape[-1] != count:
        raise ShapeError(
            f"{name}: the last axis of the indices {indices} must hold vectors of {count} entries, "
            "one for each operand dimension that is indexed.",
            "Give single indices a last axis of size 1: indices[..., None].",
        )
    if batch_rank is not None and indices.ndim - 1 != batch_rank:
        raise ShapeError(
            f"{name}: the indices {indices} must have {batch_rank + 1} axes: the updates have "
            f"{batch_rank} axes that are not window axes, and the last axis holds the vectors."
        )


def check_dimensions(name: str, what: str, dimensions: Sequence[int], ndim: int) -> None:
    """Raises unless dimensions increase strictly and lie within an array of rank `ndim`."""
    if not is_sorted_in_range(dimensions, ndim):
        raise ParameterError(
            f"{name}: {what} {tuple(dimensions)} must increase strictly and lie within [0, {ndim})."
        )


def check_distinct(name: str, ndim: int, **groups: Sequence[int]) -> None:
    """Raises unless groups of dimensions of an array of rank `ndim` are valid and disjoint."""
    for what, dimensions in groups.items():
        if len(set(dimensions)) != len(dimensions) or any(not 0 <= d < ndim for d in dimensions):
            raise ParameterError(
                f"{name}: {what} {tuple(dimensions)} must be distinct and lie within [0, {ndim})."
            )
    names, values = list(groups), list(groups.values())
    for i, first in enumerate(values):
        for j in range(i + 1, len(values)):
            common = sorted(set(first) & set(values[j]))
            if common:
                raise ParameterError(
                    f"{name}: {names[i]} and {names[j]} both name the dimensions {common}."
                )

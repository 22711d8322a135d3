"""Positions in refs: indices, slices, `ds` and `...`, read into one form for all machines."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Generic, TypeAlias, TypeVar

import numpy as np

from axir.dialect.core.annotations import IndexLike
from axir.dialect.core.errors import IndexTypeError, OutOfBoundsError

from .values import KernelValue

Made = TypeVar("Made")
Start: TypeAlias = "int | KernelValue[Made]"


@dataclasses.dataclass(frozen=True)
class ds:
    """A slice of so many neighbours, from a place on that need not be known.

    Where it would reach over the end of the axis, it begins earlier. The name is JAX's.
    """

    start: IndexLike
    size: int


@dataclasses.dataclass(frozen=True)
class Axis(Generic[Made]):
    """What a position says of one axis of a ref.

    Args:
        start: The index, or the first one.
        size: How many neighbours; None for a single index, whose axis goes.
        extent: Of the axis.
    """

    start: Start[Made]
    size: int | None
    extent: int

    @property
    def most(self) -> int:
        """The largest start that fits."""
        return self.extent - (self.size or 1)


def read_position(position: IndexLike, shape: tuple[int, ...]) -> list[Axis[Made]]:
    """Returns what a position says of each axis.

    Raises:
        OutOfBoundsError: if a known part of it lies outside.
        IndexTypeError: if it has too many indices, or other than integers and slices.
    """
    given = list(position) if isinstance(position, tuple) else [position]
    dots = [number for number, x in enumerate(given) if x is Ellipsis]
    missing = len(shape) - len(given) + len(dots)
    if missing < 0 or len(dots) > 1:
        raise IndexTypeError(
            f"A ref of shape {shape} is indexed with {len(given)} indices.",
            "Give one for each axis at most, and one `...` for those left out.",
        )
    place = dots[0] if dots else len(given)
    rest = given[place + 1 :] if dots else []
    full = [*given[:place], *[slice(None)] * missing, *rest]
    return [_read(x, extent, shape) for x, extent in zip(full, shape, strict=True)]


def block_shape(axes: Sequence[Axis[Made]]) -> tuple[int, ...]:
    """Returns the shape of the block at a position."""
    return tuple(axis.size for axis in axes if axis.size is not None)


def _read(x: IndexLike, extent: int, shape: tuple[int, ...]) -> Axis[Made]:
    if isinstance(x, slice):
        start, stop, step = _slice(x, extent)
        if step != 1 or stop <= start:
            raise IndexTypeError(
                f"The slice {x} of an axis of {extent} has steps, or is empty.",
                "Slices of refs are neighbours; loop over the indices of others.",
            )
        return Axis(start, stop - start, extent)
    if isinstance(x, ds):
        if not 1 <= x.size <= extent:
            raise OutOfBoundsError(f"{x.size} neighbours of an axis of {extent}.")
        return Axis(_index(x.start, extent, shape), x.size, extent)
    return Axis(_index(x, extent, shape), None, extent)


def _slice(x: slice, extent: int) -> tuple[int, int, int]:
    try:
        return x.indices(extent)
    except TypeError:
        raise IndexTypeError(
            "A slice has an end that is not known.", "Write ds(start, size)."
        ) from None


def _index(x: IndexLike, extent: int, shape: tuple[int, ...]) -> Start[Made]:
    if isinstance(x, KernelValue):
        if x.shape or x.kind != "i":
            raise IndexTypeError(
                f"A ref of shape {shape} is indexed with {x.dtype}{list(x.shape)}.",
                "Indices are integers, one for an axis.",
            )
        return x
    if not isinstance(x, (int, np.integer)) or isinstance(x, bool):
        raise IndexTypeError(
            f"A ref of shape {shape} is indexed with {x!r}.", "Indices are integers and slices."
        )
    if not -extent <= x < extent:
        raise OutOfBoundsError(
            f"Index {x} lies outside of an axis of {extent}; the ref is {shape}.",
            "An index that is known must lie inside.",
        )
    return int(x) % extent

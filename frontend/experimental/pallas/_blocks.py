"""Blocks of an array: the block of a kernel instance, how it is read and written back.

Arrays are padded to whole blocks. Elements that a kernel reads from the padding are unspecified;
elements that it writes there are dropped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from axir import lax
from axir._transforms.callbacks import callback_name
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import UserFunction, UserObject
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.rules import Value
from axir.numpy import arange, asarray
from axir.numpy import pad as padded_array
from axir.numpy._indexing.dynamic_slices import dslice

from ._memory import uninitialized
from ._specs import (
    Blocked,
    BlockSpec,
    BlockSpecError,
    BoundedSlice,
    Element,
    Indirect,
    NoBlockSpec,
    Squeezed,
    block_dim,
)

Start: TypeAlias = "int | Value"
Starts: TypeAlias = Sequence[Start]


class Blocks:
    """The blocks of one array.

    Args:
        origin: Name of the array in messages: `args[0]`, `outputs[1]`.
        spec: The user's specification of the blocks.
        type: Of the array.

    Raises:
        BlockSpecError: if the block has another rank than the array.
    """

    def __init__(self, origin: str, spec: BlockSpec | NoBlockSpec, type: ShapedArray):
        self.origin = origin
        self.type = type
        spec = BlockSpec() if isinstance(spec, NoBlockSpec) else spec
        self._index_map: UserFunction | None = spec.index_map
        given = type.shape if spec.block_shape is None else spec.block_shape
        self.dims = tuple(map(block_dim, given))
        if len(self.dims) != len(type.shape):
            raise BlockSpecError(
                f"Block shape for {origin} (= {tuple(given)}) must have the same number of "
                f"dimensions as the array shape {type.shape}.",
                "Give an integer or None for each axis of the array.",
            )
        self.sizes = tuple(dim.block_size for dim in self.dims)
        self.shape = tuple(dim.block_size for dim in self.dims if not isinstance(dim, Squeezed))
        self._squeezed = tuple(n for n, dim in enumerate(self.dims) if isinstance(dim, Squeezed))

    # Arrays as large as blocks need -------------------------------------------------------------

    @property
    def margins(self) -> tuple[tuple[int, int], ...]:
        """How much is added in front of each axis and behind it."""
        margins = []
        for dim, size, extent in zip(self.dims, self.sizes, self.type.shape, strict=True):
            before, after = dim.padding if isinstance(dim, Element) else (0, 0)
            whole = before + extent + after
            margins.append((before, after + math.ceil(whole / max(size, 1)) * size - whole))
        return tuple(margins)

    def enlarged(self, array: Value) -> Value:
        """Returns an array with its margins."""
        if not any(map(any, self.margins)):
            return array
        nothing = uninitialized((), array.dtype)
        return padded_array(array, self.margins, constant_values=nothing)

    @property
    def enlarged_shape(self) -> tuple[int, ...]:
        """The shape of the array with its margins."""
        extents = zip(self.type.shape, self.margins, strict=True)
        return tuple(n + sum(margin) for n, margin in extents)

    def trimmed(self, array: Value) -> Value:
        """Returns an array without its margins."""
        if not any(map(any, self.margins)):
            return array
        ends = zip(self.margins, self.type.shape, strict=True)
        return array[tuple(slice(before, before + n) for (before, _), n in ends)]

    # One block ----------------------------------------------------------------------------------

    def starts(self, place: Sequence[object], scalars: Sequence[object]) -> Starts:
        """Returns where the block of a place in the grid begins along each axis.

        Raises:
            BlockSpecError: if the index map gives something else than an integer for each axis.
        """
        if self._index_map is None:
            return [0] * len(self.dims)
        found = self._index_map(*place, *scalars)
        given = tuple(found) if isinstance(found, (tuple, list)) else (found,)
        if len(given) != len(self.dims):
            raise BlockSpecError(
                f"Index map function {_place_of(self._index_map)} for {self.origin} must return "
                f"{len(self.dims)} values to match block_shape={self.dims}. Currently returning "
                f"{len(given)} values: {given}.",
                "Return the number of the block for each axis of the array.",
            )
        return [
            self._start(n, x, dim) for n, (x, dim) in enumerate(zip(given, self.dims, strict=True))
        ]

    def _start(self, number: int, given: UserObject, dim: object) -> Start:
        if isinstance(dim, BoundedSlice):
            if not hasattr(given, "size") or not hasattr(given, "start"):
                raise BlockSpecError(
                    f"index_map returned a value of type {type(given)} at position {number} with "
                    f"block dimension {dim} when it should be pl.Slice",
                    "Return pl.ds(start, size) for this axis.",
                )
            given = given.start
        if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
            return int(given) * (dim.block_size if isinstance(dim, Blocked) else 1)
        value = asarray(given)
        rank = 1 if isinstance(dim, Indirect) else 0
        if value.ndim != rank or dtypes.kind(value.dtype) not in "iu":
            raise BlockSpecError(
                f"Index map function {_place_of(self._index_map)} for {self.origin} must return "
                f"integer scalars. Output[{number}] has type {value.aval}.",
                "Convert it with astype('int32').",
            )
        return value * dim.block_size if isinstance(dim, Blocked) else value

    def is_whole(self, starts: Starts) -> bool:
        """Tells whether a block is known to be the whole array."""
        return self.sizes == self.type.shape and all(
            isinstance(start, int) and start == 0 for start in starts
        )

    def read(self, array: Value, starts: Starts) -> Value:
        """Returns the block of an array with its margins."""
        if self._is_indirect:
            return array[self._places(starts)]
        if self.is_whole(starts) and not any(map(any, self.margins)):
            return lax.squeeze(array, self._squeezed)
        if all(isinstance(start, int) for start in starts):
            starts = self._inside(starts, array.shape)
            ends = [start + size for start, size in zip(starts, self.sizes, strict=True)]
            return lax.squeeze(lax.slice(array, starts, ends), self._squeezed)
        block = lax.dynamic_slice(
            array, _as_indices(starts), self.sizes, allow_negative_indices=False
        )
        return lax.squeeze(block, self._squeezed)

    def write(self, array: Value, starts: Starts, block: Value) -> Value:
        """Returns an array with its margins and another block."""
        if self._is_indirect:
            return array.at[self._places(starts)].set(block)
        whole = lax.expand_dims(block, self._squeezed)
        if whole.shape == array.shape and self.is_whole(starts):
            return whole
        return lax.dynamic_update_slice(
            array, whole, _as_indices(starts), allow_negative_indices=False
        )

    def _inside(self, starts: Starts, shape: tuple[int, ...]) -> list[int]:
        mosts = (extent - size for extent, size in zip(shape, self.sizes, strict=True))
        return [min(max(int(start), 0), most) for start, most in zip(starts, mosts, strict=True)]

    @property
    def _is_indirect(self) -> bool:
        return any(isinstance(dim, Indirect) for dim in self.dims)

    def _places(self, starts: Starts) -> tuple[UserObject, ...]:
        """Returns the positions along each axis; some of them are arrays."""
        many = len([dim for dim in self.dims if isinstance(dim, Indirect)]) > 1
        return tuple(
            start
            if isinstance(dim, (Indirect, Squeezed))
            else (start + arange(dim.block_size) if many else dslice(start, dim.block_size))
            for start, dim in zip(starts, self.dims, strict=True)
        )


def _as_indices(starts: Starts) -> list[Value]:
    return [asarray(start, np.int32) for start in starts]


def _place_of(function: Callable[..., object] | None) -> str:
    """Returns the name of a function for messages: its name, and its source line."""
    return place_of(function) if function is not None else "default"


def place_of(function: Callable[..., object]) -> str:
    """Returns the name of a user's function, and its source line."""
    code = getattr(getattr(function, "func", function), "__code__", None)
    name = callback_name(function)
    return name if code is None else f"{name} at {code.co_filename}:{code.co_firstlineno}"

"""Ranges and joins written as indices: `mgrid`, `ogrid`, `r_`, `c_`, `s_`, `index_exp`.

NumPy's objects of these names parse the index. Arrays are joined here, so that the index may
contain traced arrays.
"""

from __future__ import annotations

import numpy as np

from axir.dialect.core.annotations import IndexLike
from axir.dialect.core.errors import ParameterError
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.program.rules import Value
from axir.numpy._arguments.checks import canonical_axis
from axir.numpy._arguments.promotion import promote_arguments
from axir.numpy._shape.joining import concatenate, stack
from axir.numpy._shape.manipulation import expand_dims

from .grids import arange, linspace, meshgrid

__all__ = ["c_", "index_exp", "mgrid", "ogrid", "r_", "s_"]

index_exp = np.index_exp
s_ = np.s_


def _range(part: slice) -> Value:
    """Returns the numbers of a slice: an imaginary step is how many there are."""
    start = 0 if part.start is None else part.start
    step = 1 if part.step is None else part.step
    if part.stop is None:
        raise ParameterError(f"jnp: the range {part} has no end.", "Write start:stop:step.")
    if isinstance(step, complex):
        return linspace(start, part.stop, int(abs(step)))
    return arange(start, part.stop, step)


class _Grid:
    """The class of `mgrid` and `ogrid`."""

    def __init__(self, name: str, is_sparse: bool):
        self._name, self._is_sparse = name, is_sparse

    def __repr__(self) -> str:
        return f"axir.numpy.{self._name}"

    def __getitem__(self, index: IndexLike) -> object:
        if isinstance(index, slice):
            return _range(index)
        ranges = promote_arguments(self._name, *map(_range, index))
        axes = meshgrid(*ranges, indexing="ij", sparse=self._is_sparse)
        return list(axes) if self._is_sparse else stack(axes)


mgrid = _Grid("mgrid", False)
ogrid = _Grid("ogrid", True)


class _Joined:
    """The class of `r_` and `c_`: arrays, numbers and ranges joined along an axis.

    A string in front is `axis`, `axis,ndim` or `axis,ndim,start`: along which axis, how many axes
    the parts get at least, and where their own axes then begin.
    """

    def __init__(self, name: str, axis: int, rank: int, start: int):
        self._name, self._defaults = name, (axis, rank, start)

    def __repr__(self) -> str:
        return f"axir.numpy.{self._name}"

    def __getitem__(self, index: IndexLike) -> Value:
        parts = index if isinstance(index, tuple) else (index,)
        axis, rank, start = self._defaults
        if isinstance(parts[0], str):
            axis, rank, start = self._directive(parts[0])
            parts = parts[1:]
        arrays = [self._part(part, rank, start) for part in parts]
        return concatenate(arrays, canonical_axis(self._name, axis, arrays[0].ndim))

    def _directive(self, text: str) -> tuple[int, int, int]:
        try:
            numbers = [int(number) for number in text.split(",")]
        except ValueError:
            raise ParameterError(
                f"jnp.{self._name}: {text!r} is not of the form 'axis', 'axis,ndim' or "
                "'axis,ndim,start'."
            ) from None
        return tuple([*numbers, *self._defaults[len(numbers) :]])[:3]  # type: ignore[return-value]

    def _part(self, part: object, rank: int, start: int) -> Value:
        if isinstance(part, str):
            raise ParameterError(f"jnp.{self._name}: a directive like {part!r} comes first.")
        array = _range(part) if isinstance(part, slice) else as_value(part)
        given = array.ndim
        missing = rank - given
        if missing <= 0:
            return array
        # The axes of the part begin at `start`; -1 puts them last.
        place = start + missing + 1 if start < 0 else start
        if given == 0:
            return expand_dims(array, tuple(range(rank)))
        before = max(min(place, missing), 0)
        return expand_dims(array, tuple(d for d in range(rank) if not before <= d < before + given))


r_ = _Joined("r_", 0, 1, -1)
c_ = _Joined("c_", -1, 2, 0)

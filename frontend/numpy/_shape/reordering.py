"""Elements in another order: `flip`, `rot90`, `roll`."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index

import numpy as np

from axir.dialect.core.annotations import (
    Axes,
    Extent,
    UserObject,
)
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.symbolic_dims import (
    is_same,
    is_symbolic_dim,
)
from axir.dialect.ops.elementwise.arithmetic import rem, sub
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.indexing.dynamic_slicing import dynamic_slice_in_dim
from axir.dialect.ops.indexing.static_slicing import slice_in_dim
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.rearranging import rev
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Tracer
from axir.numpy._arguments.checks import canonical_axes, canonical_axis, is_sequence
from axir.numpy._arguments.promotion import array_argument

from .manipulation import reshape, swapaxes

__all__ = ["flip", "fliplr", "flipud", "roll", "rot90"]


def flip(m: ArrayLike, axis: Axes = None) -> Value:
    """Reverses the order of elements along axes, by default all.

    Raises:
        AxisError: for an axis out of range or named twice.

    >>> import axir.numpy as jnp
    >>> jnp.flip(jnp.array([[1, 2], [3, 4]]), axis=0)
    Array([[3, 4],
           [1, 2]], dtype=int32)
    """
    m = array_argument("flip", m)
    axes = canonical_axes("flip", axis, m.ndim)
    return rev(m, axes) if axes else m


def fliplr(m: ArrayLike) -> Value:
    """Reverses the order of columns (axis 1).

    >>> import axir.numpy as jnp
    >>> jnp.fliplr(jnp.array([[1, 2], [3, 4]]))
    Array([[2, 1],
           [4, 3]], dtype=int32)
    """
    return flip(m, 1)


def flipud(m: ArrayLike) -> Value:
    """Reverses the order of rows (axis 0).

    >>> import axir.numpy as jnp
    >>> jnp.flipud(jnp.array([[1, 2], [3, 4]]))
    Array([[3, 4],
           [1, 2]], dtype=int32)
    """
    return flip(m, 0)


def rot90(m: object, k: int = 1, axes: UserObject = (0, 1)) -> Value:
    """Rotates by k right angles in the plane of two axes, from the first toward the second.

    Raises:
        AxisError: for axes out of range or equal.

    >>> import axir.numpy as jnp
    >>> jnp.rot90(jnp.array([[1, 2], [3, 4]]))
    Array([[2, 4],
           [1, 3]], dtype=int32)
    """
    m = array_argument("rot90", m)
    first, second = canonical_axes("rot90", tuple(axes), m.ndim)
    turns = index(k) % 4
    if turns == 0:
        return m
    if turns == 2:
        return flip(m, (first, second))
    return (
        swapaxes(flip(m, second), first, second)
        if turns == 1
        else flip(swapaxes(m, first, second), second)
    )


def roll(a: UserObject, shift: ArrayLike | Sequence[ArrayLike], axis: UserObject = None) -> Value:
    """Shifts elements along axes; those that fall off the end come back at the start.

    Args:
        a: Array.
        shift: By how many places: an integer, or one per axis; may be traced.
        axis: Axis or sequence of axes; by default the flattened array is shifted.

    Raises:
        AxisError: for an axis out of range.
        ParameterError: if there are not as many shifts as axes.

    >>> import axir.numpy as jnp
    >>> jnp.roll(jnp.arange(5), 2)
    Array([3, 4, 0, 1, 2], dtype=int32)
    """
    a = array_argument("roll", a)
    if axis is None:
        return reshape(roll(reshape(a, (a.size,)), shift, 0), a.shape)
    given = axis if is_sequence(axis) else (axis,)
    axes = [canonical_axis("roll", d, a.ndim) for d in given]
    for amount, d in zip(*_paired(_shifts(shift), axes), strict=True):
        a = _rolled(a, amount, d)
    return a


def _shifts(shift: ArrayLike | Sequence[ArrayLike]) -> list[UserObject]:
    if isinstance(shift, Sequence):
        return list(shift)
    if is_symbolic_dim(shift):
        return [shift]
    if type(shift) is Tracer:
        if not shift.ndim:
            return [shift]
        parts = [slice_in_dim(shift, i, i + 1) for i in range(shift.shape[0])]
        return [reshape(part, ()) for part in parts]
    return list(np.ravel(np.asarray(shift)))


def _paired(shifts: list[object], axes: list[int]) -> tuple[list[UserObject], list[int]]:
    """Broadcasts shifts and axes against each other."""
    count = max(len(shifts), len(axes))
    if len(shifts) not in (1, count) or len(axes) not in (1, count):
        raise ParameterError(
            f"jnp.roll: {len(shifts)} shifts do not fit {len(axes)} axes.",
            "Give a shift for all axes, or one per axis.",
        )
    return shifts * (count // len(shifts)), axes * (count // len(axes))


def _rolled(a: Value, shift: ArrayLike, axis: int) -> Value:
    extent = a.shape[axis]
    if not extent:
        return a
    if type(shift) is not Tracer:
        known: Extent = shift if is_symbolic_dim(shift) else index(np.asarray(shift).item())
        start = -known % extent
        if is_same(start, 0):
            return a
        parts = [slice_in_dim(a, start, extent, axis=axis), slice_in_dim(a, 0, start, axis=axis)]
        return concatenate(parts, axis)
    # The remainder has the sign of the dividend, so the start lies in the first two copies.
    back = rem(convert_element_type(shift, np.int32), extent)
    tripled = concatenate([a, a, a], axis)
    return dynamic_slice_in_dim(tripled, sub(extent, back), extent, axis)

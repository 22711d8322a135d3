"""Symbolic values of differentiation: known zeros, and unknown operands.

`Zero` stands for a tangent or cotangent that is zero, so that rules never compute with it;
`UndefinedPrimal` stands for a linear operand while a function is transposed. Marks tell which of
several values have a property: functions derived from others take and return the marked ones only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeGuard, TypeVar, final

import numpy as np

from . import dtypes
from .annotations import Dtype, HostArray
from .types import ShapedArray

if TYPE_CHECKING:
    from .array import Array

Marks = tuple[bool, ...]
_T = TypeVar("_T")


class Symbolic:
    """Stands for a value with only its type known.

    Attributes:
        aval: The type.
    """

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the value."""
        return self.aval.shape

    @property
    def dtype(self) -> Dtype:
        """dtype of the value."""
        return self.aval.dtype

    @property
    def type(self) -> ShapedArray:
        """Type of the value."""
        return self.aval

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.aval.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.aval.size

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.aval})"


@final
class Zero(Symbolic):
    """A tangent or cotangent known to be zero; its type is float0 for integers and booleans."""

    __slots__ = ()

    @staticmethod
    def from_primal_value(value: Array) -> Zero:
        """Returns the zero tangent of a primal value."""
        return Zero(value.type.to_tangent_aval())

    def __array__(self, dtype: Dtype | None = None, copy: bool | None = None) -> HostArray:
        """Returns an array of zeros, for users' rules that compute with every tangent."""
        return np.zeros(self.shape, dtype or self.dtype)

    __jax_array__ = __array__


@final
class UndefinedPrimal(Symbolic):
    """An operand in which a function is linear; a transpose rule cannot know its value."""

    __slots__ = ()


def is_undefined_primal(x: object) -> TypeGuard[UndefinedPrimal]:
    """Tells whether a transpose rule's operand is one of the linear ones."""
    return type(x) is UndefinedPrimal


# Marks -----------------------------------------------------------------------------------------


def moving(tangents: Iterable[object]) -> Marks:
    """Tells which tangents or cotangents are not symbolic zeros."""
    return tuple([type(t) is not Zero for t in tangents])


def unknown(operands: Iterable[object]) -> Marks:
    """Tells which operands of a transpose rule are the linear ones."""
    return tuple([type(x) is UndefinedPrimal for x in operands])


def inexact(types: Iterable[ShapedArray]) -> Marks:
    """Tells which types have tangents of the same type: float and complex ones."""
    return tuple([dtypes.is_inexact(t.dtype) for t in types])


def inverted(marks: Iterable[bool]) -> Marks:
    """Inverts marks."""
    return tuple([not mark for mark in marks])


def union(first: Sequence[bool], second: Sequence[bool]) -> Marks:
    """Marks the places that either of two sequences marks."""
    return tuple([a or b for a, b in zip(first, second, strict=True)])


def chosen(values: Sequence[_T | Symbolic | None], marks: Sequence[bool]) -> list[_T]:
    """Returns the marked values; none of them is symbolic."""
    return [x for x, mark in zip(values, marks, strict=True) if mark]  # type: ignore[misc]


def spread(
    values: Iterable[_T], marks: Sequence[bool], types: Sequence[ShapedArray]
) -> list[_T | Zero]:
    """Returns tangents in the places that are marked, symbolic zeros of given types elsewhere."""
    remaining = iter(values)
    return [
        next(remaining) if mark else Zero(t.to_tangent_aval())
        for t, mark in zip(types, marks, strict=True)
    ]

"""Symbolic values of differentiation: known zeros, and operands that are not known.

`Zero` stands for a tangent or cotangent that is zero, so that rules never compute with it;
`UndefinedPrimal` stands for a linear operand while a function is transposed.
"""

from __future__ import annotations

from typing import Any

from .types import ShapedArray


class Zero:
    """A tangent or cotangent known to be zero.

    Attributes:
        aval: The type of the zero; float0 for integers and booleans.
    """

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    @staticmethod
    def from_primal_value(value: Any) -> Zero:
        """Returns the zero tangent of a primal value."""
        return Zero(value.type.to_tangent_aval())

    def __repr__(self) -> str:
        return f"Zero({self.aval})"


class UndefinedPrimal:
    """An operand in which a function is linear, and whose value a transpose rule cannot know.

    Attributes:
        aval: The type of the operand.
    """

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the operand."""
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        """dtype of the operand."""
        return self.aval.dtype

    @property
    def type(self) -> ShapedArray:
        """Type of the operand."""
        return self.aval

    @property
    def ndim(self) -> int:
        """Number of dimensions of the operand."""
        return self.aval.ndim

    def __repr__(self) -> str:
        return f"UndefinedPrimal({self.aval})"


def is_undefined_primal(value: Any) -> bool:
    """Tells whether a transpose rule's operand is one of the linear ones."""
    return type(value) is UndefinedPrimal

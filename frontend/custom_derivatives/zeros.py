"""What rules with `symbolic_zeros=True` see: zeros that are no arrays, and which values move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from axir.dialect import dtypes
from axir.dialect.ops.family import instantiate
from axir.dialect.symbolic import Zero
from axir.dialect.types import ShapedArray
from axir.tree import map as map_leaves


class SymbolicZero:
    """A tangent or cotangent that is known to be zero.

    Attributes:
        aval: Its type; float0 for values of integer and bool dtypes.

    >>> SymbolicZero(ShapedArray((2,), np.float32))
    SymbolicZero(float32[2])
    """

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the value that it belongs to."""
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        """dtype of the zero."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.aval.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.aval.size

    @staticmethod
    def from_primal_value(val: Any) -> SymbolicZero:
        """Returns the zero tangent of a value.

        >>> SymbolicZero.from_primal_value(2)
        SymbolicZero(float0[])
        """
        from axir.arguments import type_of

        return SymbolicZero(type_of(val).to_tangent_aval())

    def __repr__(self) -> str:
        return f"SymbolicZero({self.aval})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SymbolicZero) and self.aval == other.aval

    def __hash__(self) -> int:
        return hash((SymbolicZero, self.aval))


@dataclass(frozen=True)
class CustomVJPPrimal:
    """An argument of a forward rule with `symbolic_zeros=True`.

    Attributes:
        value: The value.
        perturbed: Whether the derivative with respect to it may be asked for.
    """

    value: Any
    perturbed: bool


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """Returns a tree of `CustomVJPPrimal` as the tree of their values.

    >>> custom_vjp_primal_tree_values({"x": CustomVJPPrimal(1.0, True)})
    {'x': 1.0}
    """
    return map_leaves(lambda primal: primal.value, tree)


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """Returns the zero tangent of a value.

    Args:
        val: An array or scalar.
        symbolic_zeros: Whether to return a `SymbolicZero` in place of an array of zeros.
    """
    from axir.arguments import type_of

    zero = Zero(type_of(val).to_tangent_aval())
    return SymbolicZero(zero.aval) if symbolic_zeros else materialized(zero)


def materialized(zero: Zero) -> Any:
    """Returns a symbolic zero as the array that users see: float0 arrays are NumPy's."""
    if zero.aval.dtype == dtypes.float0:
        return np.zeros(zero.aval.shape, dtypes.float0)
    return instantiate(zero)


def shown(tangent: Any, symbolic_zeros: bool) -> Any:
    """Returns a tangent or cotangent as a rule gets it."""
    if type(tangent) is not Zero:
        return tangent
    return SymbolicZero(tangent.aval) if symbolic_zeros else materialized(tangent)

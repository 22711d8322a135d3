"""Arguments of rules with `symbolic_zeros=True`: symbolic zeros, differentiated values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from axir._arguments.arguments import type_of
from axir._trees.tree import map as map_leaves
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import PyTree, Tree, UserObject
from axir.dialect.core.symbolic_zeros import Symbolic, Zero
from axir.dialect.ops.elementwise.family import instantiate


class SymbolicZero(Symbolic):
    """A tangent or cotangent that is known to be zero.

    Attributes:
        aval: Its type; float0 for values of integer and bool dtypes.

    >>> SymbolicZero.from_primal_value(np.ones(2, np.float32))
    SymbolicZero(float32[2])
    """

    __slots__ = ()

    @staticmethod
    def from_primal_value(val: object) -> SymbolicZero:
        """Returns the zero tangent of a value.

        >>> SymbolicZero.from_primal_value(2)
        SymbolicZero(float0[])
        """
        return SymbolicZero(type_of(val).to_tangent_aval())

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

    value: UserObject
    perturbed: bool


def custom_vjp_primal_tree_values(tree: Tree) -> UserObject:
    """Returns a tree of `CustomVJPPrimal` as the tree of their values.

    >>> custom_vjp_primal_tree_values({"x": CustomVJPPrimal(1.0, True)})
    {'x': 1.0}
    """
    return map_leaves(lambda primal: primal.value, tree)


def zero_from_primal(val: Tree, symbolic_zeros: bool = False) -> PyTree:
    """Returns the zero tangents of values.

    Args:
        val: Array, scalar, or tree of them.
        symbolic_zeros: Whether to return `SymbolicZero`s in place of arrays of zeros.

    >>> zero_from_primal({"x": 1.0})
    {'x': Array(0., dtype=float32)}
    """

    def zero_of(leaf: object) -> object:
        zero = Zero(type_of(leaf).to_tangent_aval())
        return SymbolicZero(zero.aval) if symbolic_zeros else materialized(zero)

    return map_leaves(zero_of, val)


def materialized(zero: Zero) -> UserObject:
    """Returns a symbolic zero as the array that users see: float0 arrays are NumPy's."""
    if zero.aval.dtype == dtypes.float0:
        return np.zeros(zero.aval.shape, dtypes.float0)
    return instantiate(zero)


def shown(tangent: Tree, symbolic_zeros: bool) -> UserObject:
    """Returns a tangent or cotangent as a rule gets it."""
    if type(tangent) is not Zero:
        return tangent
    return SymbolicZero(tangent.aval) if symbolic_zeros else materialized(tangent)

"""`Var`, `Literal`, `Equation`: the view of single ops of a program, with parameters decoded.

What does not live here: programs (`function.py`) and walks over their equations (`walk.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from iree.compiler import ir

from axir.dialect.core.annotations import Params
from axir.dialect.core.types import ShapedArray

from . import later_modules

if TYPE_CHECKING:
    from axir.dialect.core.array import ConcreteArray

    from .primitive import Primitive


class Var:
    """An SSA value of a function, with its type.

    Attributes:
        value: The MLIR value.
        type: Shape, dtype and weak type.
    """

    __slots__ = ("type", "value")

    def __init__(self, value: ir.Value, array_type: ShapedArray):
        self.value = value
        self.type = array_type

    @property
    def aval(self) -> ShapedArray:
        """The type, under JAX's name."""
        return self.type


class Literal(Var):
    """The result of a `jaxpr.constant` op: a known value inside a function.

    Attributes:
        array: The value.
    """

    __slots__ = ("array",)

    def __init__(self, value: ir.Value, array: ConcreteArray):
        super().__init__(value, array.type)
        self.array = array

    @property
    def val(self) -> ConcreteArray:
        """The value, under JAX's name."""
        return self.array


class Equation:
    """The view of one op: `results = primitive[params](operands)`."""

    __slots__ = ("op", "operands", "params", "primitive", "results")

    def __init__(
        self,
        primitive: Primitive,
        operands: Sequence[Var],
        results: Sequence[Var],
        params: Params,
        op: ir.Operation,
    ):
        self.primitive = primitive
        self.operands = operands
        self.results = results
        self.params = params
        self.op = op

    @property
    def location(self) -> ir.Location:
        """The user's line."""
        return self.op.location

    @property
    def invars(self) -> list[Var]:
        """The operands, under JAX's name."""
        return list(self.operands)

    @property
    def outvars(self) -> list[Var]:
        """The results, under JAX's name."""
        return list(self.results)

    @property
    def effects(self) -> frozenset[Primitive]:
        """The primitives that act in it, itself or in functions it calls."""
        return later_modules.effects.primitives_that_act(self)

    def __repr__(self) -> str:
        return f"<Equation {self.primitive.name} of {[str(v.type) for v in self.operands]}>"

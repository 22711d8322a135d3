"""`Var`, `Literal`, `Equation`: the view of single ops of a program, with parameters decoded.

Elsewhere: programs (`function.py`) and walks over their equations (`walk.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir

from axir.dialect.core.annotations import Params, UserObject
from axir.dialect.core.array import ArrayLike, ConcreteArray, as_array
from axir.dialect.core.context import SourceInfo, current_location, source_info_of
from axir.dialect.core.dtypes import storage
from axir.dialect.core.types import ShapedArray

from .operation import Operation, later


class Var:
    """A value of a function, with its type.

    Attributes:
        type: Shape, dtype and weak type.
        value: The MLIR value; None for a variable of a jaxpr made from equations.
    """

    __slots__ = ("type", "value")
    value: ir.Value  # not None in programs, so readers need no check

    def __init__(self, array_type: ShapedArray, value: ir.Value | None = None):
        self.type = array_type
        self.value = value

    @property
    def aval(self) -> ShapedArray:
        """The type, under JAX's name."""
        return self.type


class Literal(Var):
    """The result of a `jaxpr.constant` op: a known value inside a function.

    Args:
        val: The value.
        aval: Its type; by default the value's own type.
        value: The MLIR value.

    Attributes:
        array: The value.
    """

    __slots__ = ("array",)

    def __init__(
        self, val: ArrayLike, aval: ShapedArray | None = None, value: ir.Value | None = None
    ):
        array = as_array(val)
        if aval is not None and aval != array.type:
            array = ConcreteArray(aval, array.host().astype(storage(aval.dtype)))
        super().__init__(array.type, value)
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
        primitive: Operation,
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
    def source_info(self) -> SourceInfo:
        """The user's line, and the scopes around it, under JAX's name."""
        return source_info_of(self.location)

    @property
    def invars(self) -> list[Var]:
        """The operands, under JAX's name."""
        return list(self.operands)

    @property
    def outvars(self) -> list[Var]:
        """The results, under JAX's name."""
        return list(self.results)

    @property
    def effects(self) -> frozenset[Operation]:
        """The primitives that act in it, itself or in functions it calls."""
        found: frozenset[Operation] = later.primitives_that_act(self)
        return found

    def replace(self, **parts: UserObject) -> MadeEquation:
        """Returns the equation with other parts, to make a jaxpr from equations.

        Args:
            **parts: `invars`, `outvars`, `primitive` and `params`. Derived parts, such as
                `effects`, are accepted, too.

        >>> import axir
        >>> from axir import lax
        >>> (equation,) = axir.make_jaxpr(lax.sin)(1.0).eqns
        >>> equation.replace(primitive=lax.cos_p)
        <Equation cos of ['~float32[]']>
        """
        return MadeEquation(
            parts.get("invars", self.operands),
            parts.get("outvars", self.results),
            parts.get("primitive", self.primitive),
            parts.get("params", self.params),
            self.location,
        )

    def __repr__(self) -> str:
        return f"<Equation {self.primitive.name} of {[str(v.type) for v in self.operands]}>"


class MadeEquation(Equation):
    """An equation without an op, as part of a jaxpr made from equations.

    Attributes:
        location: The user's line.
    """

    __slots__ = ("location",)
    location: ir.Location

    def __init__(
        self,
        invars: Sequence[Var],
        outvars: Sequence[Var],
        primitive: Operation,
        params: Params,
        location: ir.Location | None = None,
    ):
        super().__init__(primitive, tuple(invars), tuple(outvars), dict(params), None)
        self.location = current_location() if location is None else location

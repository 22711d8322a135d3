"""`Function`: a traced program. MLIR is the program; `Equation` and `Var` are the view of it.

A function is a `func.func` whose arguments are its inputs followed by its captures: values of the
surroundings (constants, or tracers of an outer trace) that travel as arguments. The view lists the
ops with their parameters decoded; a trace fills it as it goes along, and `reading.py` rebuilds it
from the MLIR of a parsed module.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from iree.compiler import ir

from .context import context, state
from .types import ShapedArray

if TYPE_CHECKING:
    from .array import ConcreteArray
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
    def val(self) -> Any:
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
        params: dict[str, Any],
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
    def effects(self) -> frozenset[Any]:
        """The primitives that act in it, itself or in functions it calls."""
        from .effects import primitives_that_act

        return primitives_that_act(self)

    def __repr__(self) -> str:
        return f"<Equation {self.primitive.name} of {[str(v.type) for v in self.operands]}>"


_symbol_counter = itertools.count()


def unique_symbol(name: str) -> str:
    """Returns a symbol that no other function of the process has."""
    return f"{name}${next(_symbol_counter)}"


class Function:
    """A traced program.

    Attributes:
        name: What the user called it.
        symbol_name: Unique in the process, so that calls can refer to it.
        op: The `func.func`.
        inputs: Its arguments.
        captures: Further arguments, for values of the surroundings.
        captured: Those values, one for each capture.
        outputs: What it returns.
        equations: The view of its ops, in order.
        owner: The module that holds `op`, which must live as long as the function; None if the op
            stands alone.
    """

    __slots__ = (
        "__weakref__",
        "captured",
        "captures",
        "derived",
        "equations",
        "inputs",
        "name",
        "op",
        "outputs",
        "owner",
        "symbol_name",
    )

    def __init__(
        self,
        name: str,
        op: ir.Operation,
        inputs: Sequence[Var],
        captures: Sequence[Var],
        captured: Sequence[Any],
        outputs: Sequence[Var],
        equations: Sequence[Equation],
    ):
        self.name = name
        self.symbol_name = unique_symbol(name)
        self.op = op
        self.inputs = tuple(inputs)
        self.captures = tuple(captures)
        self.captured = tuple(captured)
        self.outputs = tuple(outputs)
        self.equations = equations
        self.owner: ir.Module | None = None
        # Functions derived from this one (its tangent function ...), by whoever derives them.
        self.derived: dict[Any, Any] = {}

    @property
    def input_types(self) -> list[ShapedArray]:
        """Types of the inputs."""
        return [v.type for v in self.inputs]

    @property
    def output_types(self) -> list[ShapedArray]:
        """Types of the outputs."""
        return [v.type for v in self.outputs]

    @property
    def location(self) -> ir.Location:
        """Where the function was traced."""
        return self.op.location

    @property
    def jaxpr(self) -> Any:
        """The view of the function that interpreters expect where an op calls it; see `Jaxpr`.

        Its inputs are the operands of the call: what the function captured is among them.
        """
        from .jaxpr import Jaxpr

        return Jaxpr(self, is_called=True)

    @property
    def consts(self) -> list[Any]:
        """Values of `jaxpr.constvars`, of which there are none."""
        return []

    @property
    def in_avals(self) -> list[ShapedArray]:
        """Types of the operands of a call, under JAX's name."""
        return [v.type for v in (*self.inputs, *self.captures)]

    @property
    def out_avals(self) -> list[ShapedArray]:
        """Types of the outputs, under JAX's name."""
        return self.output_types

    @property
    def eqns(self) -> list[Equation]:
        """The equations, in order, under JAX's name."""
        return list(self.equations)

    @property
    def effects(self) -> frozenset[Any]:
        """The primitives that act in it; empty if it only computes."""
        return self.jaxpr.effects

    def evaluate(self, *arguments: Any) -> list[Any]:
        """Applies the function to values, op by op; captures take the values captured.

        On concrete values this computes (the evaluator); on tracers it inlines the ops into their
        trace.
        """
        return self.interpret([*arguments, *self.captured])

    def interpret(
        self, arguments: Sequence[Any], bind: Callable[..., Any] | None = None
    ) -> list[Any]:
        """Applies the function to values of its inputs and captures, op by op.

        Args:
            arguments: Values of the inputs, then of the captures.
            bind: Replaces `primitive.bind`: called with the equation and the operands.
        """
        environment: dict[Var, Any] = dict(
            zip((*self.inputs, *self.captures), arguments, strict=True)
        )
        previous = state.origin
        try:
            for equation in self.equations:
                state.origin = equation
                operands = [read(environment, v) for v in equation.operands]
                if bind is None:
                    results = equation.primitive.bind(*operands, **equation.params)
                else:
                    results = bind(equation, operands)
                write(environment, equation, results)
        finally:
            state.origin = previous
        return [read(environment, v) for v in self.outputs]

    def callees(self) -> Iterator[Function]:
        """Yields the functions that parameters of this one's ops name."""
        for equation in self.equations:
            for value in equation.params.values():
                yield from functions_in(value)


def functions_in(value: Any) -> Iterator[Function]:
    """Yields the functions that a parameter is or holds."""
    if type(value) is Function:
        yield value
    elif type(value) is tuple:
        for item in value:
            yield from functions_in(item)


def read(environment: dict[Var, Any], var: Var) -> Any:
    """Returns the value of a variable or literal."""
    return var.array if type(var) is Literal else environment[var]


def write(environment: dict[Var, Any], equation: Equation, results: Any) -> None:
    """Stores what an equation gave."""
    if equation.primitive.multiple_results:
        for var, result in zip(equation.results, results, strict=True):
            environment[var] = result
    else:
        environment[equation.results[0]] = results


def create_function_op(name: str, location: ir.Location) -> tuple[ir.Operation, ir.Block]:
    """Returns a detached `func.func` without arguments, and its empty body."""
    with context():
        empty = ir.FunctionType.get([], [])
        op = ir.Operation.create(
            "func.func",
            attributes={
                "sym_name": ir.StringAttr.get(name),
                "function_type": ir.TypeAttr.get(empty),
            },
            regions=1,
            loc=location,
            ip=False,
        )
        return op, ir.Block.create_at_start(op.regions[0], [])


def finish_function_op(
    op: ir.Operation, block: ir.Block, arguments: Sequence[Var], outputs: Sequence[Var]
) -> None:
    """Adds the `func.return` and sets the type, with weak types as argument and result marks."""
    with context(), op.location:
        ir.Operation.create(
            "func.return", operands=[v.value for v in outputs], ip=ir.InsertionPoint(block)
        )
        function_type = ir.FunctionType.get(
            [v.type.mlir for v in arguments], [v.type.mlir for v in outputs]
        )
        op.attributes["function_type"] = ir.TypeAttr.get(function_type)
        _mark_weak_types(op, "arg_attrs", arguments)
        _mark_weak_types(op, "res_attrs", outputs)


def _mark_weak_types(op: ir.Operation, attribute: str, values: Sequence[Var]) -> None:
    if any(v.type.weak_type for v in values):
        weak = ir.DictAttr.get({"jaxpr.weak_type": ir.UnitAttr.get()})
        strong = ir.DictAttr.get({})
        op.attributes[attribute] = ir.ArrayAttr.get(
            [weak if v.type.weak_type else strong for v in values]
        )

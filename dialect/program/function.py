"""`Function`: a traced program. MLIR is the program; equations and variables are the view of it.

A function is a `func.func`. Its arguments are its inputs, followed by its captures: values of the
surroundings (constants, or tracers of an outer trace) that are passed as arguments. The view lists
the ops with decoded parameters. A trace fills the view while it records, and
`dialect/text/module_reader.py` rebuilds it from the MLIR of a parsed module.

Here: also functions that are made when they are first needed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from iree.compiler import ir

from axir.dialect.core.annotations import Param, Params
from axir.dialect.core.array import Array
from axir.dialect.core.context import bare_context
from axir.dialect.core.memo import Memo, derived
from axir.dialect.core.state import Change, state, user_code
from axir.dialect.core.types import ShapedArray

from .equation import Equation, Var
from .operation import Operation, later
from .rules import Value
from .walk import Bind, Environment, apply_equations


class DeferredFunction:
    """A function, given by a callable that traces it.

    Args:
        name: Name of the user's function.
        trace: Traces the function; called at most once.

    Attributes:
        symbol_name: The symbol in ops that refer to it until it is written.
    """

    def __init__(self, name: str, trace: Callable[[], Function]):
        self.name = name
        self.symbol_name = unique_symbol(name)
        self._trace = trace
        self._function: Function | None = None
        # The named axes in scope at its creation are in scope at its tracing, too.
        self._axes = state.axis_sizes, state.tracked_axes
        # The values derived from it, as in `Function.derived`.
        self.derived = Memo()

    @property
    def function(self) -> Function:
        """The traced function."""
        if self._function is None:
            with self.surroundings():
                self._function = self._trace()
        return self._function

    def surroundings(self) -> Change:
        """Lets the user's code run as at the place where the function was made."""
        return user_code(*self._axes)

    def __repr__(self) -> str:
        return self.name


def resolved(value: Param) -> Function:
    """Returns the function that a parameter is, tracing it if it is deferred."""
    return value if type(value) is Function else value.function


def deferred_in(value: object) -> Iterator[DeferredFunction]:
    """Yields the deferred functions that a parameter is or holds."""
    if isinstance(value, DeferredFunction):
        yield value
    elif type(value) is tuple:
        for item in value:
            yield from deferred_in(item)


# Values of one kind, arrays or tracers, give values of that kind, unless functions capture values
# of the other kind.
_Kind = TypeVar("_Kind", bound=Array)

_symbol_counter = itertools.count()


def unique_symbol(name: str) -> str:
    """Returns a symbol that no other function of the process has."""
    return f"{name}${next(_symbol_counter)}"


class JaxprView(Protocol):
    """A function as interpreters read it: `Jaxpr`."""

    @property
    def invars(self) -> list[Var]:
        """The inputs."""
        ...

    @property
    def outvars(self) -> list[Var]:
        """The outputs."""
        ...

    @property
    def constvars(self) -> list[Var]:
        """Variables of known values."""
        ...

    @property
    def eqns(self) -> list[Equation]:
        """The equations, in order."""
        ...

    @property
    def effects(self) -> frozenset[Operation]:
        """The primitives that act."""
        ...


class Function:
    """A traced program.

    Attributes:
        name: Name of the user's function.
        symbol_name: Unique in the process, so that calls can refer to it.
        op: The `func.func`.
        inputs: Its arguments.
        captures: Further arguments, for values of the surroundings.
        captured: Those values, one for each capture.
        outputs: The variables that it returns.
        equations: The view of its ops, in order.
        owner: The module that holds `op` and must live as long as the function; None if no module
            holds it.
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
        captured: Sequence[Value],
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
        # The values derived from it: its tangent function, its compiled form, ...
        self.derived = Memo()

    def __str__(self) -> str:
        return str(self.jaxpr)

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
    def jaxpr(self) -> JaxprView:
        """The view of the function that interpreters expect where an op calls it; see `Jaxpr`.

        Its inputs are the operands of the call, including the captured values.
        """
        view: JaxprView = later.Jaxpr.of(self, is_called=True)
        return view

    @property
    def consts(self) -> list[Value]:
        """Values of `jaxpr.constvars`; always empty."""
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
    def effects(self) -> frozenset[Operation]:
        """The primitives that act in it; empty if it only computes."""
        return self.jaxpr.effects

    def evaluate(self, *arguments: _Kind) -> list[_Kind]:
        """Applies the function to values, op by op; captures take the values captured.

        On concrete values this computes (the evaluator); on tracers it inlines the ops into their
        trace.
        """
        return self.interpret([*arguments, *self.captured])  # type: ignore[list-item]

    def interpret(self, arguments: Sequence[_Kind], bind: Bind | None = None) -> list[_Kind]:
        """Applies the function to values of its inputs and captures, op by op.

        Args:
            arguments: Values of the inputs, then of the captures.
            bind: Replaces `primitive.bind`: called with the equation and the operands.
        """
        environment = Environment.of(self, arguments)
        apply_equations(self.equations, environment, bind)
        return environment.values_of(self.outputs)  # type: ignore[return-value]

    def callees(self) -> Iterator[Function]:
        """Yields the functions that its ops refer to in their parameters."""
        for equation in self.equations:
            yield from functions_of(equation.params)


@derived
def unit_of(function: Function) -> Function:
    """Returns a function with its captures as inputs, after the others, as in a call."""
    arguments = (*function.inputs, *function.captures)
    return Function(
        function.name, function.op, arguments, (), (), function.outputs, function.equations
    )


def functions_of(params: Params) -> Iterator[Function]:
    """Yields the functions that parameters of an op are or hold."""
    for value in params.values():
        yield from functions_in(value)


def functions_in(value: object) -> Iterator[Function]:
    """Yields the functions that a parameter is or holds."""
    if type(value) is Function:
        yield value
    elif type(value) is tuple:
        for item in value:
            yield from functions_in(item)


def create_function_op(name: str, location: ir.Location) -> tuple[ir.Operation, ir.Block]:
    """Returns a detached `func.func` without arguments, and its empty body."""
    with bare_context():
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


def create_constant_op(
    kind: ir.Type, elements: ir.Attribute, location: ir.Location, place: ir.InsertionPoint
) -> ir.Operation:
    """Creates a `jaxpr.constant` op with these elements at a place in a function."""
    with bare_context():
        return ir.Operation.create(
            "jaxpr.constant", [kind], [], {"value": elements}, None, 0, location, place
        )


def finish_function_op(
    op: ir.Operation, block: ir.Block, arguments: Sequence[Var], outputs: Sequence[Var]
) -> None:
    """Adds the `func.return` and sets the type, with weak types as argument and result marks."""
    with bare_context(), op.location:
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

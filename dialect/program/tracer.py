"""`Tracer` and `Trace`: how a Python function becomes MLIR.

There is one kind of tracer: an SSA value, its type, and perhaps a known value one level further
out. A `Trace` is a `func.func` under construction; each primitive applied to its tracers appends
one op. Values from outside become captures, small scalars become `jaxpr.constant` ops.

A trace with known values of its inputs (`grad`, `jvp`, ... of concrete arguments) computes the
values of its ops on demand: Python's `if` asks for them, and so does linearization, which then
finds them computed. Nothing is computed twice.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import cast

from iree.compiler import ir

from axir.dialect.core import state as core_state
from axir.dialect.core.annotations import (
    DTypeLike,
    HostArray,
    NestedNumbers,
    Params,
    UserObject,
)
from axir.dialect.core.array import Array, ConcreteArray, as_array
from axir.dialect.core.attributes import dense
from axir.dialect.core.context import current_location, describe_location
from axir.dialect.core.dtypes import is_key
from axir.dialect.core.errors import (
    ConcretizationTypeError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    leaked,
    not_concrete,
)
from axir.dialect.core.extended_dtypes import words_of
from axir.dialect.core.state import Change, around_trace, open_trace
from axir.dialect.core.symbolic_dims import as_traced, is_symbolic_dim
from axir.dialect.core.types import ShapedArray, in_order

from .described_arrays import is_computed, record_description
from .effects import is_effectful
from .equation import Equation, Literal, Var
from .function import Function, create_constant_op, create_function_op, finish_function_op
from .operation import Application, Operation, later
from .rules import Operand, Results, Value
from .walk import Environment, apply_equations


class TracingState(core_state.State):
    """The state of a thread, with the types of traces."""

    origin: Equation | None
    ambient: Trace | None
    branch: Trace | None


state = cast("TracingState", core_state.state)


class Tracer(Var, Array):
    """The traced kind of value: stands for an array while a function is traced.

    Attributes:
        owner: The trace it belongs to (`trace` is the method of arrays).
    """

    __slots__ = ("__weakref__", "owner")

    def __init__(self, trace: Trace, value: ir.Value, array_type: ShapedArray):
        self.owner = trace
        self.value = value
        self.type = array_type

    def __copy__(self) -> Tracer:
        return self

    def __deepcopy__(self, memo: object) -> Tracer:
        return self  # an immutable value

    @property
    def _trace(self) -> Trace:
        """The trace it belongs to, under the name by which libraries ask."""
        return self.owner

    def known(self, error: type[ConcretizationTypeError], use: str) -> Value:
        """Returns the value one level out, or raises `error` because only the type is known."""
        trace = self.owner
        if not trace.is_open:
            value = stand_in(self)
            return value.known(error, use) if type(value) is Tracer else value
        if trace.environment is None:
            raise not_concrete(error, _birth(self), trace.name, use)
        return trace.value_of(self)

    def __bool__(self) -> bool:
        return bool(self.known(TracerBoolConversionError, "as a bool (in if, while, and, or, not)"))

    def __int__(self) -> int:
        return int(self.known(ConcretizationTypeError, "by int()"))

    def __float__(self) -> float:
        return float(self.known(ConcretizationTypeError, "by float()"))

    def __complex__(self) -> complex:
        return complex(self.known(ConcretizationTypeError, "by complex()"))

    def __index__(self) -> int:
        return self.known(TracerIntegerConversionError, "as a Python integer").__index__()

    def __array__(self, dtype: DTypeLike = None, copy: bool | None = None) -> HostArray:
        raise not_concrete(TracerArrayConversionError, _birth(self), self.owner.name, "by NumPy")

    def tolist(self) -> NestedNumbers:
        """Returns the elements as nested lists, where the value is known."""
        return self.known(ConcretizationTypeError, "by tolist()").tolist()

    def item(self, *index: int) -> UserObject:
        """Returns one element as a Python scalar, where the value is known."""
        return self.known(ConcretizationTypeError, "by item()").item(*index)

    def block_until_ready(self) -> Tracer:
        """Returns itself: there is nothing to wait for while tracing."""
        return self

    def __iter__(self) -> Iterator[Array]:
        if not self.type.shape:
            raise TypeError("Iteration over a scalar tracer: it has no axes.")
        return (self[index] for index in range(self.type.shape[0]))

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        trace = self.owner
        if not trace.is_open or trace.environment is None:
            return _name(self)
        return f"{_name(self)[:-1]}, primal={trace.value_of(self)})"

    __str__ = __repr__

    def __format__(self, specification: str) -> str:
        return repr(self)


def _birth(tracer: Tracer) -> str:
    """Returns the name of a tracer in errors, without its value, and the place of its op."""
    owner = tracer.value.owner
    location = owner.location if isinstance(owner, (ir.Operation, ir.OpView)) else None
    place = describe_location(location) if location is not None else None
    origin = f"made at {place}" if place else f"an argument of {tracer.owner.name!r}"
    return f"{_name(tracer)} ({origin})"


def _name(tracer: Tracer) -> str:
    return f"{tracer.owner.kind}Tracer({tracer.type})"


def stand_in(tracer: Tracer) -> Value:
    """Returns the value that replaces a tracer of an ended trace.

    Raises:
        UnexpectedTracerError: if no value replaces it.
    """
    value = state.stand_ins.get(tracer)
    if not isinstance(value, Array):
        raise leaked(_birth(tracer), tracer.owner.name)
    return value


def _in_use(operand: Operand) -> Operand:
    is_ended = type(operand) is Tracer and not operand.owner.is_open
    return stand_in(operand) if is_ended else operand  # type: ignore[arg-type]


class Trace:
    """A function under construction.

    Args:
        name: Name of the user's function.
        kind: The transformation that traces, for `repr` of tracers.
        writes_descriptions: Whether uniform, repeated or counted arrays from outside are written as
            the ops that make them, which compile into their users, instead of captured.
        is_ambient: Whether code runs in this trace, so that it records ops without operands. False
            if it only collects ops that depend on its own arguments.
        is_branch: Whether it also records ops with tracers of surrounding traces as operands: the
            ops of a branch must run only if the branch is chosen.
        shows_captures: Whether arrays that existed before the trace are captured in any case, while
            `state.shows_captures`.
        keeps_residuals: Whether residuals become captures even if they are scalars of known value,
            so that a linear function has one jaxpr for all values of its residuals.
    """

    __slots__ = (
        "__weakref__", "_captured", "_chosen_axes", "_constants", "_evaluated", "_insertion_point",
        "_is_ambient", "_kept", "_more_varying", "_opening", "_shows_captures", "_surroundings",
        "block", "captured", "captures", "environment", "equations", "inputs", "is_open",
        "keeps_residuals", "kind", "level", "name", "op", "writes_descriptions",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        kind: str = "Jit",
        writes_descriptions: bool = False,
        is_ambient: bool = True,
        is_branch: bool = False,
        keeps_residuals: bool = False,
        shows_captures: bool = False,
    ):
        self.name = name
        self.kind = kind
        self.op, self.block = create_function_op(name, current_location())
        self._insertion_point = ir.InsertionPoint(self.block)
        self.inputs: list[Tracer] = []
        self.captures: list[Tracer] = []
        self.captured: list[Value] = []
        self.equations: list[Equation] = []
        self._captured: dict[int, Var] = {}
        # The arrays of the ids in `_captured`, because nothing else keeps them alive.
        self._kept: list[ConcreteArray] = []
        self.writes_descriptions = writes_descriptions
        self._shows_captures = shows_captures
        self.keeps_residuals = keeps_residuals
        self._constants: dict[Hashable, Literal] = {}
        self._is_ambient = is_ambient
        self._more_varying: dict[Hashable, Tracer] = {}
        # Values one level out, by variable; None where only types are known.
        self.environment: Environment | None = None
        self._evaluated = 0
        self.is_open = True
        self.level = state.level + 1
        self._chosen_axes = state.chosen_axes
        # The traces around this one, where the values of its ops are computed.
        self._surroundings = (state.ambient, state.branch)
        self._opening: Change | None = open_trace(self, is_ambient, is_branch)

    @property
    def main(self) -> Trace:
        """The trace itself; libraries compare it to find out whether tracers share a trace."""
        return self

    @property
    def surrounding(self) -> Trace | None:
        """The trace in which code ran when this one began."""
        return self._surroundings[0]

    def add_input(self, array_type: ShapedArray) -> Tracer:
        """Adds an argument; all of them before the first op."""
        tracer = self._argument(array_type)
        self.inputs.append(tracer)
        return tracer

    def know_inputs(self, values: Sequence[Value]) -> None:
        """Tells the values of the inputs, so that tracers of this trace are concrete."""
        self.environment = Environment(zip(self.inputs, values, strict=True))

    def _argument(self, array_type: ShapedArray) -> Tracer:
        value = self.block.add_argument(array_type.mlir, current_location())
        return Tracer(self, value, array_type)

    def record(self, primitive: Operation, operands: Sequence[Operand], params: Params) -> Results:
        """Appends the op of a primitive, and returns its result tracer(s)."""
        if not self.is_open:
            return primitive.bind(*map(_in_use, operands), **params)
        variables = [x if type(x) is Tracer and x.owner is self else self.lift(x) for x in operands]
        if primitive.infer is None and self.environment is not None:
            return self._record_by_value(primitive, variables, params)
        application = primitive.apply_to(tuple([v.type for v in variables]), params)
        if application.missing is not None:
            pairs = zip(variables, application.missing, strict=True)
            variables = [self.varied(v, names) if type(v) is Tracer else v for v, names in pairs]
        if application.mlir_types is None:
            application.materialize(params)
        return self._append(primitive, variables, params, application)

    def varied(self, variable: Tracer, names: tuple[Hashable, ...]) -> Tracer:
        """Returns a value marked as varying along further axes of a mesh.

        Constants need no mark: only differentiation uses it.
        """
        if not names:
            return variable
        key = (variable, names)
        varied = self._more_varying.get(key)
        if varied is None:
            varied = self.record(later.OPS["pvary"], [variable], {"axes": names})
            self._more_varying[key] = varied
        return varied

    def _append(
        self,
        primitive: Operation,
        variables: list[Var],
        params: Params,
        application: Application,
    ) -> Results:
        op = ir.Operation.create(
            primitive.op_name,
            application.mlir_types,
            [v.value for v in variables],
            application.attributes,
            None,
            0,
            current_location(),
            self._insertion_point,
        )
        types = application.results
        if type(types) is ShapedArray:
            result = Tracer(self, op.result, types)
            self.equations.append(Equation(primitive, variables, (result,), params, op))
            return result
        results = [Tracer(self, v, t) for v, t in zip(op.results, types, strict=True)]
        self.equations.append(Equation(primitive, variables, results, params, op))
        if self.environment is not None and is_effectful(self.equations[-1]):
            self.catch_up()  # effects happen when and where the user's code asks for them
        return results

    def _record_by_value(
        self, primitive: Operation, variables: list[Var], params: Params
    ) -> Results:
        """Records a user's primitive without abstract evaluation: its values give the types."""
        self.catch_up()
        assert self.environment is not None
        operands = self.environment.values_of(variables)
        results = primitive.bind(*operands, **params)
        return self._append_known(primitive, variables, params, results)

    def record_known(
        self, primitive: Operation, operands: Sequence[Operand], params: Params, results: Results
    ) -> Results:
        """Records an op with known results, one level out; the results determine its types."""
        self.catch_up()
        variables = [self.lift(x) for x in operands]
        return self._append_known(primitive, variables, params, results)

    def _append_known(
        self, primitive: Operation, variables: list[Var], params: Params, results: Results
    ) -> Results:
        assert self.environment is not None
        values = list(results) if primitive.multiple_results else [results]
        types = [x.type if type(x) is Tracer else as_array(x).type for x in values]
        application = Application(types if primitive.multiple_results else types[0])
        application.materialize(params)
        outs = self._append(primitive, variables, params, application)
        self._evaluated = len(self.equations)
        self.environment.store(self.equations[-1], results)
        return outs

    def outside(self) -> Change:
        """Lets code run one level out, as in the computation of this trace's values."""
        return around_trace(*self._surroundings)

    def lift(self, value: Operand) -> Var:
        """Brings a value from outside into the function, as a literal or as a capture."""
        if type(value) is Tracer:
            if value.owner is self:
                return value
            if not value.owner.is_open:
                return self.lift(stand_in(value))
        else:
            if is_symbolic_dim(value):
                return self.lift(as_traced(value))
            if type(value) is not ConcreteArray:
                value = as_array(value)
            if not value.type.shape and not is_key(value.type.dtype):
                return self._literal(value)
        known = self._captured.get(id(value))
        # An array on several devices is captured: a description would lose its placement.
        place = value._device if type(value) is ConcreteArray else None
        is_described = self.writes_descriptions and not (place is not None and place.is_spread)
        if known is None and is_described and type(value) is ConcreteArray:
            known = record_description(self, value) if self._may_describe(value) else None
            if known is not None:
                self._captured[id(value)] = known
                self._kept.append(value)
        return self.capture(value) if known is None else known

    def _may_describe(self, array: ConcreteArray) -> bool:
        if not state.keeps_origins:
            return True
        return state.shows_captures and (not self._shows_captures or is_computed(array))

    def capture(self, value: Value) -> Var:
        """Brings a value from outside into the function as a capture, once.

        In a branch that only some positions choose, the capture is marked as varying: its
        derivative is summed outside of the branch, where all positions take part.
        """
        if self._chosen_axes and type(value) is Tracer:
            names = in_order(self._chosen_axes - value.type.varying)
            value = value.owner.varied(value, names)
        capture = self._captured.get(id(value))
        if capture is None:
            capture = self._argument(value.type)
            self._captured[id(value)] = capture
            self.captures.append(capture)
            self.captured.append(value)
            if self.environment is not None:
                self.environment[capture] = value
        return capture

    def _literal(self, array: ConcreteArray) -> Literal:
        # A differentiated value may be a residual, and residuals that are literals may become
        # captures (`keeps_residuals`). Equal literals then stay separate captures, as two tracers
        # do.
        is_differentiated = self.environment is not None or not self._is_ambient
        key = id(array) if is_differentiated else (array.host().tobytes(), array.type)
        literal = self._constants.get(key)
        if literal is None:
            literal = self._constants[key] = self.constant(array)
        return literal

    def constant(self, array: ConcreteArray) -> Literal:
        """Appends a `jaxpr.constant` op that holds an array in the text of the module."""
        attribute = dense(words_of(array.host()))
        op = create_constant_op(
            array.type.mlir, attribute, current_location(), self._insertion_point
        )
        return Literal(array, value=op.result)

    def embed(self, array: ConcreteArray) -> None:
        """Makes later uses of an array a constant in the text, or few ops, instead of a capture.

        Scalars other than keys are constants in any case.
        """
        if id(array) not in self._captured and (array.shape or is_key(array.dtype)):
            described = record_description(self, array, embeds=True)
            self._captured[id(array)] = self.constant(array) if described is None else described
            self._kept.append(array)

    def value_of(self, tracer: Tracer) -> Value:
        """Returns the value of a tracer one level out; computes the ops recorded so far."""
        self.catch_up()
        assert self.environment is not None
        return self.environment[tracer]

    def catch_up(self) -> None:
        """Computes the values of all ops recorded so far, one level out."""
        assert self.environment is not None
        if self._evaluated < len(self.equations):
            with self.outside():
                apply_equations(self._pending(), self.environment)

    def _pending(self) -> Iterator[Equation]:
        while self._evaluated < len(self.equations):
            yield self.equations[self._evaluated]
            self._evaluated += 1

    def finish(self, outputs: Sequence[Operand]) -> Function:
        """Ends the trace and returns the function that yields `outputs`."""
        variables = [self.lift(x) for x in outputs]
        finish_function_op(self.op, self.block, [*self.inputs, *self.captures], variables)
        function = Function(
            self.name,
            self.op,
            self.inputs,
            self.captures,
            self.captured,
            variables,
            self.equations,
        )
        self.close()
        return function

    def close(self) -> None:
        """Ends the trace: its tracers can no longer be used."""
        if not self.is_open:
            return
        self.is_open = False
        if self._opening is not None:
            self._opening.__exit__()
        # Tracers refer to their trace. It drops its references to them, so that reference counting
        # frees all of it: collecting the cycles would cost more than tracing.
        self.inputs, self.captures, self.captured = [], [], []
        self.equations, self._kept = [], []
        self._captured, self._constants, self._more_varying = {}, {}, {}
        self.environment = self._opening = None

    def __enter__(self) -> Trace:
        assert self._opening is not None
        self._opening.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def is_compiled_later() -> bool:
    """Tells whether ops recorded now become part of a program that is compiled."""
    trace = state.ambient
    while trace is not None:
        if trace.writes_descriptions:
            return True
        trace = trace.surrounding
    return False

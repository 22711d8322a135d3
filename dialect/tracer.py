"""`Tracer` and `Trace`: how a Python function becomes MLIR.

There is one kind of tracer: an SSA value, its type, and perhaps a known value one level further
out. A `Trace` is a `func.func` under construction; each primitive applied to its tracers appends
one op. Values from outside become captures, small scalars become `jaxpr.constant` ops.

A trace whose inputs have known values (`grad`, `jvp`, ... of concrete arguments) computes the
values of its ops when somebody asks: Python's `if` does, and so does linearization, which then
finds them done. Nothing is computed twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from iree.compiler import ir

from .application import Application
from .array import Array, ConcreteArray, as_array
from .attributes import dense
from .context import context, current_location, describe_location, state
from .dtypes import is_key
from .effects import is_effectful
from .errors import (
    ConcretizationTypeError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
)
from .extended import words_of
from .function import (
    Equation,
    Function,
    Literal,
    Var,
    create_function_op,
    finish_function_op,
    read,
    write,
)
from .types import ShapedArray

if TYPE_CHECKING:
    from .primitive import Primitive


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

    def known(self, error: type[ConcretizationTypeError], use: str) -> Any:
        """Returns the value one level out, or raises `error` because only the type is known."""
        trace = self.owner
        if not trace.is_open:
            raise leaked(self)
        if trace.environment is None:
            raise _not_concrete(self, error, use)
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

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise _not_concrete(self, TracerArrayConversionError, "by NumPy")

    def tolist(self) -> Any:
        """Returns the elements as nested lists, where the value is known."""
        return self.known(ConcretizationTypeError, "by tolist()").tolist()

    def item(self, *index: int) -> Any:
        """Returns one element as a Python scalar, where the value is known."""
        return self.known(ConcretizationTypeError, "by item()").item(*index)

    def block_until_ready(self) -> Tracer:
        """Returns itself: there is nothing to wait for while tracing."""
        return self

    def __iter__(self) -> Any:
        if not self.type.shape:
            raise TypeError("Iteration over a scalar tracer: it has no axes.")
        return (self[index] for index in range(self.type.shape[0]))  # type: ignore[index]

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


def _is_splat(array: ConcreteArray) -> bool:
    """Tells whether all elements are one element of memory, as `full` makes them."""
    host = array._host
    return host is not None and host.size > 1 and not any(host.strides)


def _name(tracer: Tracer) -> str:
    """Returns what errors call a tracer: they may not compute its value, as `repr` does."""
    return f"{tracer.owner.kind}Tracer({tracer.type})"


def _birth(tracer: Tracer) -> str:
    owner = tracer.value.owner
    location = owner.location if isinstance(owner, (ir.Operation, ir.OpView)) else None
    place = describe_location(location) if location is not None else None
    return f"made at {place}" if place else f"an argument of {tracer.owner.name!r}"


def _not_concrete(
    tracer: Tracer, error: type[ConcretizationTypeError], use: str
) -> ConcretizationTypeError:
    fixes = {
        TracerBoolConversionError: "Use jnp.where or lax.cond for a choice by value, or make the "
        "argument static with jit(..., static_argnums=...).",
        TracerIntegerConversionError: "Make the argument that it comes from static with "
        "jit(..., static_argnums=...), or index with arrays.",
        TracerArrayConversionError: "Use axir.numpy instead of numpy inside transformed functions.",
    }
    return error(
        f"The value of {_name(tracer)} ({_birth(tracer)}) was needed {use}, but while "
        f"{tracer.owner.name!r} is being traced only its type is known.",
        fixes.get(
            error, "Make the argument that it comes from static with jit(..., static_argnums=...)."
        ),
    )


def leaked(tracer: Tracer) -> UnexpectedTracerError:
    """Returns the error for a tracer used after its trace has ended."""
    return UnexpectedTracerError(
        f"{_name(tracer)} ({_birth(tracer)}) leaked: it was used after the tracing of "
        f"{tracer.owner.name!r} had ended.",
        "Return values from the function instead of storing them in globals, attributes or lists "
        "outside it.",
    )


class Trace:
    """A function under construction.

    Args:
        name: What the user calls the function.
        kind: Which transformation traces, for `repr` of tracers.
        writes_splats: Whether uniform arrays from outside become a scalar and a broadcast, which
            compiles into their users, instead of a capture.
        is_ambient: Whether code runs in this trace, so that it records ops without operands; not
            if it only collects what depends on its own arguments.
        is_branch: Whether it also records ops whose operands are tracers of surrounding traces:
            what a branch does must happen only if the branch is chosen.
    """

    __slots__ = (
        "_captured",
        "_constants",
        "_evaluated",
        "_insertion_point",
        "_kept",
        "_surrounding_branch",
        "_surroundings",
        "block",
        "captured",
        "captures",
        "environment",
        "equations",
        "inputs",
        "is_open",
        "kind",
        "level",
        "name",
        "op",
        "writes_splats",
    )

    def __init__(
        self,
        name: str,
        kind: str = "Jit",
        writes_splats: bool = False,
        is_ambient: bool = True,
        is_branch: bool = False,
    ):
        self.name = name
        self.kind = kind
        self.op, self.block = create_function_op(name, current_location())
        self._insertion_point = ir.InsertionPoint(self.block)
        self.inputs: list[Tracer] = []
        self.captures: list[Tracer] = []
        self.captured: list[Any] = []
        self.equations: list[Equation] = []
        self._captured: dict[int, Var] = {}
        # Arrays whose ids are keys of `_captured`, while nothing else holds them.
        self._kept: list[ConcreteArray] = []
        self.writes_splats = writes_splats
        self._constants: dict[Any, Literal] = {}
        # Values one level out, by variable; None where only types are known.
        self.environment: dict[Var, Any] | None = None
        self._evaluated = 0
        self.is_open = True
        state.level += 1
        self.level = state.level
        # The ambient trace around this one, where the values of its ops are computed.
        self._surroundings = state.ambient
        self._surrounding_branch = state.branch
        if is_ambient:
            state.ambient = self
        if is_branch:
            state.branch = self

    def add_input(self, array_type: ShapedArray) -> Tracer:
        """Adds an argument; all of them before the first op."""
        tracer = self._argument(array_type)
        self.inputs.append(tracer)
        return tracer

    def know_inputs(self, values: Sequence[Any]) -> None:
        """Tells the values of the inputs, so that tracers of this trace are concrete."""
        self.environment = dict(zip(self.inputs, values, strict=True))

    def _argument(self, array_type: ShapedArray) -> Tracer:
        value = self.block.add_argument(array_type.mlir, current_location())
        return Tracer(self, value, array_type)

    def record(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """Appends the op of a primitive, and returns its result tracer(s)."""
        if not self.is_open:
            raise leaked(next(x for x in operands if type(x) is Tracer and x.owner is self))
        variables = [x if type(x) is Tracer and x.owner is self else self.lift(x) for x in operands]
        if primitive.infer is None and self.environment is not None:
            return self._record_by_value(primitive, variables, params)
        application = primitive.apply_to(tuple([v.type for v in variables]), params)
        if application.mlir_types is None:
            application.materialize(params)
        return self._append(primitive, variables, params, application)

    def _append(
        self,
        primitive: Primitive,
        variables: list[Var],
        params: dict[str, Any],
        application: Application,
    ) -> Any:
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
        self, primitive: Primitive, variables: list[Var], params: dict[str, Any]
    ) -> Any:
        """Records a user's primitive without abstract evaluation: its values tell the types."""
        self.catch_up()
        assert self.environment is not None
        operands = [read(self.environment, v) for v in variables]
        return self.record_known(primitive, variables, params, primitive.bind(*operands, **params))

    def record_known(
        self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any], results: Any
    ) -> Any:
        """Records an op whose results are known already, one level out, and tell its types."""
        self.catch_up()
        assert self.environment is not None
        values = list(results) if primitive.multiple_results else [results]
        types = [x.type if type(x) is Tracer else as_array(x).type for x in values]
        application = Application(types if primitive.multiple_results else types[0])
        application.materialize(params)
        variables = [self.lift(x) for x in operands]
        outs = self._append(primitive, variables, params, application)
        self._evaluated = len(self.equations)
        write(self.environment, self.equations[-1], results)
        return outs

    @contextmanager
    def outside(self) -> Iterator[None]:
        """Lets code run one level out, as what computes the values of this trace does."""
        before = state.origin, state.ambient, state.branch
        state.origin, state.ambient = None, self._surroundings
        state.branch = self._surrounding_branch
        try:
            yield
        finally:
            state.origin, state.ambient, state.branch = before

    def lift(self, value: Any) -> Var:
        """Brings a value from outside into the function: as a literal or as a capture."""
        if type(value) is Tracer:
            if value.owner is self:
                return value
            if not value.owner.is_open:
                raise leaked(value)
        else:
            if type(value) is not ConcreteArray:
                value = as_array(value)
            if not value.type.shape and not is_key(value.type.dtype):
                return self._literal(value)
        known = self._captured.get(id(value))
        if (
            known is None
            and self.writes_splats
            and type(value) is ConcreteArray
            and _is_splat(value)
        ):
            return self._splat(value)
        if known is None:
            capture = known = self._argument(value.type)
            self._captured[id(value)] = capture
            self.captures.append(capture)
            self.captured.append(value)
            if self.environment is not None:
                self.environment[capture] = value
        return known

    def _literal(self, array: ConcreteArray) -> Literal:
        key = (array.host().tobytes(), array.type)
        literal = self._constants.get(key)
        if literal is None:
            literal = self._constants[key] = self.constant(array)
        return literal

    def _splat(self, array: ConcreteArray) -> Var:
        from .ops.table import OPS

        host = array.host()
        first: tuple[Any, ...] = (*(0,) * host.ndim, ...)
        scalar = ConcreteArray(ShapedArray((), array.dtype, array.weak_type), host[first])
        params = {"shape": array.shape, "broadcast_dimensions": ()}
        known = self._captured[id(array)] = self.record(OPS["broadcast_in_dim"], [scalar], params)
        self._kept.append(array)
        return known

    def constant(self, array: ConcreteArray) -> Literal:
        """Appends a `jaxpr.constant` op that holds an array in the text of the module."""
        with context():
            op = ir.Operation.create(
                "jaxpr.constant",
                [array.type.mlir],
                [],
                {"value": dense(words_of(array.host()))},
                None,
                0,
                current_location(),
                self._insertion_point,
            )
        return Literal(op.result, array)

    def embed(self, array: ConcreteArray) -> None:
        """Makes later uses of an array a constant in the text instead of a capture."""
        if id(array) not in self._captured:
            self._captured[id(array)] = self.constant(array)
            self._kept.append(array)

    def value_of(self, tracer: Tracer) -> Any:
        """Returns the value of a tracer one level out, computing what was recorded so far."""
        self.catch_up()
        assert self.environment is not None
        return self.environment[tracer]

    def catch_up(self) -> None:
        """Computes the values of all ops recorded so far, one level out."""
        environment = self.environment
        assert environment is not None
        with self.outside():
            while self._evaluated < len(self.equations):
                equation = self.equations[self._evaluated]
                state.origin = equation
                operands = [read(environment, v) for v in equation.operands]
                write(environment, equation, equation.primitive.bind(*operands, **equation.params))
                self._evaluated += 1

    def finish(self, outputs: Sequence[Any]) -> Function:
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
        state.level -= 1
        state.ambient, state.branch = self._surroundings, self._surrounding_branch
        # Tracers refer to their trace. It lets go of them, so that all of it is freed by reference
        # counting: collecting the cycles would cost more than tracing.
        self.inputs, self.captures, self.captured = [], [], []
        self.equations, self._kept = [], []
        self._captured, self._constants, self.environment = {}, {}, None

    def __enter__(self) -> Trace:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

"""From MLIR modules to functions: the verifier.

In this process the dialect's ops are unregistered, so MLIR checks only their form. This module
checks the operands of each op with the `infer` rules that tracing uses, and reports errors with the
location of the op.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable

from iree.compiler import ir

from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.attributes import dense_to_numpy
from axir.dialect.core.context import describe_location
from axir.dialect.core.dtypes import is_key
from axir.dialect.core.errors import AxirError, UnknownOpError, VerificationError
from axir.dialect.core.extended_dtypes import keys_of
from axir.dialect.core.types import ShapedArray, type_of_mlir
from axir.dialect.program.equation import Equation, Literal, Var
from axir.dialect.program.function import DeferredFunction, Function
from axir.dialect.program.op_table import OPS, USER_OPS
from axir.dialect.program.primitive import Primitive

from .parsing import parse_module, read_file
from .resources import resource_array
from .schema import read_attributes
from .text_positions import place_in_text

__all__ = ["parse_module", "read_file", "read_module"]

_WEAK = "jaxpr.weak_type"
_RETURNS = ("func.return", "return")
_SHOWN = 60


def read_module(module: ir.Module) -> dict[str, Function]:
    """Verifies a module of the dialect and returns its functions by symbol.

    Raises:
        UnknownOpError: for an op that the dialect does not have.
        VerificationError: for an op with wrong operands, parameters or results.
    """
    ops: dict[str, ir.Operation] = {}
    for op in module.body.operations:
        if op.operation.name != "func.func":
            raise UnknownOpError(
                f"A jaxpr module holds functions only, but here is {op.operation.name!r}.",
                where=_where(op.operation),
            )
        ops[ir.StringAttr(op.attributes["sym_name"]).value] = op.operation
    reader = _Reader(ops, module)
    try:
        return reader.read_all()
    except VerificationError as error:
        place = place_in_text(module, reader.op) if reader.op is not None else None
        if place is None:
            raise
        where = f"{place}, which comes from {error.where}" if error.where else place
        raise type(error)(error.message, error.way_out, where) from None


def _where(op: ir.Operation) -> str:
    return describe_location(op.location) or f"op {op.name!r}"


class _Reader:
    """Reads functions on demand, so that a callee is read before its caller."""

    def __init__(self, ops: dict[str, ir.Operation], module: ir.Module):
        self.ops = ops
        self.module = module
        self.functions: dict[str, Function] = {}
        self.in_progress: set[str] = set()
        # The op that is being read: the place of an error.
        self.op: ir.Operation | None = None

    def read_all(self) -> dict[str, Function]:
        return {name: self[name] for name in self.ops}

    def __contains__(self, name: str) -> bool:
        return name in self.ops

    def deferring(self, is_deferred: bool) -> _Reader | _DeferringReader:
        """Returns itself, or a reader that allows a function in its own derivative rule."""
        return _DeferringReader(self) if is_deferred else self

    def __getitem__(self, name: str) -> Function:
        if name not in self.functions:
            op = self.ops[name]
            if name in self.in_progress:
                raise VerificationError(f"Function @{name} calls itself.", where=_where(op))
            self.in_progress.add(name)
            caller, self.op = self.op, op
            self.functions[name] = _read_function(name, op, self)
            self.op = caller
            # The bindings free a module while references to its ops exist.
            self.functions[name].owner = self.module
        return self.functions[name]


class _DeferringReader:
    """Reads functions on demand; refers to functions that are being read."""

    def __init__(self, reader: _Reader):
        self.reader = reader

    def __contains__(self, name: str) -> bool:
        return name in self.reader

    def __getitem__(self, name: str) -> Function | DeferredFunction:
        reader = self.reader
        if name in reader.in_progress and name not in reader.functions:
            return DeferredFunction(name, lambda: reader[name])
        return reader[name]


def _read_function(name: str, op: ir.Operation, functions: _Reader) -> Function:
    block = _only_block(name, op)
    weak = _weak_marks(op, "arg_attrs", len(block.arguments))
    inputs = [
        Var(_type_of(argument, op, is_weak), argument)
        for argument, is_weak in zip(block.arguments, weak, strict=True)
    ]
    environment: dict[ir.Value, Var] = dict(zip(block.arguments, inputs, strict=True))
    equations: list[Equation] = []
    outputs: list[Var] = []

    def visit(inner: ir.Operation) -> ir.WalkResult:
        if inner == op:
            return ir.WalkResult.ADVANCE
        functions.op = inner
        if inner.name in _RETURNS:
            outputs.extend(environment[v] for v in inner.operands)
        elif inner.name == "jaxpr.constant":
            environment[inner.results[0]] = _read_constant(inner)
        else:
            equation = _read_equation(inner, environment, functions)
            equations.append(equation)
            environment.update(zip(inner.results, equation.results, strict=True))
        return ir.WalkResult.ADVANCE

    _walk(op, visit)
    for output, is_weak in zip(outputs, _weak_marks(op, "res_attrs", len(outputs)), strict=True):
        # Constants in the text have lost the weakness of their types.
        output.type = output.type.update(weak_type=is_weak)
    return Function(name, op, inputs, (), (), outputs, equations)


def _only_block(name: str, op: ir.Operation) -> ir.Block:
    blocks = list(op.regions[0].blocks)
    if len(blocks) != 1:
        raise VerificationError(
            f"Function @{name} has {len(blocks)} blocks; a jaxpr function has one.",
            "Give it a body." if not blocks else "Control flow is jaxpr.cond, while and scan.",
            where=_where(op),
        )
    ops = blocks[0].operations
    if not len(ops) or ops[len(ops) - 1].operation.name not in _RETURNS:
        raise VerificationError(
            f"Function @{name} does not end in a return.",
            "Write one as its last line: return %0 : tensor<f32>.",
            where=_where(op),
        )
    return blocks[0]


def _walk(op: ir.Operation, visit: Callable[[ir.Operation], None]) -> None:
    """Walks an op in order; an exception of the callback surfaces as itself."""
    failure: list[BaseException] = []

    def guarded(inner: ir.Operation) -> ir.WalkResult:
        try:
            return visit(inner)
        except BaseException as error:
            failure.append(error)
            return ir.WalkResult.INTERRUPT

    op.walk(guarded, ir.WalkOrder.PRE_ORDER)
    if failure:
        raise failure[0]


def _weak_marks(op: ir.Operation, attribute: str, count: int) -> list[bool]:
    if attribute not in op.attributes:
        return [False] * count
    return [_WEAK in entry for entry in ir.ArrayAttr(op.attributes[attribute])]


def _type_of(value: ir.Value, op: ir.Operation, is_weak: bool = False) -> ShapedArray:
    try:
        return type_of_mlir(value.type, is_weak)
    except AxirError as error:
        raise VerificationError(error.message, error.way_out, where=_where(op)) from None


def _read_constant(op: ir.Operation) -> Literal:
    if "value" not in op.attributes:
        raise VerificationError(
            "jaxpr.constant lacks its attribute 'value'.",
            f"Write {{value = dense<...> : {op.results[0].type}}}.",
            where=_where(op),
        )
    expected = _type_of(op.results[0], op)
    weights = resource_array(op.attributes["value"])
    try:
        host = weights
        if host is None:
            host = dense_to_numpy(ir.DenseElementsAttr(op.attributes["value"]))
    except (ValueError, AxirError):
        found = str(op.attributes["value"])[:_SHOWN]
        raise VerificationError(
            f"jaxpr.constant: {found} is no array of numbers.",
            f"Write value = dense<...> : {op.results[0].type}.",
            where=_where(op),
        ) from None
    stored = expected.words
    if (host.shape, host.dtype) != (stored.shape, stored.dtype):
        raise VerificationError(
            f"jaxpr.constant of type {expected} holds {host.dtype}{list(host.shape)}.",
            "Write one type for the value and for the result."
            if stored is expected
            else f"Write the words of the keys, a {stored}.",
            where=_where(op),
        )
    if is_key(expected.dtype):
        host = keys_of(host, expected.dtype)
    return Literal(ConcreteArray(expected, host), value=op.results[0])


# Primitives of the table by the names of their ops: those met so far.
_met: dict[str, Primitive] = {}


def _primitive_of(op: ir.Operation) -> Primitive:
    name = op.name
    primitive = _met.get(name)
    if primitive is None:
        dialect, _, short = name.partition(".")
        if dialect == "jaxpr" and short in OPS:
            primitive = _met[name] = OPS[short]
        elif dialect == "jaxpr":
            primitive = USER_OPS.get(short)
    if primitive is None:
        raise UnknownOpError(
            f"Op {name!r} is not one of the jaxpr dialect.",
            f"Did you mean {_nearest(short)}?"
            if dialect == "jaxpr"
            else "Only modules of the jaxpr dialect can be transformed; the pass raise-stablehlo "
            "makes them of StableHLO.",
            where=_where(op),
        )
    return primitive


def _nearest(name: str) -> str:
    beginning = [op for op in OPS if len(name) > 2 and op.startswith(name)]
    close = [*beginning, *difflib.get_close_matches(name, OPS, n=3, cutoff=0.0)]
    return " or ".join(f"jaxpr.{match}" for match in dict.fromkeys(close[:3]))


def _read_equation(
    op: ir.Operation, environment: dict[ir.Value, Var], functions: _Reader
) -> Equation:
    primitive = _primitive_of(op)
    operands = [environment[v] for v in op.operands]
    try:
        params = read_attributes(primitive, op, functions)
        inferred = primitive.apply_to(tuple(v.type for v in operands), params).results
    except VerificationError as error:
        raise type(error)(error.message, error.way_out, error.where or _where(op)) from None
    except AxirError as error:
        raise VerificationError(
            f"{op.name}: {error.message}", error.way_out, where=_where(op)
        ) from None
    except Exception as error:  # rules may raise any error for invalid parameters
        raise VerificationError(
            f"{op.name}: wrong operands or attributes: {_without_function_name(error)}.",
            "Compare the op with what axir.make_jaxpr writes for such a call.",
            where=_where(op),
        ) from None
    if len(op.regions) or len(op.successors):
        raise VerificationError(
            f"{op.name} has a region or a successor; ops of the dialect have none.",
            "Functions that an op calls are named by its attributes: jaxpr = @body.",
            where=_where(op),
        )
    types = [inferred] if type(inferred) is ShapedArray else inferred
    _check_results(op, types)
    results = [Var(t, v) for v, t in zip(op.results, types, strict=True)]
    return Equation(primitive, operands, results, params, op)


def _without_function_name(error: Exception) -> str:
    text = str(error)
    return text.partition("() ")[2] or f"{type(error).__name__}: {text}"


def _check_results(op: ir.Operation, types: list[ShapedArray]) -> None:
    if [v.type for v in op.results] == [t.mlir for t in types]:
        return
    found = ", ".join(str(_type_of(v, op)) for v in op.results) or "no result"
    expected = ", ".join(str(t.strip_weak_type()) for t in types) or "no result"
    raise VerificationError(
        f"{op.name} gives {expected}, not {found}.",
        "Correct the result type of the op.",
        where=_where(op),
    )

"""From MLIR modules to functions: parsing, and the verifier.

In process the dialect's ops are unregistered, so MLIR checks only their form; what each op demands
of its operands is checked here with the same `infer` rules that tracing uses, and reported with the
location that the op carries.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from iree.compiler import ir

from .array import Array
from .attributes import decode, dense_to_numpy
from .context import context, describe_location
from .deferred import DeferredFunction
from .errors import (
    AxirError,
    ParseError,
    UnknownOpError,
    VerificationError,
)
from .function import Equation, Function, Literal, Var
from .primitive import Primitive
from .types import ShapedArray, type_of_mlir

_WEAK = "jaxpr.weak_type"
_QUOTED = re.compile(rb'"((?:[^"\\\n]|\\.)*)"')
_ESCAPED = re.compile(rb"\\([0-9A-F]{2})")


def parse_module(text: str | bytes, name: str = "<string>") -> ir.Module:
    """Parses MLIR text or bytecode.

    Raises:
        ParseError: with the first diagnostic and its line.
    """
    return _parsed(lambda: ir.Module.parse(text, context=context()), name)


def _parsed(parse: Callable[[], ir.Module], name: str) -> ir.Module:
    try:
        module = parse()
    except ir.MLIRError as error:
        raise ParseError(_first_diagnostic(error, name), where=name) from None
    except (ValueError, UnicodeDecodeError) as error:
        raise ParseError(f"{name} is neither MLIR text nor bytecode: {error}", where=name) from None
    check_names(module)
    return module


def _first_diagnostic(error: ir.MLIRError, name: str) -> str:
    for diagnostic in error.error_diagnostics:
        place = describe_location(diagnostic.location)
        line = f"line {re.split('[ :]', place)[-1]}: " if place else ""
        return f"{name} is not valid MLIR: {line}{diagnostic.message.splitlines()[0]}."
    return f"{name} is not valid MLIR."


def check_names(module: ir.Module) -> None:
    """Refuses a module with names that are not valid UTF-8.

    Raises:
        ParseError: if there is one.
    """
    # The bindings abort the process when a walk meets an op whose name Python cannot represent.
    text = module.operation.get_asm(binary=True, large_elements_limit=1, enable_debug_info=True)
    for quoted in _QUOTED.finditer(text):
        if b"\\" in quoted[1]:
            name = _ESCAPED.sub(lambda match: bytes([int(match[1], 16)]), quoted[1])
            try:
                name.decode()
            except UnicodeDecodeError:
                raise ParseError(
                    f"The module holds a name that is not valid UTF-8: {quoted[1].decode()}.",
                    "It is damaged: export it again.",
                    where="",
                ) from None


def read_file(path: str | Path) -> ir.Module:
    """Reads and parses a file of MLIR text or bytecode."""
    path = Path(path)
    data = path.read_bytes()
    if not data.strip():
        raise ParseError(
            f"{path} is empty.", "Write modules with axir.export or `axir opt -o`.", str(path)
        )
    if data.startswith(b"ML\xefR"):
        return parse_module(data, str(path))
    try:
        data.decode()
    except UnicodeDecodeError:
        raise ParseError(
            f"{path} is neither MLIR text nor bytecode.",
            "Compiled .vmfb files are run with `axir run`, not read as modules.",
            str(path),
        ) from None
    # Not the text read above: parsing the file gives ops locations that name it.
    return _parsed(lambda: ir.Module.parseFile(str(path), context=context()), str(path))


def read_module(module: ir.Module) -> dict[str, Function]:
    """Verifies a module of the dialect and returns its functions by symbol.

    Raises:
        UnknownOpError: for an op which the dialect does not have.
        VerificationError: for an op whose operands, parameters or results are wrong.
    """
    ops: dict[str, ir.Operation] = {}
    for op in module.body.operations:
        if op.operation.name != "func.func":
            raise UnknownOpError(
                f"A jaxpr module holds functions only, but here is {op.operation.name!r}.",
                where=_where(op.operation),
            )
        ops[ir.StringAttr(op.attributes["sym_name"]).value] = op.operation
    return _Reader(ops, module).read_all()


def _where(op: ir.Operation) -> str:
    return describe_location(op.location) or f"op {op.name!r}"


class _Reader:
    """Reads functions on demand, so that a callee is there before its caller."""

    def __init__(self, ops: dict[str, ir.Operation], module: ir.Module):
        self.ops = ops
        self.module = module
        self.functions: dict[str, Function] = {}
        self.in_progress: set[str] = set()

    def read_all(self) -> dict[str, Function]:
        return {name: self[name] for name in self.ops}

    def __contains__(self, name: str) -> bool:
        return name in self.ops

    def deferring(self, is_deferred: bool) -> Any:
        """Returns itself, or the same where a function may stand in its own derivative rule."""
        return _DeferringReader(self) if is_deferred else self

    def __getitem__(self, name: str) -> Function:
        if name not in self.functions:
            op = self.ops[name]
            if name in self.in_progress:
                raise VerificationError(f"Function @{name} calls itself.", where=_where(op))
            self.in_progress.add(name)
            self.functions[name] = _read_function(name, op, self)
            # The bindings let a module die while its ops are referred to.
            self.functions[name].owner = self.module
        return self.functions[name]


class _DeferringReader:
    """Reads functions on demand; one that is being read is referred to."""

    def __init__(self, reader: _Reader):
        self.reader = reader

    def __contains__(self, name: str) -> bool:
        return name in self.reader

    def __getitem__(self, name: str) -> Function | DeferredFunction:
        reader = self.reader
        if name in reader.in_progress and name not in reader.functions:
            return DeferredFunction(name, lambda: reader[name])
        return reader[name]


def _read_function(name: str, op: ir.Operation, functions: Any) -> Function:
    blocks = list(op.regions[0].blocks)
    if len(blocks) != 1:
        raise VerificationError(
            f"Function @{name} has {len(blocks)} blocks; a jaxpr function has one.",
            where=_where(op),
        )
    block = blocks[0]
    weak = _weak_marks(op, "arg_attrs", len(block.arguments))
    inputs = [
        Var(argument, _type_of(argument, op, is_weak))
        for argument, is_weak in zip(block.arguments, weak, strict=True)
    ]
    environment: dict[ir.Value, Var] = dict(zip(block.arguments, inputs, strict=True))
    equations: list[Equation] = []
    outputs: list[Var] = []

    def visit(inner: ir.Operation) -> ir.WalkResult:
        if inner == op:
            return ir.WalkResult.ADVANCE
        if inner.name in ("func.return", "return"):
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


def _walk(op: ir.Operation, visit: Any) -> None:
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
        raise VerificationError(error.message, where=_where(op)) from None


def _read_constant(op: ir.Operation) -> Literal:
    if "value" not in op.attributes:
        raise VerificationError("jaxpr.constant lacks its attribute 'value'.", where=_where(op))
    try:
        host = dense_to_numpy(ir.DenseElementsAttr(op.attributes["value"]))
    except (ValueError, AxirError) as error:
        raise VerificationError(f"jaxpr.constant: {error}", where=_where(op)) from None
    expected = _type_of(op.results[0], op)
    if (host.shape, host.dtype) != (expected.shape, expected.dtype):
        raise VerificationError(
            f"jaxpr.constant of type {expected} holds {host.dtype}{list(host.shape)}.",
            where=_where(op),
        )
    return Literal(op.results[0], Array(expected, host))


def _primitive_of(op: ir.Operation) -> Primitive:
    from .ops.table import OPS, USER_OPS

    dialect, _, name = op.name.partition(".")
    primitive = OPS.get(name) or USER_OPS.get(name) if dialect == "jaxpr" else None
    if primitive is None:
        raise UnknownOpError(
            f"Op {op.name!r} is not one of the jaxpr dialect.",
            f"Did you mean {_nearest(name)}?" if dialect == "jaxpr" else
            "Only modules of the jaxpr dialect can be transformed; StableHLO can be compiled.",
            where=_where(op),
        )
    return primitive


def _nearest(name: str) -> str:
    import difflib

    from .ops.table import OPS

    close = difflib.get_close_matches(name, OPS, n=3, cutoff=0.0)
    return " or ".join(f"jaxpr.{match}" for match in close)


def _read_equation(op: ir.Operation, environment: dict[ir.Value, Var], functions: Any) -> Equation:
    primitive = _primitive_of(op)
    operands = [environment[v] for v in op.operands]
    try:
        params = {
            attribute: decode(
                op.attributes[attribute],
                functions.deferring(attribute in primitive.deferred_params),
                primitive.param_types.get(attribute),
            )
            for attribute in op.attributes
        }
        inferred = primitive.apply_to(tuple(v.type for v in operands), params).results
    except VerificationError:
        raise
    except AxirError as error:
        raise VerificationError(
            f"{op.name}: {error.message}", error.way_out, where=_where(op)
        ) from None
    except TypeError as error:
        raise VerificationError(
            f"{op.name}: wrong operands or attributes: {_without_function_name(error)}.",
            where=_where(op),
        ) from None
    types = [inferred] if type(inferred) is ShapedArray else inferred
    _check_results(op, types)
    results = [Var(v, t) for v, t in zip(op.results, types, strict=True)]
    return Equation(primitive, operands, results, params, op)


def _without_function_name(error: TypeError) -> str:
    return str(error).partition("() ")[2] or str(error)


def _check_results(op: ir.Operation, types: list[ShapedArray]) -> None:
    found = [_type_of(v, op) for v in op.results]
    expected = [t.strip_weak_type() for t in types]
    if found != expected:
        raise VerificationError(
            f"{op.name} gives {', '.join(map(str, expected))}, not {', '.join(map(str, found))}.",
            "Correct the result type of the op.",
            where=_where(op),
        )

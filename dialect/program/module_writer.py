"""From functions to MLIR modules: assembly, including callees, and text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from iree.compiler import ir

from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.context import context
from axir.dialect.core.memo import derived

from .equation import Equation
from .function import Function, deferred_in, functions_in
from .rules import Results, Value
from .tracer import Trace

SMALL_BYTES = 1024
"""Arrays without a name are constants of a program up to so many bytes, and parameters above."""


def write_module(functions: Mapping[str, Function]) -> ir.Module:
    """Assembles a module of functions under given symbols, and of all functions they call."""
    with context():
        module = ir.Module.create(loc=ir.Location.unknown())
        write_into(module, functions)
    return module


def write_into(module: ir.Module, functions: Mapping[str, Function]) -> None:
    """Appends functions under given symbols, and all that they call, to a module."""
    symbols = _assign_symbols(functions)
    body = module.body
    private = [(f, symbol) for f, symbol in symbols.values() if symbol not in functions]
    for function, symbol in [*((f, symbol) for symbol, f in functions.items()), *private]:
        op = function.op.clone(ip=False)
        with context():
            op.attributes["sym_name"] = ir.StringAttr.get(symbol)
            if symbol not in functions:
                op.attributes["sym_visibility"] = ir.StringAttr.get("private")
            elif "sym_visibility" in op.attributes:
                del op.attributes["sym_visibility"]
        body.append(op)
        renamed = {}
        for named, callee in _callees(function):
            new = symbols[callee.symbol_name][1]
            # A traced op names its callee by the unique symbol, and a parsed op by the parsed
            # symbol.
            renamed[ir.StringAttr(callee.op.attributes["sym_name"]).value] = new
            renamed[named] = new
        if renamed:
            rename_callees(op, renamed)


def _callees(function: Function) -> Iterator[tuple[str, Function]]:
    """Yields the functions that ops of a function refer to, with their symbols.

    Deferred functions are traced, and embed their captured values, because no operand passes them.
    """
    for equation in function.equations:
        for _, value in sorted(equation.params.items()):  # the order in which text has them
            for callee in functions_in(value):
                yield callee.symbol_name, callee
            for deferred in deferred_in(value):
                yield deferred.symbol_name, _closed(deferred.function)


@derived
def _closed(function: Function) -> Function:
    return embed_captures(function)


def _assign_symbols(functions: Mapping[str, Function]) -> dict[str, tuple[Function, str]]:
    """Gives each function and callee a symbol in the module: its name, numbered if taken."""
    symbols = {f.symbol_name: (f, symbol) for symbol, f in functions.items()}
    taken = set(functions)
    pending = list(functions.values())
    while pending:
        for _, callee in _callees(pending.pop()):
            if callee.symbol_name in symbols:
                continue
            symbol, number = callee.name, 0
            while symbol in taken:
                number += 1
                symbol = f"{callee.name}_{number}"
            taken.add(symbol)
            symbols[callee.symbol_name] = (callee, symbol)
            pending.append(callee)
    return symbols


def rename_callees(op: ir.Operation, symbols: Mapping[str, str]) -> None:
    """Changes names of functions in an operation and those in it."""

    def rename(inner: ir.Operation) -> ir.WalkResult:
        for attribute in list(inner.attributes):
            renamed = _renamed(inner.attributes[attribute], symbols)
            if renamed is not None:
                inner.attributes[attribute] = renamed
        return ir.WalkResult.ADVANCE

    with context():
        op.walk(rename)


def _renamed(attribute: ir.Attribute, symbols: Mapping[str, str]) -> ir.Attribute | None:
    if isinstance(attribute, ir.FlatSymbolRefAttr) and attribute.value in symbols:
        return ir.FlatSymbolRefAttr.get(symbols[attribute.value])
    if isinstance(attribute, ir.ArrayAttr):
        renamed = [_renamed(item, symbols) for item in attribute]
        if any(item is not None for item in renamed):
            pairs = zip(renamed, attribute, strict=True)
            return ir.ArrayAttr.get([old if new is None else new for new, old in pairs])
    return None


def embed_captures(
    function: Function,
    is_embedded: Callable[[ConcreteArray], bool] = lambda array: True,
    captures_others: bool = False,
) -> Function:
    """Returns a function with its captured arrays as `jaxpr.constant` ops, ready to be saved.

    Args:
        function: The function.
        is_embedded: Which arrays; the others stay captures.
        captures_others: Whether arrays that are constants already become captures if they are not
            to be embedded.
    """
    if not function.captures and not captures_others:
        return function
    with Trace(function.name) as trace:

        def embed(values: Sequence[Value]) -> Sequence[Value]:
            for value in values:
                if type(value) is ConcreteArray and is_embedded(value):
                    trace.embed(value)
            return values

        def record(equation: Equation, operands: Sequence[Value]) -> Results:
            # Recorded even if all operands are known: folding would capture the result.
            return trace.record(equation.primitive, embed(operands), equation.params)

        inputs = [trace.add_input(v.type) for v in function.inputs]
        return trace.finish(embed(function.interpret([*inputs, *function.captured], record)))

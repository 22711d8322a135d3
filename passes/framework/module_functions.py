"""Shared code of passes over jaxpr modules: reading, replacing and marking functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from iree.compiler import ir

from axir.dialect.program.function import Function
from axir.dialect.program.module_writer import embed_captures, rename_callees, write_into
from axir.dialect.text.module_reader import read_module
from axir.dialect.text.signature import is_public

from .errors import MissingFunctionError

LINEAR = "jaxpr.linear"


def replace_functions(
    module: ir.Module,
    transform: Callable[[dict[str, Function]], Mapping[str, Function]],
    linear: Mapping[str, str] | None = None,
) -> None:
    """Replaces the public functions of a module.

    Args:
        module: Changed in place.
        transform: Returns the new public functions by symbol, given the old ones.
        linear: Symbols of functions with inputs (not captures) that get the mark `jaxpr.linear`.
    """
    functions = read_module(module)
    public = {name: f for name, f in functions.items() if is_public(f.op)}
    if "main" not in public:
        raise MissingFunctionError(
            "the module has no public function 'main'.",
            f"It has {', '.join(functions) or 'no function at all'}; rename one to main, or name "
            "it: `axir opt --function`.",
        )
    new = transform(public)
    for function in functions.values():
        # The functions read may still be needed by `new`. The object through which an op is
        # detached owns it from then on, so this must be the function's.
        function.op.detach_from_parent()
    write_into(module, {n: f if n in (linear or ()) else embed_captures(f) for n, f in new.items()})
    for op in module.body.operations:
        symbol = ir.StringAttr(op.attributes["sym_name"]).value
        if linear and symbol in linear:
            _mark_linear(op.operation, len(new[symbol].inputs))


def replace_main(
    module: ir.Module, transform: Callable[[Function], Function], name: str = "main"
) -> None:
    """Replaces one public function of a module; the others stay."""

    def replace(functions: dict[str, Function]) -> dict[str, Function]:
        if name not in functions:
            raise MissingFunctionError(
                f"the module has no public function {name!r}.", f"It has {', '.join(functions)}."
            )
        return {**functions, name: transform(functions[name])}

    replace_functions(module, replace)


def swap_with_main(module: ir.Module, name: str) -> None:
    """Exchanges the names of a function of a module and `main`, if that exists."""
    symbols = {name: "main", "main": name}
    for op in module.body.operations:
        symbol = ir.StringAttr(op.attributes["sym_name"]).value
        if symbol in symbols:
            with module.context:
                op.attributes["sym_name"] = ir.StringAttr.get(symbols[symbol])
        rename_callees(op.operation, symbols)


def _mark_linear(op: ir.Operation, count: int) -> None:
    arguments = len(ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value).inputs)
    mark = ir.DictAttr.get({LINEAR: ir.UnitAttr.get()})
    op.attributes["arg_attrs"] = ir.ArrayAttr.get(
        [mark if index < count else ir.DictAttr.get({}) for index in range(arguments)]
    )


def linear_arguments(module: ir.Module, name: str) -> tuple[int, ...]:
    """Returns the arguments of a function that have the mark `jaxpr.linear`."""
    for op in module.body.operations:
        if ir.StringAttr(op.attributes["sym_name"]).value == name and "arg_attrs" in op.attributes:
            entries = ir.ArrayAttr(op.attributes["arg_attrs"])
            return tuple(index for index, entry in enumerate(entries) if LINEAR in entry)
    return ()


def replace_with_module(
    module: ir.Module, transform: Callable[[dict[str, Function]], ir.Module]
) -> None:
    """Replaces the contents of a module by a new module's, made from its public functions."""
    functions = {n: f for n, f in read_module(module).items() if is_public(f.op)}
    new = transform(functions)
    for op in list(module.body.operations):
        op.operation.detach_from_parent()
    for op in list(new.body.operations):
        module.body.append(op.operation.detach_from_parent())
    for name in new.operation.attributes:
        module.operation.attributes[name] = new.operation.attributes[name]

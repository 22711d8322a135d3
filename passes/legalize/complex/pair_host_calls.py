"""Host functions that take and return pairs of real numbers for complex ones."""

from __future__ import annotations

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.host_functions import host_function
from axir.passes.legalize.rewriting import find_operations, replace

from .complex_parts import has_complex
from .pairs_in_memory import of_pairs, pairs_of


def pair_host_calls(module: ir.Module) -> None:
    """Replaces complex arrays in calls of host functions by real arrays with an axis of two.

    Both are equal in memory.
    """
    functions = {
        ir.StringAttr(x.operation.attributes["sym_name"]).value: x.operation
        for x in module.body.operations
        if x.operation.name == "func.func"
    }
    for call in find_operations(module.operation, ("func.call",)):
        if host_function(call) is None or not has_complex(call):
            continue
        with ir.InsertionPoint(call), call.location:
            made = ir.Operation.create(
                call.name,
                results=[_paired(x.type) for x in call.results],
                operands=[pairs_of(x) if hlo.is_complex(x) else x for x in call.operands],
                attributes={name: call.attributes[name] for name in call.attributes},
            )
            results = [
                of_pairs(new) if hlo.is_complex(old) else new
                for old, new in zip(call.results, made.results, strict=True)
            ]
        symbol = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
        kind = ir.FunctionType.get([x.type for x in made.operands], [x.type for x in made.results])
        functions[symbol].attributes["function_type"] = ir.TypeAttr.get(kind)
        replace(call, results)


def _paired(kind: ir.Type) -> ir.Type:
    if not isinstance(kind.element_type, ir.ComplexType):
        return kind
    return hlo.tensor_type((*kind.shape, 2), kind.element_type.element_type)

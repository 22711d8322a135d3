"""Gives programs arguments for the memory of their results, for callers that call kernels directly.

Elsewhere: programs of the runtime, which allocate their results.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from iree.compiler import ir

from axir.dialect.core.context import context
from axir.dialect.text.signature import is_public
from axir.passes.transforms.lower_to_stablehlo import DONATED


def mark_donated(module: ir.Module, donated: Mapping[str, Set[int]]) -> None:
    """Marks the arguments, by function, that the program may overwrite."""
    with context():
        for function in _functions(module, donated):
            attributes = _argument_attributes(function)
            for number in donated[_name(function)]:
                attributes[number] = ir.DictAttr.get({DONATED: ir.UnitAttr.get()})
            function.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)


def take_result_storage(module: ir.Module, without: Mapping[str, Set[int]]) -> None:
    """Gives each public function an argument for each result; the result is written to its memory.

    Args:
        module: StableHLO, prepared for the compiler.
        without: Numbers of results, by function, that get no such argument.
    """
    with context():
        for function in _functions(module, without):
            old = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
            attributes = _argument_attributes(function)
            block = function.regions[0].blocks[0]
            types = list(old.inputs)
            for number, result_type in enumerate(old.results):
                if number in without[_name(function)]:
                    continue
                block.add_argument(result_type, function.location)
                index = ir.IntegerAttr.get(ir.IndexType.get(), number)
                attributes.append(ir.DictAttr.get({"iree.abi.output": index}))
                types.append(result_type)
            function.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)
            new = ir.FunctionType.get(types, old.results)
            function.attributes["function_type"] = ir.TypeAttr.get(new)


def _functions(module: ir.Module, wanted: Mapping[str, Set[int]]) -> list[ir.Operation]:
    operations = [op.operation for op in module.body.operations]
    functions = [op for op in operations if op.name == "func.func" and is_public(op)]
    return [op for op in functions if _name(op) in wanted]


def _name(function: ir.Operation) -> str:
    return ir.StringAttr(function.attributes["sym_name"]).value


def _argument_attributes(function: ir.Operation) -> list[ir.Attribute]:
    if "arg_attrs" in function.attributes:
        return list(ir.ArrayAttr(function.attributes["arg_attrs"]))
    return [ir.DictAttr.get({}) for _ in function.regions[0].blocks[0].arguments]

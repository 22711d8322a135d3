"""Modules of functions that are saved, checked for objects without a textual form."""

from __future__ import annotations

from collections.abc import Mapping

from axir.dialect.core.annotations import UserObject
from axir.dialect.core.attributes import is_opaque
from axir.dialect.core.context import describe_location
from axir.dialect.core.errors import SerializationError, UnexpectedTracerError
from axir.dialect.ops import OPS
from axir.dialect.program.function import Function
from axir.dialect.program.module_writer import write_module
from axir.dialect.text.module_reader import read_module
from axir.dialect.text.resources import write_out


def module_of(functions: Mapping[str, Function]) -> UserObject:
    """Returns a verified module of the jaxpr dialect; captures are arguments of its functions.

    Raises:
        SerializationError: if something has no textual form; see `Exported.module`.
    """
    seen: set[Function] = set()
    for function in functions.values():
        _check_primitives(function, seen)
    try:
        module = write_module(functions)
    except UnexpectedTracerError as error:
        name = next(iter(functions.values())).name
        raise SerializationError(
            f"A custom rule in {name!r} closes over a value that is computed there, "
            f"so no function of the module can hold it: {error.message}",
            "Pass that value as an argument to the function that has the rule, and let the "
            "rule return a derivative for it, of zeros perhaps.",
            where=error.where,
        ) from error
    write_out(module.operation)
    read_module(module)  # raises for parameters without a textual form
    return module


def _check_primitives(function: Function, seen: set[Function]) -> None:
    seen.add(function)
    for equation in function.equations:
        primitive = equation.primitive
        if OPS.get(primitive.name) is not primitive:
            raise SerializationError(
                f"The primitive {primitive.name!r} is defined in Python, not in the jaxpr dialect.",
                "Give it an mlir.register_lowering rule and export .stablehlo(), or write the "
                "function with axir.lax.",
                where=_place(equation),
            )
        opaque = [name for name, value in equation.params.items() if is_opaque(value)]
        if opaque:
            raise SerializationError(
                f"jaxpr.{primitive.name}: the parameter {opaque[0]!r} is a Python object, which "
                "has no textual form.",
                "A saved module calls no Python: leave callbacks and debug.print out of what is "
                "exported, and take policies of checkpoint from axir.checkpoint_policies.",
                where=_place(equation),
            )
    for callee in function.callees():
        if callee not in seen:
            _check_primitives(callee, seen)


def _place(equation: UserObject) -> str | None:
    return describe_location(equation.location)

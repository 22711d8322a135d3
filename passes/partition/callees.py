"""The inside of an op for partitioning: a function that it calls, or its dimensions."""

from __future__ import annotations

from axir.dialect.program.dimensions import Dimensions
from axir.dialect.program.equation import Equation
from axir.dialect.program.function import Function
from axir.dialect.program.primitive import primitive_of


def callee_of(equation: Equation) -> Function | None:
    """Returns the function that an op calls with its operands; None if it is no plain call."""
    primitive, params = primitive_of(equation), equation.params
    if primitive.partition is not None:
        return None
    if primitive.is_call:
        return params["jaxpr"]
    if primitive.body is None:
        return None
    body = primitive.body(**params)
    return params.get("jaxpr") if body is None else body


def stays(equation: Equation) -> bool:
    """Tells whether an op is more than the call of a function, and so stays around the callee.

    Checkpoints in a backward pass stay, because the compiler must not see across them.
    """
    primitive = equation.primitive
    return primitive.body is not None and primitive.body(**equation.params) is None


def dimensions_of(equation: Equation) -> Dimensions | Function | None:
    """Returns how the dimensions of an op are related; None if it needs whole arrays."""
    rule = primitive_of(equation).dimensions
    if rule is None:
        return None
    operands = [v.type for v in equation.operands]
    return rule(operands, [v.type for v in equation.results], **equation.params)

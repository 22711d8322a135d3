"""Functions of parts without varying axes in their types, to be run.

Differentiation must know which values vary along axes of the mesh. Execution need not: `pvary` and
`pinvary` are then identities, and `psum_invariant` is an ordinary sum.
"""

from __future__ import annotations

from axir.dialect.core.annotations import Params
from axir.dialect.core.memo import derived
from axir.dialect.core.types import NOWHERE
from axir.dialect.ops.collectives.axis_reductions import (
    pinvary_primitive,
    psum_invariant_primitive,
    psum_primitive,
    pvary_primitive,
)
from axir.dialect.program.equation import Equation
from axir.dialect.program.function import Function
from axir.dialect.program.module_writer import embed_captures
from axir.dialect.program.primitive import primitive_of
from axir.dialect.program.rules import Results, Value
from axir.dialect.program.tracer import Trace
from axir.dialect.program.walk import Environment, apply_equations


def body_to_run(*, jaxpr: Function, check_vma: bool, **params: object) -> Function:
    """Returns the function that each device runs for a `shard_map` with these parameters."""
    return unmarked(jaxpr) if check_vma else jaxpr


@derived
def unmarked(function: Function) -> Function:
    """Returns the function without varying axes in its types.

    The captures of the function become inputs.
    """
    variables = (*function.inputs, *function.captures)
    with Trace(function.name, "Unmarked") as trace:

        def record(equation: Equation, operands: list[Value]) -> Results:
            if equation.primitive in (pvary_primitive, pinvary_primitive):
                return operands[0]
            primitive, params = primitive_of(equation), equation.params
            if primitive is psum_invariant_primitive:
                primitive = psum_primitive
            elif primitive.body is not None and primitive.partition is None:
                # The custom derivatives of the op are not needed any more.
                body = primitive.body(**params)
                if body is not None:
                    return unmarked(body).interpret(operands)
            return trace.record(primitive, operands, _unmarked_params(params))

        inputs = [trace.add_input(v.type.update(varying=NOWHERE)) for v in variables]
        environment = Environment(zip(variables, inputs, strict=True))
        apply_equations(function.equations, environment, record)
        plain = trace.finish(environment.values_of(function.outputs))
    return embed_captures(plain)  # constants: the function takes only operands


def _unmarked_params(params: Params) -> Params:
    return {name: _unmarked_param(value) for name, value in params.items()}


def _unmarked_param(value: object) -> object:
    if type(value) is Function:
        return unmarked(value)
    if type(value) is tuple:
        return tuple(map(_unmarked_param, value))
    return value

"""Control flow without what nobody needs: results, carried values, operands, ops of bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...array import ConcreteArray
from ...context import state
from ...effects import is_effectful
from ...function import Equation, Function, Var, read, write
from ...tracer import Trace
from .bodies import chosen, derived_body, union
from .conditional import cond_primitive
from .scan import scan_primitive, split
from .while_loop import while_primitive

Simplify = Callable[[Function], Function]
Marks = tuple[bool, ...]


def _needed(function: Function, outputs: Sequence[bool]) -> tuple[list[Equation], list[bool]]:
    """Returns the ops on which chosen outputs depend, and marks of the inputs among those."""
    variables = set(chosen(function.outputs, outputs))
    equations = []
    for equation in reversed(function.equations):
        if any(v in variables for v in equation.results) or is_effectful(equation):
            variables.update(equation.operands)
            equations.append(equation)
    return equations[::-1], [v in variables for v in function.inputs]


def _restricted(function: Function, inputs: Sequence[bool], outputs: Sequence[bool]) -> Function:
    """Returns the function of chosen inputs that gives chosen outputs."""
    if all(inputs) and all(outputs):
        return function
    key = ("restricted", tuple(inputs), tuple(outputs))
    return derived_body(function, key, lambda: _restrict(function, inputs, outputs))


def _restrict(function: Function, inputs: Sequence[bool], outputs: Sequence[bool]) -> Function:
    previous = state.origin
    with Trace(function.name, "Simplify") as trace:
        environment: dict[Var, Any] = {
            v: trace.add_input(v.type) for v in chosen(function.inputs, inputs)
        }

        def value_of(variable: Var) -> Any:
            value = read(environment, variable)
            if type(value) is ConcreteArray and value.shape:
                trace.embed(value)  # it was a constant in the text
            return value

        try:
            for equation in _needed(function, outputs)[0]:
                state.origin = equation
                operands = [value_of(v) for v in equation.operands]
                # Recorded even if all operands are known: folding would capture the result.
                results = trace.record(equation.primitive, operands, equation.params)
                write(environment, equation, results)
        finally:
            state.origin = previous
        return trace.finish([value_of(v) for v in chosen(function.outputs, outputs)])


def _replaced(
    equation: Equation,
    operands: Sequence[bool],
    results: Sequence[bool],
    params: dict[str, Any],
) -> Equation:
    return Equation(
        equation.primitive,
        chosen(equation.operands, operands),
        chosen(equation.results, results),
        params,
        equation.op,
    )


def _reduce_cond(equation: Equation, is_used: Sequence[bool], simplify: Simplify) -> Equation:
    branches = tuple(map(simplify, equation.params["branches"]))
    inputs = (False,) * (len(equation.operands) - 1)
    for branch in branches:
        inputs = union(inputs, _needed(branch, is_used)[1])
    reduced = tuple(_restricted(branch, inputs, is_used) for branch in branches)
    return _replaced(equation, (True, *inputs), is_used, {"branches": reduced})


def _reduce_while(equation: Equation, is_used: Sequence[bool], simplify: Simplify) -> Equation:
    params = equation.params
    cond_jaxpr, body_jaxpr = simplify(params["cond_jaxpr"]), simplify(params["body_jaxpr"])
    cond_count, body_count = params["cond_nconsts"], params["body_nconsts"]
    cond_inputs = _needed(cond_jaxpr, [True])[1]
    carry = union(is_used, cond_inputs[cond_count:])
    while True:
        body_inputs = _needed(body_jaxpr, carry)[1]
        grown = union(carry, body_inputs[body_count:])
        if grown == carry:
            break
        carry = grown
    cond_consts, body_consts = cond_inputs[:cond_count], body_inputs[:body_count]
    reduced = {
        "body_jaxpr": _restricted(body_jaxpr, (*body_consts, *carry), carry),
        "body_nconsts": sum(body_consts),
        "cond_jaxpr": _restricted(cond_jaxpr, (*cond_consts, *carry), (True,)),
        "cond_nconsts": sum(cond_consts),
    }
    return _replaced(equation, (*cond_consts, *body_consts, *carry), carry, reduced)


def _reduce_scan(equation: Equation, is_used: Sequence[bool], simplify: Simplify) -> Equation:
    params = equation.params
    jaxpr = simplify(params["jaxpr"])
    num_consts, num_carry = params["num_consts"], params["num_carry"]
    carry, ys = tuple(is_used[:num_carry]), tuple(is_used[num_carry:])
    while True:
        inputs = _needed(jaxpr, (*carry, *ys))[1]
        consts, carried, xs = split(inputs, num_consts, num_carry)
        grown = union(carry, carried)
        if grown == carry:
            break
        carry = grown
    operands = (*consts, *carry, *xs)
    reduced = {
        **params,
        "jaxpr": _restricted(jaxpr, operands, (*carry, *ys)),
        "num_consts": sum(consts),
        "num_carry": sum(carry),
        "linear": tuple(chosen(params["linear"], operands)),
    }
    return _replaced(equation, operands, (*carry, *ys), reduced)


cond_primitive.reduced = _reduce_cond
while_primitive.reduced = _reduce_while
scan_primitive.reduced = _reduce_scan

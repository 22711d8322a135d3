"""Removal of unused parts of control flow: results, carried values, operands, ops of bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from axir.dialect.core.annotations import Params
from axir.dialect.core.memo import derived
from axir.dialect.core.symbolic_zeros import Marks, chosen, union
from axir.dialect.program.effects import is_effectful
from axir.dialect.program.equation import Equation
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import restricted
from axir.dialect.program.walk import Slice, backward_slice

from .closed_bodies import fixpoint, split
from .conditional import cond_primitive
from .scan import scan_primitive
from .while_loop import while_primitive

Simplify = Callable[[Function], Function]


def _needed(function: Function, outputs: Sequence[bool]) -> Slice:
    """Returns the ops on which chosen outputs depend, and those with effects."""
    wanted = chosen(function.outputs, outputs)
    return backward_slice(function.equations, wanted, is_kept=is_effectful)


def _needed_inputs(function: Function, outputs: Sequence[bool]) -> Marks:
    """Tells which inputs are needed for chosen outputs and for effects."""
    return _needed(function, outputs).marks(function.inputs)


def _restricted(function: Function, inputs: Sequence[bool], outputs: Sequence[bool]) -> Function:
    """Returns the function from chosen inputs to chosen outputs."""
    if all(inputs) and all(outputs):
        return function
    return _restrict(function, tuple(inputs), tuple(outputs))


@derived
def _restrict(function: Function, inputs: Marks, outputs: Marks) -> Function:
    equations = _needed(function, outputs).equations
    wanted = chosen(function.outputs, outputs)
    return restricted(function, equations, chosen(function.inputs, inputs), wanted, "Simplify")


def _replaced(
    equation: Equation,
    operands: Sequence[bool],
    results: Sequence[bool],
    params: Params,
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
        inputs = union(inputs, _needed_inputs(branch, is_used))
    reduced = tuple(_restricted(branch, inputs, is_used) for branch in branches)
    return _replaced(equation, (True, *inputs), is_used, {"branches": reduced})


def _reduce_while(equation: Equation, is_used: Sequence[bool], simplify: Simplify) -> Equation:
    params = equation.params
    cond_jaxpr, body_jaxpr = simplify(params["cond_jaxpr"]), simplify(params["body_jaxpr"])
    cond_count, body_count = params["cond_nconsts"], params["body_nconsts"]
    cond_inputs = _needed_inputs(cond_jaxpr, [True])
    carry = fixpoint(
        union(is_used, cond_inputs[cond_count:]),
        lambda carry: _needed_inputs(body_jaxpr, carry)[body_count:],
    )
    body_consts = _needed_inputs(body_jaxpr, carry)[:body_count]
    cond_consts = cond_inputs[:cond_count]
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

    def parts(carry: Marks) -> list[list[bool]]:
        return split(_needed_inputs(jaxpr, (*carry, *ys)), num_consts, num_carry)

    carry = fixpoint(carry, lambda carry: parts(carry)[1])
    consts, _, xs = parts(carry)
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

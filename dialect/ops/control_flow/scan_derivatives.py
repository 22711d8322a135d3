"""Derivatives of `scan`: tangents, and the split into a known and a linear loop.

The known loop stores the values of each pass that the linear loop needs (the residuals). Values
that are equal in each pass are computed once, and slices of `xs` are not stored again. The
transpose of the linear loop stands in `scan_transpose.py`.
"""

from __future__ import annotations

import typing
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from axir.dialect.core.annotations import Param
from axir.dialect.core.memo import derived
from axir.dialect.core.symbolic_zeros import Marks, chosen, moving, spread
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.derived_functions import derive
from axir.dialect.program.effects import is_effectful
from axir.dialect.program.equation import Equation, Literal, Var
from axir.dialect.program.function import Function
from axir.dialect.program.rules import OperandTangents, Tangent, Value
from axir.dialect.program.walk import Environment, apply_equations, backward_slice

from .closed_bodies import Body, call_function, fixpoint, instantiated, split, trace_body
from .scan import Scan, bind_scan, scan_primitive


class Invariants:
    """The ops of a function, split by whether they depend on values that change from pass to pass.

    Ops that depend on literals only are cheap (a broadcast zero) and stay where they are used;
    those with effects stay in the loop.

    Attributes:
        inside: The ops that stay in the loop.
        hoisted: The other ops, as far as the ops inside or the outputs use them.
    """

    def __init__(self, function: Function, unchanging: Collection[Var]):
        self._fixed = {*unchanging, *function.captures}
        self._free: set[Var] = set()
        # Ops that can be computed before the loop, in order.
        self._candidates: list[Equation] = []
        self.inside: list[Equation] = []
        made: list[Var] = []
        for equation in function.equations:
            if is_effectful(equation) or not all(map(self.is_fixed, equation.operands)):
                self.inside.append(equation)
                continue
            self._candidates.append(equation)
            if all(type(v) is Literal or v in self._free for v in equation.operands):
                self._free.update(equation.results)
                self.inside.append(equation)
            else:
                self._fixed.update(equation.results)
                made += equation.results
        used = {v for equation in self.inside for v in equation.operands}
        used.update(function.outputs)
        self.hoisted = [v for v in made if v in used]

    def is_fixed(self, variable: Var) -> bool:
        """Tells whether a variable has the same value in each pass."""
        return type(variable) is Literal or variable in self._fixed or variable in self._free

    def compute(self, values: Environment, wanted: Sequence[Var]) -> list[Value]:
        """Computes unchanging variables before the loop.

        Args:
            values: Values of the unchanging arguments and captures; computed values are added.
            wanted: The variables with values to return.
        """
        apply_equations(backward_slice(self._candidates, wanted, given=values).equations, values)
        return values.values_of(wanted)


def _active_carry(
    jaxpr: Function,
    name: typing.Literal["jvp", "linearize"],
    consts: Marks,
    carry: Marks,
    xs: Marks,
) -> Marks:
    """Tells which carried values get tangents."""
    return fixpoint(
        carry,
        lambda active: derive(jaxpr, name, (*consts, *active, *xs)).active_outputs[: len(active)],
    )


# Forward mode ----------------------------------------------------------------------------------


@derived
def _tangent_body(jaxpr: Function, consts: Marks, carry: Marks, xs: Marks) -> tuple[Body, Marks]:
    """Returns the body on values and tangents, and marks of the ys with tangents."""
    tangent = derive(jaxpr, "jvp", (*consts, *carry, *xs))
    marks = (consts, carry, xs)
    counts = [count for marked in marks for count in (len(marked), sum(marked))]
    count, num_carry = len(jaxpr.outputs), len(carry)

    def advance(*arguments: Value) -> list[Value]:
        parts = split(arguments, *counts[:-1])
        primals, tangents = ([x for part in parts[i::2] for x in part] for i in range(2))
        results = call_function(tangent.function, [*primals, *tangents])
        moved = spread(results[count:], tangent.active_outputs, jaxpr.output_types)
        return [
            *results[:num_carry],
            *instantiated(moved[:num_carry], carry),
            *results[num_carry:count],
            *chosen(moved[num_carry:], tangent.active_outputs[num_carry:]),
        ]

    types = split(jaxpr.input_types, len(consts), num_carry)
    pairs = zip(types, marks, strict=True)
    inputs = [t for part, marked in pairs for t in (*part, *chosen(part, marked))]
    body = trace_body(advance, inputs, f"{jaxpr.name}_jvp", "Jvp")
    return body, tangent.active_outputs[num_carry:]


def _value_and_jvp(
    primals: Sequence[Value], tangents: OperandTangents, **params: Param
) -> tuple[Sequence[Value], Sequence[Tangent]]:
    loop, change = Scan(primals, **params), Scan(tangents, **params)
    is_const, is_x = moving(change.consts), moving(change.xs)
    carry = _active_carry(loop.body, "jvp", is_const, moving(change.carry), is_x)
    body, is_y = _tangent_body(loop.body, is_const, carry, is_x)
    carried, ys = bind_scan(
        body,
        [*loop.consts, *chosen(change.consts, is_const)],
        [*loop.carry, *instantiated(change.carry, carry)],
        [*loop.xs, *chosen(change.xs, is_x)],
        **loop.options,
    )
    num_carry, num_ys = len(carry), len(is_y)
    moved = [*carried[num_carry:], *ys[num_ys:]]
    outs = [*carried[:num_carry], *ys[:num_ys]]
    return outs, spread(moved, (*carry, *is_y), loop.result_types)


# Linearization ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Split:
    """A body split into a known and a linear one.

    Attributes:
        jaxpr: The body.
        known: Takes the constants, the hoisted values, the carry and the slices; returns the
            carry, the ys, and the residuals that change from pass to pass.
        function: The derived function; the other attributes refer to its variables.
        invariants: Its ops that are computed before the loop.
        linear: Takes tangents of constants, constant residuals, tangents of the carry and of the
            slices, and slices of the other residuals; returns tangents of the carry and the ys.
        fixed: The residuals that are the same in each pass: variables, or arrays.
        changing: For each of the others, its index among the outputs of `known`, or minus one
            minus the index of the scanned array that it is a slice of.
        active_ys: Which ys have tangents.
    """

    jaxpr: Function
    known: Body
    function: Function
    invariants: Invariants
    linear: Body
    fixed: list[Value]
    changing: list[int]
    active_ys: Marks


@derived
def _split_body(
    jaxpr: Function, num_consts: int, num_carry: int, active: Marks, carry: Marks
) -> _Split:
    split_function = derive(jaxpr, "linearize", active)
    function = split_function.known
    consts, carried, slices = split(function.inputs, num_consts, num_carry)
    unchanging = [
        before for before, after in zip(carried, function.outputs, strict=False) if before is after
    ]
    invariants = Invariants(function, [*consts, *unchanging])
    fixed: list[Value] = []
    changing: list[int] = []
    stored: list[Var] = list(function.outputs[: len(jaxpr.outputs)])
    places = []
    slice_at = {v: index for index, v in enumerate(slices)}
    extra = iter(function.outputs[len(jaxpr.outputs) :])
    for source in split_function.residuals:
        residual: Any = source
        if source is None or type(source) is int:
            residual = next(extra) if source is None else function.inputs[source]
        is_fixed = not isinstance(residual, Var) or invariants.is_fixed(residual)
        places.append((is_fixed, len(fixed) if is_fixed else len(changing)))
        if is_fixed:
            fixed.append(residual)
        elif residual in slice_at:
            changing.append(-1 - slice_at[residual])
        else:
            changing.append(_stored_at(stored, residual, num_carry))
    known = _known_body(function, invariants, num_consts, num_carry, stored)
    marks = (active[:num_consts], carry, active[num_consts + num_carry :])
    linear = _linear_body(
        jaxpr,
        split_function,
        marks,
        places,
        fixed,
        [slices[-1 - i].type if i < 0 else stored[i].type for i in changing],
    )
    return _Split(
        jaxpr,
        known,
        function,
        invariants,
        linear,
        fixed,
        changing,
        split_function.active_outputs[num_carry:],
    )


def _stored_at(stored: list[Var], residual: Var, num_carry: int) -> int:
    """Returns the output of the known body that holds a residual; adds an output if needed."""
    for place in range(num_carry, len(stored)):
        if stored[place] is residual:
            return place
    stored.append(residual)
    return len(stored) - 1


def _known_body(
    function: Function,
    invariants: Invariants,
    num_consts: int,
    num_carry: int,
    outputs: Sequence[Var],
) -> Body:
    consts, carried, slices = split(function.inputs, num_consts, num_carry)
    arguments = [*consts, *invariants.hoisted, *carried, *slices]

    def advance(*values: Value) -> list[Value]:
        environment = Environment(zip(arguments, values, strict=True))
        environment.update(zip(function.captures, function.captured, strict=True))
        apply_equations(invariants.inside, environment)
        return environment.values_of(outputs)

    return trace_body(advance, [v.type for v in arguments], function.name, "Linearize")


def _linear_body(
    jaxpr: Function,
    split_function: Any,
    marks: tuple[Marks, Marks, Marks],
    places: Sequence[tuple[bool, int]],
    fixed: Sequence[Value],
    changing: Sequence[ShapedArray],
) -> Body:
    consts, carry, xs = marks
    const_types, carry_types, x_types = split(jaxpr.input_types, len(consts), len(carry))

    def advance(*arguments: Value) -> list[Value]:
        dc, stored, dh, dx, slices = split(arguments, sum(consts), len(fixed), sum(carry), sum(xs))
        residuals = [stored[at] if is_fixed else slices[at] for is_fixed, at in places]
        results = split_function.linear.interpret([*dc, *dh, *dx, *residuals])
        tangents = spread(results, split_function.active_outputs, jaxpr.output_types)
        return [
            *instantiated(tangents[: len(carry)], carry),
            *chosen(tangents[len(carry) :], split_function.active_outputs[len(carry) :]),
        ]

    inputs = [
        *chosen(const_types, consts),
        *(x.type for x in fixed),
        *chosen(carry_types, carry),
        *chosen(x_types, xs),
        *changing,
    ]
    return trace_body(advance, inputs, split_function.linear.name, "Linearize")


def _linearize(
    primals: Sequence[Value], tangents: OperandTangents, **params: Param
) -> tuple[Sequence[Value], Sequence[Tangent]]:
    loop, change = Scan(primals, **params), Scan(tangents, **params)
    num_consts, num_carry = len(loop.consts), len(loop.carry)
    is_const, is_x = moving(change.consts), moving(change.xs)
    carry = _active_carry(loop.body, "linearize", is_const, moving(change.carry), is_x)
    active = (*is_const, *carry, *is_x)
    parts = _split_body(loop.body, num_consts, num_carry, active, carry)
    values = Environment(zip(parts.function.inputs, [*loop.consts, *loop.carry], strict=False))
    values.update(zip(parts.function.captures, parts.function.captured, strict=True))
    hoisted = parts.invariants.compute(values, parts.invariants.hoisted)
    consts = [*loop.consts, *hoisted]
    carried, ys = bind_scan(parts.known, consts, loop.carry, loop.xs, **loop.options)
    outs = [*carried, *ys[: len(parts.active_ys)]]
    is_moving = (*carry, *parts.active_ys)
    if not any(is_moving):
        return outs, spread([], is_moving, loop.result_types)
    fixed = [
        parts.invariants.compute(values, [v])[0] if isinstance(v, Var) else v for v in parts.fixed
    ]
    changing = [loop.xs[-1 - i] if i < 0 else ys[i - num_carry] for i in parts.changing]
    moved, y_tangents = bind_scan(
        parts.linear,
        [*chosen(change.consts, is_const), *fixed],
        instantiated(change.carry, carry),
        [*chosen(change.xs, is_x), *changing],
        is_linear=True,
        **loop.options,
    )
    return outs, spread([*moved, *y_tangents], is_moving, loop.result_types)


scan_primitive.value_and_jvp = _value_and_jvp
scan_primitive.linearize = _linearize

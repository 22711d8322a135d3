"""Derivatives of `scan`: tangents, and the split into a known and a linear loop.

The known loop stores, for the linear one, what that needs of each pass (the residuals). What is
the same in each pass is computed once, and slices of `xs` are not stored again. The transpose of
the linear loop stands in `scan_transpose.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...derived import derive
from ...function import Function, Var, read
from ...types import ShapedArray
from .bodies import (
    Body,
    activity,
    call_function,
    chosen,
    derived_body,
    instantiated,
    spread,
    trace_body,
    union,
)
from .hoisting import Invariants, apply
from .scan import bind_scan, loop_options, scan_primitive, split, stacked

Marks = tuple[bool, ...]


def _active_carry(
    jaxpr: Function, name: str, consts: Marks, carry: Marks, xs: Marks
) -> Marks:
    """Tells which carried values get tangents, as long as a pass adds some."""
    while True:
        active = derive(jaxpr, name, (*consts, *carry, *xs)).active_outputs
        grown = union(carry, active[: len(carry)])
        if grown == carry:
            return carry
        carry = grown


# Forward mode ----------------------------------------------------------------------------------


def _tangent_body(jaxpr: Function, consts: Marks, carry: Marks, xs: Marks) -> tuple[Body, Marks]:
    """Returns the body on values and tangents side by side, and which ys have tangents."""
    active = (*consts, *carry, *xs)
    derived = derive(jaxpr, "jvp", active)
    num_carry = len(carry)
    types = [v.type for v in jaxpr.inputs]
    parts = split(types, len(consts), num_carry)
    marks = (consts, carry, xs)

    def advance(*arguments: Any) -> list[Any]:
        remaining = list(arguments)
        primals: list[Any] = []
        tangents: list[Any] = []
        for marked in marks:
            primals += remaining[: len(marked)]
            tangents += remaining[len(marked) : len(marked) + sum(marked)]
            del remaining[: len(marked) + sum(marked)]
        results = call_function(derived.function, [*primals, *tangents])
        outs = results[: len(jaxpr.outputs)]
        moved = spread(results[len(outs) :], derived.active_outputs, jaxpr.output_types)
        return [
            *outs[:num_carry],
            *instantiated(moved[:num_carry], carry),
            *outs[num_carry:],
            *chosen(moved[num_carry:], derived.active_outputs[num_carry:]),
        ]

    inputs = [
        t
        for part, marked in zip(parts, marks, strict=True)
        for t in (*part, *chosen(part, marked))
    ]
    body = trace_body(advance, inputs, f"{jaxpr.name}_jvp", "Jvp")
    return body, derived.active_outputs[num_carry:]


def _value_and_jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    jaxpr: Function,
    num_consts: int,
    num_carry: int,
    **params: Any,
) -> tuple[list[Any], list[Any]]:
    consts, init, xs = split(primals, num_consts, num_carry)
    const_tangents, init_tangents, x_tangents = split(tangents, num_consts, num_carry)
    is_const, is_x = activity(const_tangents), activity(x_tangents)
    carry = _active_carry(jaxpr, "jvp", is_const, activity(init_tangents), is_x)
    body, is_y = derived_body(
        jaxpr,
        ("scan jvp", is_const, carry, is_x),
        lambda: _tangent_body(jaxpr, is_const, carry, is_x),
    )
    carried, ys = bind_scan(
        body,
        [*consts, *chosen(const_tangents, is_const)],
        [*init, *instantiated(init_tangents, carry)],
        [*xs, *chosen(x_tangents, is_x)],
        **loop_options(params),
    )
    types = jaxpr.output_types
    count = len(is_y)
    y_types = stacked(types[num_carry:], params["length"])
    return (
        [*carried[:num_carry], *ys[:count]],
        [
            *spread(carried[num_carry:], carry, types[:num_carry]),
            *spread(ys[count:], is_y, y_types),
        ],
    )


# Linearization ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Split:
    """A body split into a known and a linear one.

    Attributes:
        jaxpr: The body.
        known: Takes the constants, the hoisted values, the carry and the slices; returns the
            carry, the ys, and the residuals that change from pass to pass.
        function: The derived function, whose variables the other attributes name.
        invariants: What of it is computed before the loop.
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
    fixed: list[Any]
    changing: list[int]
    active_ys: Marks


def _split_body(
    jaxpr: Function, num_consts: int, num_carry: int, active: Marks, carry: Marks
) -> _Split:
    derived = derive(jaxpr, "linearize", active)
    function = derived.known
    consts, carried, slices = split(function.inputs, num_consts, num_carry)
    unchanging = [
        before
        for before, after in zip(carried, function.outputs, strict=False)
        if before is after
    ]
    invariants = Invariants(function, [*consts, *unchanging])
    fixed: list[Any] = []
    changing: list[int] = []
    stored: list[Var] = list(function.outputs[: len(jaxpr.outputs)])
    places = []
    slice_at = {v: index for index, v in enumerate(slices)}
    extra = iter(function.outputs[len(jaxpr.outputs) :])
    for source in derived.residuals:
        residual = source
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
    linear = _linear_body(jaxpr, derived, marks, places, fixed, [
        slices[-1 - i].type if i < 0 else stored[i].type for i in changing
    ])
    return _Split(
        jaxpr, known, function, invariants, linear, fixed, changing,
        derived.active_outputs[num_carry:],
    )


def _stored_at(stored: list[Var], residual: Var, num_carry: int) -> int:
    """Returns which output of the known body holds a residual, adding one if none does."""
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

    def advance(*values: Any) -> list[Any]:
        environment = dict(zip(arguments, values, strict=True))
        environment.update(zip(function.captures, function.captured, strict=True))
        apply(invariants.inside, environment)
        return [read(environment, v) for v in outputs]

    return trace_body(advance, [v.type for v in arguments], function.name, "Linearize")


def _linear_body(
    jaxpr: Function,
    derived: Any,
    marks: tuple[Marks, Marks, Marks],
    places: Sequence[tuple[bool, int]],
    fixed: Sequence[Any],
    changing: Sequence[ShapedArray],
) -> Body:
    consts, carry, xs = marks
    types = [v.type for v in jaxpr.inputs]
    const_types, carry_types, x_types = split(types, len(consts), len(carry))
    counts = [sum(consts), len(fixed), sum(carry), sum(xs), len(changing)]

    def advance(*arguments: Any) -> list[Any]:
        parts = []
        start = 0
        for count in counts:
            parts.append(arguments[start : start + count])
            start += count
        residuals = [parts[1][at] if is_fixed else parts[4][at] for is_fixed, at in places]
        results = derived.linear.interpret([*parts[0], *parts[2], *parts[3], *residuals])
        tangents = spread(results, derived.active_outputs, jaxpr.output_types)
        return [
            *instantiated(tangents[: len(carry)], carry),
            *chosen(tangents[len(carry) :], derived.active_outputs[len(carry) :]),
        ]

    inputs = [
        *chosen(const_types, consts),
        *(x.type for x in fixed),
        *chosen(carry_types, carry),
        *chosen(x_types, xs),
        *changing,
    ]
    return trace_body(advance, inputs, derived.linear.name, "Linearize")


def _linearize(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    jaxpr: Function,
    num_consts: int,
    num_carry: int,
    **params: Any,
) -> tuple[list[Any], list[Any]]:
    consts, init, xs = split(primals, num_consts, num_carry)
    const_tangents, init_tangents, x_tangents = split(tangents, num_consts, num_carry)
    is_const, is_x = activity(const_tangents), activity(x_tangents)
    carry = _active_carry(jaxpr, "linearize", is_const, activity(init_tangents), is_x)
    active = (*is_const, *carry, *is_x)
    parts = derived_body(
        jaxpr,
        ("scan linearize", num_consts, num_carry, active),
        lambda: _split_body(jaxpr, num_consts, num_carry, active, carry),
    )
    values = dict(zip(parts.function.inputs, [*consts, *init], strict=False))
    values.update(zip(parts.function.captures, parts.function.captured, strict=True))
    hoisted = parts.invariants.compute(values, parts.invariants.hoisted)
    carried, ys = bind_scan(parts.known, [*consts, *hoisted], init, xs, **loop_options(params))
    count = len(jaxpr.outputs)
    fixed = [
        parts.invariants.compute(values, [v])[0] if isinstance(v, Var) else v for v in parts.fixed
    ]
    changing = [xs[-1 - i] if i < 0 else ys[i - num_carry] for i in parts.changing]
    types = jaxpr.output_types
    y_types = stacked(types[num_carry:], params["length"])
    outs = [*carried, *ys[: count - num_carry]]
    if not any((*carry, *parts.active_ys)):
        return outs, spread([], (False,) * count, [*types[:num_carry], *y_types])
    moved, y_tangents = bind_scan(
        parts.linear,
        [*chosen(const_tangents, is_const), *fixed],
        instantiated(init_tangents, carry),
        [*chosen(x_tangents, is_x), *changing],
        is_linear=True,
        **loop_options(params),
    )
    return outs, [
        *spread(moved, carry, types[:num_carry]),
        *spread(y_tangents, parts.active_ys, y_types),
    ]


scan_primitive.value_and_jvp = _value_and_jvp
scan_primitive.linearize = _linearize

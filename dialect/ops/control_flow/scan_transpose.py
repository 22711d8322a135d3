"""Transposition of `scan`: the backward loop, which carries cotangents from last to first pass.

Cotangents of constants are summed in the carry. Carried values that are not linear, such as a
counter, are computed by a forward loop first.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...derived import derive
from ...function import Function, read
from ...symbolic import is_undefined_primal
from ..family import add_tangents, full, instantiate
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
from .hoisting import apply, needed_equations, reached_from
from .scan import bind_scan, loop_options, scan_primitive, split, stacked

Marks = tuple[bool, ...]
# Of constants, carry and xs.
Parts = tuple[Marks, Marks, Marks]


@dataclass(frozen=True)
class _Pullback:
    """The body of the backward loop.

    Attributes:
        body: Takes the known constants, the cotangents of the linear constants so far, those of
            the carry, and slices of the known carry, the known xs and the cotangents of ys.
        consts, carry, xs: Which linear arguments have cotangents.
    """

    body: Body
    consts: Marks
    carry: Marks
    xs: Marks


def _pullback(jaxpr: Function, is_linear: Parts, carry: Marks, ys: Marks) -> _Pullback:
    flat = tuple(marked for part in is_linear for marked in part)
    num_consts, num_carry = len(is_linear[0]), len(is_linear[1])
    while True:
        derived = derive(jaxpr, "transpose", flat, (*carry, *ys))
        remaining = iter(derived.active_arguments)
        found = [linear and next(remaining) for linear in flat]
        consts, carried, xs = split(found, num_consts, num_carry)
        grown = union(carry, carried)
        if grown == carry:
            break
        carry = grown
    marks = (tuple(consts), carry, tuple(xs))
    return _Pullback(_pullback_body(jaxpr, derived, is_linear, marks, ys), *marks)


def _pullback_body(
    jaxpr: Function, derived: Any, is_linear: Parts, marks: Parts, ys: Marks
) -> Body:
    flat = [linear for part in is_linear for linear in part]
    num_consts, num_carry = len(marks[0]), len(marks[1])
    inputs = [v.type for v in jaxpr.inputs]
    parts = split(inputs, num_consts, num_carry)
    known = [
        [t for t, linear in zip(part, linears, strict=True) if not linear]
        for part, linears in zip(parts, is_linear, strict=True)
    ]
    types = [
        known[0],
        chosen(parts[0], marks[0]),
        chosen(parts[1], marks[1]),
        [*known[1], *known[2]],
        chosen(jaxpr.output_types[num_carry:], ys),
    ]

    def advance(*arguments: Any) -> list[Any]:
        remaining = iter(arguments)
        known_consts, totals, cotangents, known_values, y_cotangents = (
            list(itertools.islice(remaining, len(part))) for part in types
        )
        results = call_function(
            derived.function, [*known_consts, *known_values, *cotangents, *y_cotangents]
        )
        pulled = iter(spread(results, derived.active_arguments, chosen(inputs, flat)))
        const_part, carry_part, x_part = split(
            [next(pulled) if linear else None for linear in flat], num_consts, num_carry
        )
        return [
            *map(add_tangents, totals, chosen(const_part, marks[0])),
            *map(instantiate, chosen(carry_part, marks[1])),
            *chosen(x_part, marks[2]),
        ]

    arguments = [t for part in types for t in part]
    return trace_body(advance, arguments, f"{jaxpr.name}_transpose", "Transpose")


def _linear_carry(
    jaxpr: Function, consts: Marks, carry: Marks, xs: Marks
) -> Marks:
    """Tells which carried values depend on linear arguments."""
    while True:
        linear = chosen(jaxpr.inputs, (*consts, *carry, *xs))
        reached = reached_from(jaxpr, linear)
        grown = union(carry, [v in reached for v in jaxpr.outputs[: len(carry)]])
        if grown == carry:
            return carry
        carry = grown


def _known_carries(
    jaxpr: Function, operands: Sequence[Any], is_linear: Parts, loop: dict[str, Any]
) -> list[Any]:
    """Runs the loop for the carried values that are not linear; returns them for each pass."""
    num_consts, num_carry = len(is_linear[0]), len(is_linear[1])
    if all(is_linear[1]):
        return []
    flat = [marked for part in is_linear for marked in part]
    known = [not linear for linear in flat]
    inputs = split(chosen(jaxpr.inputs, known), *(p.count(False) for p in is_linear[:2]))
    after = [
        v for v, linear in zip(jaxpr.outputs[:num_carry], is_linear[1], strict=True) if not linear
    ]

    def make() -> Body:
        def advance(*values: Any) -> list[Any]:
            environment = dict(zip(chosen(jaxpr.inputs, known), values, strict=True))
            apply(needed_equations(jaxpr.equations, after), environment)
            before = [environment[v] for v in inputs[1]]
            return [*(read(environment, v) for v in after), *before]

        types = [v.type for part in inputs for v in part]
        return trace_body(advance, types, f"{jaxpr.name}_known", "Transpose")

    body = derived_body(jaxpr, ("scan known carry", is_linear), make)
    values = split(operands, num_consts, num_carry)
    consts, init, xs = (
        [x for x, linear in zip(part, marks, strict=True) if not linear]
        for part, marks in zip(values, is_linear, strict=True)
    )
    return bind_scan(body, consts, init, xs, **loop)[1]


def _transpose(
    cotangents: Sequence[Any],
    *operands: Any,
    jaxpr: Function,
    num_consts: int,
    num_carry: int,
    **params: Any,
) -> list[Any]:
    consts, init, xs = split(operands, num_consts, num_carry)
    linear_consts, given_carry, linear_xs = (
        tuple(map(is_undefined_primal, part)) for part in (consts, init, xs)
    )
    linear_carry = _linear_carry(jaxpr, linear_consts, given_carry, linear_xs)
    is_linear = (linear_consts, linear_carry, linear_xs)
    known = _known_carries(jaxpr, operands, is_linear, loop_options(params))
    carry_cts, y_cts = cotangents[:num_carry], cotangents[num_carry:]
    active_carry = tuple(
        active and linear
        for active, linear in zip(activity(carry_cts), linear_carry, strict=True)
    )
    active_ys = activity(y_cts)
    pullback = derived_body(
        jaxpr,
        ("scan transpose", is_linear, active_carry, active_ys),
        lambda: _pullback(jaxpr, is_linear, active_carry, active_ys),
    )
    types = [v.type for v in jaxpr.inputs]
    const_types, carry_types, x_types = split(types, num_consts, num_carry)
    totals = [
        full(t.shape, 0, t.dtype) for t in chosen(const_types, pullback.consts)
    ]
    loop = {**loop_options(params), "reverse": not params["reverse"]}
    carried, x_cts = bind_scan(
        pullback.body,
        [x for x in consts if not is_undefined_primal(x)],
        [*totals, *instantiated(carry_cts, pullback.carry)],
        [*known, *(x for x in xs if not is_undefined_primal(x)), *chosen(y_cts, active_ys)],
        **loop,
    )
    results = [
        *spread(carried[: len(totals)], pullback.consts, const_types),
        *spread(carried[len(totals) :], pullback.carry, carry_types),
        *spread(x_cts, pullback.xs, stacked(x_types, params["length"])),
    ]
    return [
        ct if is_undefined_primal(x) else None for ct, x in zip(results, operands, strict=True)
    ]


scan_primitive.transpose = _transpose

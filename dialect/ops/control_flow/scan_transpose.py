"""Transposition of `scan`: the backward loop carries cotangents from the last to the first pass.

Cotangents of constants are summed in the carry. Carried values that are not linear, such as a
counter, are computed by a forward loop first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from axir.dialect.core.annotations import Param, Params
from axir.dialect.core.memo import derived
from axir.dialect.core.symbolic_zeros import Marks, chosen, inverted, moving, spread, unknown
from axir.dialect.ops.elementwise.family import add_tangents, full, instantiate
from axir.dialect.program.derived_functions import derive
from axir.dialect.program.function import Function
from axir.dialect.program.rules import Cotangent, Value
from axir.dialect.program.walk import Environment, apply_equations, backward_slice, dependents

from .closed_bodies import Body, call_function, fixpoint, instantiated, split, trace_body
from .scan import Scan, bind_scan, scan_primitive, stacked

# Marks of constants, carry and xs.
Parts = tuple[Marks, Marks, Marks]


@dataclass(frozen=True)
class _Pullback:
    """The body of the backward loop.

    Attributes:
        body: Takes the known constants, the cotangents of the linear constants so far, the
            cotangents of the carry, and slices of the known carry, the known xs and the cotangents
            of ys.
        consts, carry, xs: Which linear arguments have cotangents.
    """

    body: Body
    consts: Marks
    carry: Marks
    xs: Marks


@derived
def _pullback(jaxpr: Function, is_linear: Parts, carry: Marks, ys: Marks) -> _Pullback:
    flat = tuple(marked for part in is_linear for marked in part)
    num_consts, num_carry = len(is_linear[0]), len(is_linear[1])

    def active(carry: Marks) -> list[list[bool]]:
        transposed = derive(jaxpr, "transpose", flat, (*carry, *ys))
        remaining = iter(transposed.active_arguments)
        found = [linear and next(remaining) for linear in flat]
        return split(found, num_consts, num_carry)

    carry = fixpoint(carry, lambda carry: active(carry)[1])
    consts, _, xs = active(carry)
    marks = (tuple(consts), carry, tuple(xs))
    return _Pullback(_pullback_body(jaxpr, is_linear, marks, ys), *marks)


def _pullback_body(jaxpr: Function, is_linear: Parts, marks: Parts, ys: Marks) -> Body:
    flat = tuple(linear for part in is_linear for linear in part)
    num_consts, num_carry = len(marks[0]), len(marks[1])
    transposed = derive(jaxpr, "transpose", flat, (*marks[1], *ys))
    inputs = jaxpr.input_types
    consts, carry, xs = split(inputs, num_consts, num_carry)
    known = [
        chosen(part, inverted(linears))
        for part, linears in zip((consts, carry, xs), is_linear, strict=True)
    ]
    types = [
        known[0],
        chosen(consts, marks[0]),
        chosen(carry, marks[1]),
        [*known[1], *known[2]],
        chosen(jaxpr.output_types[num_carry:], ys),
    ]

    def advance(*arguments: Value) -> list[Value]:
        known_consts, totals, cotangents, known_values, y_cotangents = split(
            arguments, *map(len, types[:-1])
        )
        results = call_function(
            transposed.function, [*known_consts, *known_values, *cotangents, *y_cotangents]
        )
        pulled = iter(spread(results, transposed.active_arguments, chosen(inputs, flat)))
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


def _linear_carry(jaxpr: Function, consts: Marks, carry: Marks, xs: Marks) -> Marks:
    """Tells which carried values depend on linear arguments."""

    def reached(carry: Marks) -> list[bool]:
        found = dependents(jaxpr.equations, chosen(jaxpr.inputs, (*consts, *carry, *xs)))
        return [v in found for v in jaxpr.outputs[: len(carry)]]

    return fixpoint(carry, reached)


def _known_carries(
    jaxpr: Function, operands: Sequence[Value], is_linear: Parts, loop: Params
) -> list[Value]:
    """Runs the loop for the carried values that are not linear; returns them for each pass."""
    if all(is_linear[1]):
        return []
    counts = len(is_linear[0]), len(is_linear[1])
    parts = map(chosen, split(operands, *counts), map(inverted, is_linear))
    return bind_scan(_known_body(jaxpr, is_linear), *parts, **loop)[1]


@derived
def _known_body(jaxpr: Function, is_linear: Parts) -> Body:
    """Returns the body of the loop over the known values, with the carry before a pass as ys."""
    counts = len(is_linear[0]), len(is_linear[1])
    known = list(map(inverted, is_linear))
    consts, before, xs = map(chosen, split(jaxpr.inputs, *counts), known)
    inputs = [*consts, *before, *xs]
    after = chosen(jaxpr.outputs[: counts[1]], known[1])

    def advance(*values: Value) -> list[Value]:
        environment = Environment(zip(inputs, values, strict=True))
        apply_equations(backward_slice(jaxpr.equations, after).equations, environment)
        return environment.values_of([*after, *before])

    return trace_body(advance, [v.type for v in inputs], f"{jaxpr.name}_known", "Transpose")


def _transpose(
    cotangents: Sequence[Cotangent], *operands: Param, **params: Param
) -> Sequence[Cotangent | None]:
    loop = Scan(operands, **params)
    jaxpr, marks = loop.body, unknown(operands)
    linear_consts, given_carry, linear_xs = map(tuple, loop.split(marks))
    linear_carry = _linear_carry(jaxpr, linear_consts, given_carry, linear_xs)
    is_linear = (linear_consts, linear_carry, linear_xs)
    known = _known_carries(jaxpr, operands, is_linear, loop.options)
    carry_cts, y_cts = split(cotangents, len(loop.carry))
    active_carry = tuple(
        active and linear for active, linear in zip(moving(carry_cts), linear_carry, strict=True)
    )
    active_ys = moving(y_cts)
    pullback = _pullback(jaxpr, is_linear, active_carry, active_ys)
    const_types, carry_types, x_types = loop.split(jaxpr.input_types)
    totals = [full(t.shape, 0, t.dtype) for t in chosen(const_types, pullback.consts)]
    carried, x_cts = bind_scan(
        pullback.body,
        chosen(loop.consts, inverted(linear_consts)),
        [*totals, *instantiated(carry_cts, pullback.carry)],
        [*known, *chosen(loop.xs, inverted(linear_xs)), *chosen(y_cts, active_ys)],
        **{**loop.options, "reverse": not loop.options["reverse"]},
    )
    results = spread(
        [*carried, *x_cts],
        (*pullback.consts, *pullback.carry, *pullback.xs),
        [*const_types, *carry_types, *stacked(x_types, loop.length)],
    )
    return [ct if mark else None for ct, mark in zip(results, marks, strict=True)]


scan_primitive.transpose = _transpose

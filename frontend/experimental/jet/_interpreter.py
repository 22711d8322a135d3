r"""Functions of series: a walk over traced functions.

The rule of an op without a Taylor rule is derived from its `jvp`. This is exact: if \(\dot y = g(x,
\dot x, y)\) is the tangent of an op, the k-th coefficient of \(\dot y\) needs no more than the
first k of x and y, and gives the (k+1)-th of y. Elsewhere: rules of ops (`_rules.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from axir.dialect.core.dtypes import is_inexact
from axir.dialect.core.memo import derived
from axir.dialect.core.state import attributed
from axir.dialect.core.symbolic_zeros import Zero
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.calls.jit_call import call
from axir.dialect.ops.control_flow.closed_bodies import Body, split, trace_body
from axir.dialect.ops.control_flow.conditional import bind_cond
from axir.dialect.ops.control_flow.scan import Scan, bind_scan
from axir.dialect.ops.control_flow.while_loop import bind_while
from axir.dialect.ops.elementwise.family import full, instantiate
from axir.dialect.program.equation import Equation
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.primitive import primitive_of
from axir.dialect.program.rules import Value
from axir.dialect.program.walk import Environment

from ._rules import RULES, apply_user_rule, jet_rules
from ._series import Series

Marks: TypeAlias = tuple[bool, ...]
Outcome: TypeAlias = tuple[list[Value], list[Series]]
"""Results of an op or a function, and their series."""


def run(
    function: Function, primals: Sequence[Value], series: Sequence[Series], order: int
) -> Outcome:
    """Applies a function to values and series of its inputs and captures."""
    environment = Environment.of(function, primals)
    moving = dict(zip((*function.inputs, *function.captures), series, strict=True))
    for equation in attributed(function.equations):
        operands = environment.values_of(equation.operands)
        given = [moving.get(v) for v in equation.operands]
        if not order or all(s is None for s in given):
            environment.store(equation, equation.primitive.bind(*operands, **equation.params))
            continue
        outs, found = apply(function, equation, operands, given, order)
        environment.update(zip(equation.results, outs, strict=True))
        moving.update(zip(equation.results, found, strict=True))
    return environment.values_of(function.outputs), [moving.get(v) for v in function.outputs]


def apply(
    function: Function,
    equation: Equation,
    operands: list[Value],
    series: list[Series],
    order: int,
) -> Outcome:
    """Applies an op of a function to values and series of its operands."""
    primitive, params = primitive_of(equation), equation.params
    if primitive in jet_rules:
        return apply_user_rule(primitive, operands, series, order, params)
    caller = _CALLERS.get(primitive.name)
    if caller is not None:
        return caller(equation, operands, series, order)
    if primitive.body is not None and primitive.name != "custom_jvp_call":
        return run(primitive.body(**params), operands, series, order)
    rule = RULES.get(primitive.name)
    if rule is not None:
        out, found = rule(primitive, operands, series, order, params)
        return [out], [found]
    return _by_tangents(function, equation, operands, series, order)


# Ops without a rule --------------------------------------------------------------------------


def _by_tangents(
    function: Function,
    equation: Equation,
    operands: list[Value],
    series: list[Series],
    order: int,
) -> Outcome:
    primitive = equation.primitive
    outs = primitive.bind(*operands, **equation.params)
    outs = list(outs) if primitive.multiple_results else [outs]
    rate = _rate(function, equation, tuple(s is not None for s in series))
    is_smooth = [is_inexact(x.dtype) for x in outs]
    found: list[list[Value]] = [[] for smooth in is_smooth if smooth]
    for k in range(1, order + 1):
        # Series of degree k - 1: of the operands, of their tangents, and of the results.
        moving = [s for s in series if s is not None]
        tangents = [[(j + 1) * s[j] for j in range(k)] for s in moving]
        own = iter(found)
        primals = [*operands, *(t[0] for t in tangents), *outs, *rate.captured]
        cut = [
            *(None if s is None else s[: k - 1] for s in series),
            *(tuple(t[1:]) for t in tangents),
            *(tuple(next(own)) if smooth else None for smooth in is_smooth),
            *([None] * len(rate.captured)),
        ]
        values, terms = run(rate, primals, cut, k - 1)
        for known, value, term in zip(found, values, terms, strict=True):
            last = value if k == 1 else full(value.shape, 0, value.dtype)
            known.append((term[-1] if term else last) / k)
    own = iter(found)
    return outs, [tuple(next(own)) if smooth else None for smooth in is_smooth]


@derived
def _rate(function: Function, equation: Equation, moving: Marks) -> Function:
    """Returns the tangents of an op's float results, as a function.

    It takes the operands, the tangents of the marked ones, and the results.
    """
    primitive, params = equation.primitive, equation.params
    types = [v.type for v in equation.operands]
    tangent_types = [t for t, moves in zip(types, moving, strict=True) if moves]
    result_types = [v.type for v in equation.results]

    def flat(*values: Value) -> list[Value]:
        primals, given, outs = split(values, len(types), len(tangent_types))
        remaining = iter(given)
        tangents = [
            next(remaining) if moves else Zero(t.to_tangent_aval())
            for t, moves in zip(types, moving, strict=True)
        ]
        if primitive.value_and_jvp is not None:
            _, found = primitive.value_and_jvp(primals, tangents, **params)
        else:
            assert primitive.jvp is not None
            results = outs if primitive.multiple_results else outs[0]
            found = primitive.jvp(primals, tangents, results, **params)
        listed = found if primitive.multiple_results else [found]
        return [
            instantiate(Zero(t) if x is None else x)
            for x, t in zip(listed, result_types, strict=True)
            if is_inexact(t.dtype)
        ]

    return trace_function(flat, [*types, *tangent_types, *result_types], kind="Jet")


# Ops that call functions -----------------------------------------------------------------------


@derived
def _jetted(function: Function, moving: Marks, order: int) -> Body:
    """Returns a function with series.

    It takes the arguments, then the coefficients of the marked ones; it returns the results, then
    the coefficients of those that are floats.
    """
    types = function.in_avals

    def flat(*values: Value) -> list[Value]:
        primals, given = split(values, len(types))
        outs, series = run(function, primals, _spread(given, moving, order), order)
        return [*outs, *_flat(outs, series, order)]

    return trace_body(flat, [*types, *_series_types(types, moving, order)], function.name, "Jet")


def _series_types(types: Sequence[ShapedArray], moving: Marks, order: int) -> list[ShapedArray]:
    return [
        t.strip_weak_type() for t, m in zip(types, moving, strict=True) if m for _ in range(order)
    ]


def _spread(values: Sequence[Value], moving: Sequence[bool], order: int) -> list[Series]:
    """Returns series, given the coefficients of the marked ones."""
    remaining = iter(values)
    return [tuple(next(remaining) for _ in range(order)) if m else None for m in moving]


def _flat(values: Sequence[Value], series: Sequence[Series], order: int) -> list[Value]:
    """Returns the coefficients of values that are floats, zeros made explicit."""
    flat: list[Value] = []
    for x, s in zip(values, series, strict=True):
        if is_inexact(x.dtype):
            zero = full(x.shape, 0, x.dtype)
            flat += [zero] * order if s is None else [c.astype(x.dtype) for c in s]
    return flat


def _marks(series: Sequence[Series]) -> Marks:
    return tuple(s is not None for s in series)


def _given(series: Sequence[Series]) -> list[Value]:
    return [c for s in series if s is not None for c in s]


def _split_results(equation: Equation, results: Sequence[Value], order: int) -> Outcome:
    """Splits results from the coefficients of those that are floats."""
    outs, rest = split(results, len(equation.results))
    return outs, _spread(rest, [is_inexact(x.dtype) for x in outs], order)


def _jit(equation: Equation, operands: list[Value], series: list[Series], order: int) -> Outcome:
    body = _jetted(equation.params["jaxpr"], _marks(series), order)
    results = call(body.function, *body.captured, *operands, *_given(series))
    return _split_results(equation, results, order)


def _cond(equation: Equation, operands: list[Value], series: list[Series], order: int) -> Outcome:
    index, *rest = operands
    marks = _marks(series[1:])
    branches = [_jetted(branch, marks, order) for branch in equation.params["branches"]]
    results = bind_cond(index, branches, [*rest, *_given(series[1:])])
    return _split_results(equation, results, order)


def _scan(equation: Equation, operands: list[Value], series: list[Series], order: int) -> Outcome:
    loop, moving = Scan(operands, **equation.params), Scan(series, **equation.params)
    carried = tuple(is_inexact(x.dtype) for x in loop.carry)
    marks = (_marks(moving.consts), carried, _marks(moving.xs))
    body = _jetted(loop.body, (*marks[0], *marks[1], *marks[2]), order)
    consts = [*loop.consts, *_given(moving.consts)]
    carry = [*loop.carry, *_flat(loop.carry, moving.carry, order)]
    xs = [*loop.xs, *_given(moving.xs)]
    counts = [
        (len(values), sum(m) * order)
        for values, m in zip((loop.consts, loop.carry, loop.xs), marks, strict=True)
    ]

    # Values come with their series behind them; the function wants all values first.
    def reordered(*arguments: Value) -> list[Value]:
        parts = split(arguments, *(n for pair in counts for n in pair))[:-1]
        values = [x for part in (*parts[0::2], *parts[1::2]) for x in part]
        results = body.function.interpret([*body.captured, *values])
        outs, rest = split(results, len(equation.results))
        after, ys = split(outs, len(loop.carry))
        after_series, ys_series = split(rest, sum(carried) * order)
        return [*after, *after_series, *ys, *ys_series]

    slices = [x.type.update(shape=x.shape[1:]) for x in xs]
    types = [*(x.type for x in (*consts, *carry)), *slices]
    made = trace_body(reordered, types, loop.body.name, "Jet")
    carry, ys = bind_scan(made, consts, carry, xs, **loop.options)
    after, after_series = split(carry, len(loop.carry))
    outs, ys_series = split(ys, len(equation.results) - len(loop.carry))
    return _split_results(equation, [*after, *outs, *after_series, *ys_series], order)


def _while(equation: Equation, operands: list[Value], series: list[Series], order: int) -> Outcome:
    params = equation.params
    counts = params["cond_nconsts"], params["body_nconsts"]
    first, second, carry = split(operands, *counts)
    _, fixed, moving = split(series, *counts)
    carried = tuple(is_inexact(x.dtype) for x in carry)
    body = _jetted(params["body_jaxpr"], (*_marks(fixed), *carried), order)
    given = _given(fixed)
    init = [*carry, *_flat(carry, moving, order)]

    def holds(*values: Value) -> list[Value]:
        return params["cond_jaxpr"].interpret([*first, *values[: len(carry)]])

    def advance(*values: Value) -> list[Value]:
        now, now_series = split(values, len(carry))
        arguments = [*body.captured, *second, *now, *given, *now_series]
        return body.function.interpret(arguments)

    types = [x.type for x in init]
    results = bind_while(
        trace_body(holds, types, params["cond_jaxpr"].name, "Jet"),
        trace_body(advance, types, params["body_jaxpr"].name, "Jet"),
        init,
    )
    return _split_results(equation, results, order)


_CALLERS = {"jit": _jit, "cond": _cond, "scan": _scan, "while": _while}

"""Loops and choices on the rows of arrays: their rules for `row_proof.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Protocol

from axir.dialect.core.annotations import Params
from axir.dialect.ops.control_flow.closed_bodies import split
from axir.dialect.program.equation import Equation
from axir.dialect.program.function import Function

from .batching import COUNTS
from .row_expressions import Expressions, Made, Shape
from .row_layouts import Mixed, Own, RefusedError, Rows, State, joined, part_shape

Equations = tuple[Equation, Equation]


class Walk(Protocol):
    """The walk of `row_proof.py` over two programs that differ in their number of rows.

    Attributes:
        expressions: The expressions of a single row.
        facts: Known values of inputs of the current body: arrays, by input.
    """

    expressions: Expressions
    facts: dict[int, int]

    def within(
        self, inputs: Sequence[Own], operands: Sequence[Own]
    ) -> AbstractContextManager[None]:
        """Enters a body with the known values of inputs that equal operands in all iterations."""
        ...

    def outputs(
        self, functions: tuple[Function, Function], operands: Sequence[State]
    ) -> list[State]:
        """Returns what two functions give."""
        ...


def _choice(walk: Walk, equations: Equations, operands: Sequence[Own]) -> list[State]:
    """Returns the results of `cond`: all rows take the same branch."""
    _, *others = operands
    inputs = _as_inputs(walk.expressions, others)
    branches = zip(*(e.params["branches"] for e in equations), strict=True)
    with walk.within(inputs, others):
        found = [_all_own(walk.outputs(pair, inputs)) for pair in branches]
    rows = found[0]
    layouts = [x.rows for x in rows]
    for results in found[1:]:
        layouts = [joined(one, x.rows) for one, x in zip(layouts, results, strict=True)]
    params = {"branches": tuple(_made(results) for results in found)}
    return _results(walk.expressions, equations[0], params, operands, layouts)


def _scan(walk: Walk, equations: Equations, operands: Sequence[Own]) -> list[State]:
    """Returns the results of `scan`: over another axis than rows, or of each row separately."""
    counts = equations[0].params["num_consts"], equations[0].params["num_carry"]
    consts, carry, xs = split(operands, *counts)
    if any(x.rows is not None and x.rows.dimension == 0 for x in xs):
        return _map(walk, equations, operands, xs)
    inputs = _as_inputs(walk.expressions, operands)
    slices = [
        _slice(walk.expressions, x, n) for n, x in enumerate(xs, start=len(operands) - len(xs))
    ]
    before = inputs[: len(consts)]
    with walk.within(before, consts):
        layouts, found = _invariant(walk, _functions(equations, "jaxpr"), before, carry, slices)
    stacked = [_behind(x.rows) for x in found[len(carry) :]]
    params = {"jaxpr": _made(found)}
    length = equations[0].params["length"], equations[1].params["length"]
    if length[0] != length[1]:
        raise RefusedError("A loop makes as many passes as there are rows.")
    return _results(walk.expressions, equations[0], params, operands, [*layouts, *stacked])


def _map(
    walk: Walk, equations: Equations, operands: Sequence[Own], xs: Sequence[Own]
) -> list[State]:
    """Returns the results of a loop over rows that carries nothing from row to row."""
    first = operands[: len(operands) - len(xs)]
    rows = None
    for x in xs:
        if x.rows is None or x.rows.dimension or x.rows.numbered:
            raise RefusedError("A loop over rows tells them apart.")
        rows = x.rows if rows is None else joined(rows, x.rows)
    if equations[0].params["num_carry"] or any(x.rows is not None for x in first):
        raise RefusedError("A loop carries something from row to row.")
    expressions = walk.expressions
    slices = [
        Own(expressions.input(n, expressions.shape(x.expression)[1:]))
        for n, x in enumerate(xs, start=len(first))
    ]
    inputs = [*_as_inputs(expressions, first), *slices]
    with walk.within(inputs[: len(first)], first):
        found = _all_own(walk.outputs(_functions(equations, "jaxpr"), inputs))
    if any(x.rows is not None for x in found):
        raise RefusedError("A loop over rows depends on how many there are.")
    params = {"jaxpr": _made(found), "length": expressions.shape(xs[0].expression)[0]}
    return _results(expressions, equations[0], params, operands, [rows] * len(found))


def _while(walk: Walk, equations: Equations, operands: Sequence[Own]) -> list[State]:
    """Returns the results of `while`: all rows make the same passes, or rest when they are done."""
    params, expressions = equations[0].params, walk.expressions
    first, second, carry = split(operands, params["cond_nconsts"], params["body_nconsts"])
    before = _as_inputs(expressions, second)
    with walk.within(before, second):
        layouts, found = _invariant(walk, _functions(equations, "body_jaxpr"), before, carry, [])
    carried = [
        Own(expressions.input(len(first) + n, expressions.shape(x.expression)), rows)
        for n, (x, rows) in enumerate(zip(carry, layouts, strict=True))
    ]
    conditions = _functions(equations, "cond_jaxpr")
    tested = _as_inputs(expressions, first)
    with walk.within(tested, first):
        (ends,) = walk.outputs(conditions, [*tested, *carried])
    if isinstance(ends, Mixed):
        running = _running(conditions)
        if running is None or not _rests(walk, running, second, carry, found):
            raise RefusedError("Rows make passes of a loop until the last of them is done.")
        numbers = [x.expression for x in carried]
        ends = Own(expressions.interpreted(conditions[0], numbers)[0])
    functions = {"cond_jaxpr": _made([ends]), "body_jaxpr": _made(found)}
    return _results(expressions, equations[0], functions, operands, layouts)


def _running(conditions: tuple[Function, Function]) -> int | None:
    """Returns the number of the carried value that tells which rows still run, or None."""
    found = set()
    for condition in conditions:
        if len(condition.equations) != 1:
            return None
        (equation,) = condition.equations
        (operand, *others), (result,) = equation.operands, equation.results
        is_all = equation.params.get("axes") == tuple(range(operand.type.ndim))
        if equation.primitive.name != "reduce_or" or others or not is_all:
            return None
        if condition.outputs != (result,):
            return None
        found.add(next((n for n, v in enumerate(condition.inputs) if v is operand), None))
    return found.pop() if len(found) == 1 else None


def _rests(
    walk: Walk,
    running: int,
    consts: Sequence[Own],
    carry: Sequence[Own],
    found: Sequence[Own],
) -> bool:
    """Tells whether a pass changes nothing of rows that are done, so that they stay done.

    It keeps the carry where a row does not run, and evaluates the same condition on the carry as
    before the loop.

    Args:
        walk: The walk.
        running: The number of the carried value that tells which rows still run.
        consts: Operands of the body before the carry.
        carry: The initial carry.
        found: The body's results.
    """
    expressions, count = walk.expressions, len(consts)
    shapes = [expressions.shape(x.expression) for x in carry]
    inputs = [expressions.input(count + n, shape) for n, shape in enumerate(shapes)]
    known = {
        expressions.input(n, expressions.shape(x.expression)): x.expression
        for n, x in enumerate(consts)
    }
    for place, (x, number) in enumerate(zip(found, inputs, strict=True)):
        if place == running:
            continue
        if x.expression != number and not _is_kept(
            expressions, x.expression, number, inputs[running]
        ):
            return False
        if known.setdefault(x.expression, carry[place].expression) != carry[place].expression:
            return False
    asked = expressions.replaced(found[running].expression, known)
    if asked is None:
        return False
    before = carry[running].expression
    sides = [expressions.replaced(each, walk.facts, keeps_inputs=True) for each in (asked, before)]
    return sides[0] == sides[1]


def _is_kept(expressions: Expressions, made: int, old: int, running: int) -> bool:
    """Tells whether a value is an old one where rows do not run."""
    node = expressions.nodes[made]
    if node.op != "select_n":
        return False
    which, kept, *_ = node.operands
    while expressions.nodes[which].op in ("regroup", "broadcast_in_dim"):
        (which,) = expressions.nodes[which].operands
    return which == running and kept == old


# Shared by the rules ------------------------------------------------------------------------------


def _invariant(
    walk: Walk,
    bodies: tuple[Function, Function],
    before: Sequence[Own],
    carry: Sequence[Own],
    behind: Sequence[Own],
) -> tuple[list[Rows | None], list[Own]]:
    """Returns the places of rows in the carry in all passes, and the body's results then."""
    layouts = [x.rows for x in carry]
    shapes = [walk.expressions.shape(x.expression) for x in carry]
    while True:
        carried = [
            Own(walk.expressions.input(len(before) + n, shape), rows)
            for n, (shape, rows) in enumerate(zip(shapes, layouts, strict=True))
        ]
        found = _all_own(walk.outputs(bodies, [*before, *carried, *behind]))
        grown = [joined(rows, x.rows) for rows, x in zip(layouts, found, strict=False)]
        if grown == layouts:
            return layouts, found
        layouts = grown  # rows that were uniform have a place now, so this ends


def _functions(equations: Equations, name: str) -> tuple[Function, Function]:
    return equations[0].params[name], equations[1].params[name]


def _as_inputs(expressions: Expressions, operands: Sequence[Own]) -> list[Own]:
    return [
        replace(x, expression=expressions.input(n, expressions.shape(x.expression)))
        for n, x in enumerate(operands)
    ]


def _slice(expressions: Expressions, x: Own, place: int) -> Own:
    """Returns a pass's slice of an array that is scanned, but not along its rows."""
    shape: Shape = expressions.shape(x.expression)[1:]
    rows = None if x.rows is None else replace(x.rows, dimension=x.rows.dimension - 1)
    return Own(expressions.input(place, shape), rows)


def _behind(rows: Rows | None) -> Rows | None:
    return None if rows is None else replace(rows, dimension=rows.dimension + 1)


def _all_own(states: Sequence[State]) -> list[Own]:
    for state in states:
        if isinstance(state, Mixed):
            raise RefusedError(state.reason, state.equation)
    return [x for x in states if isinstance(x, Own)]


def _made(results: Sequence[Own]) -> Made:
    return Made(tuple(x.expression for x in results))


def _results(
    expressions: Expressions,
    equation: Equation,
    functions: Params,
    operands: Sequence[Own],
    layouts: Sequence[Rows | None],
) -> list[State]:
    params, numbers = {**equation.params, **functions}, [x.expression for x in operands]
    shapes = [
        part_shape(v.type.shape, rows, COUNTS[0])
        for v, rows in zip(equation.results, layouts, strict=True)
    ]
    made = expressions.applied(equation, params, numbers, shapes)
    return [Own(*each) for each in zip(made, layouts, strict=True)]


RULES: dict[str, Callable[[Walk, Equations, Sequence[Own]], list[State]]] = {
    "cond": _choice,
    "scan": _scan,
    "while": _while,
}

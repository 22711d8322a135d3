"""Proves that a function treats rows one by one: row i of its results depends only on row i.

The function is traced for two numbers of rows, and the two programs are walked side by side. For
each value, the walk knows the place of its rows, and a single row's computation of it, as an
expression. The rule `dimensions` of an op says whether it does the same for each row. The op's
counterpart on a single row must come out equal from both programs, so that it does not depend on
the number of rows. In the end it is compared with the program that was traced for one row. Values
that were computed from the number of rows during tracing are walked like the program.

The proof covers values. It trusts the rules of custom derivatives, and Python code that depends on
a number of rows other than the three.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.context import describe_location
from axir.dialect.program.described_arrays import origin_of
from axir.dialect.program.equation import Equation, Literal, Var
from axir.dialect.program.function import Function
from axir.passes.partition.propagation import dimensions_of

from . import row_loops
from .batching import COUNTS, DependentRowsError, dependent
from .manifest import Batch
from .row_expressions import Expressions, Shape, captured_behind, inlined
from .row_layouts import Mixed, Own, Parts, RefusedError, Rows, State, part_shape, parts_of
from .row_loops import Equations
from .row_numbers import constant, looks_up, numbered_results, numbers_of, of_own_row

Pair = tuple[Function, Function]


def check_rows(several: Pair, one: Function, batch: Batch) -> None:
    """Proves that row i of a function's results is the function of row i.

    Args:
        several: The function traced for each number of rows in `COUNTS`, origins kept.
        one: The same for one row.
        batch: Which arguments and results have rows.

    Raises:
        DependentRowsError: if rows are combined, or if independence cannot be proved.
    """
    walk, name = Walk(), several[0].name
    inputs, found = walk.results(several, one, batch.arguments)
    wanted = walk.expressions.interpreted(one, inputs)
    for place, (state, number) in enumerate(zip(found, wanted, strict=True)):
        if isinstance(state, Own):
            state = _of_result(state, batch.results[place], number)
        if isinstance(state, Mixed):
            what = "of a row depends on the other rows, or on how many there are"
            if not batch.results[place]:
                what = "depends on all rows"
            raise _because(dependent(name, f"result {place} {what}"), state)


def explained(
    error: DependentRowsError, several: Pair, one: Function, is_open: Sequence[bool]
) -> DependentRowsError:
    """Returns an error about a function's results with the op that is its reason, if known.

    Args:
        error: The error.
        several: The function traced for each number of rows in `COUNTS`, origins kept.
        one: The same for one row.
        is_open: Which arguments have rows.
    """
    states = Walk().results(several, one, is_open)[1]
    mixed = next((x for x in states if isinstance(x, Mixed)), None)
    return error if mixed is None else _because(error, mixed)


def _of_result(state: Own, is_open: bool, number: int) -> State:
    """Returns the state of a result, given a single row's expression for it."""
    rows = state.rows
    if (rows is not None and not rows.dimension and not rows.numbered) is not is_open:
        return Mixed("The numbers of rows are among its elements.")
    if state.expression != number:
        return Mixed("A single row is computed in another way than several.")
    return state


def _because(error: DependentRowsError, state: Mixed) -> DependentRowsError:
    where = None if state.equation is None else describe_location(state.equation.location)
    return DependentRowsError(f"{error.message} {state.reason}", error.way_out, where=where)


class Walk:
    """A walk over two programs that differ in their number of rows.

    Attributes:
        expressions: The computation of a single row.
        facts: Known values of inputs of the current body: arrays, by input.
    """

    def __init__(self) -> None:
        self.expressions = Expressions()
        self.facts: dict[int, int] = {}

    @contextlib.contextmanager
    def within(self, inputs: Sequence[Own], operands: Sequence[Own]) -> Iterator[None]:
        """Walks a body with some inputs that equal its operands in all passes."""
        before = self.facts
        values = [before.get(x.expression, x.expression) for x in operands]
        pairs = zip(inputs, values, strict=True)
        self.facts = {x.expression: n for x, n in pairs if self.expressions.is_known(n)}
        try:
            yield
        finally:
            self.facts = before

    def results(
        self, several: Pair, one: Function, is_open: Sequence[bool]
    ) -> tuple[list[int], list[State]]:
        """Returns the inputs of the function of one row, and the states of the results.

        Args:
            several: The function for each number of rows in `COUNTS`.
            one: The function for one row.
            is_open: Which arguments have rows.
        """
        numbers = [self.expressions.input(n, t.shape) for n, t in enumerate(one.input_types)]
        operands = [
            Own(number, Rows(0, 1) if has_rows else None)
            for number, has_rows in zip(numbers, is_open, strict=True)
        ]
        return numbers, self.outputs(several, operands)

    def outputs(self, functions: Pair, operands: Sequence[State]) -> list[State]:
        """Returns the states of a function's outputs, given its inputs and captures.

        Args:
            functions: The function in either program.
            operands: The states of the inputs, and of the captures unless the captured values
                serve.
        """
        one, other = functions
        captured = [captured_behind(f, len(operands)) for f in functions]
        rest = [self._constant(*arrays) for arrays in zip(*captured, strict=False)]
        values = [*operands, *rest]
        known: tuple[dict[Var, State], dict[Var, State]] = ({}, {})
        for function, states in zip(functions, known, strict=True):
            states.update(zip((*function.inputs, *function.captures), values, strict=False))
        unknown = Mixed(_COUNTED, next(iter(other.equations[len(one.equations) :]), None))
        for equations in zip(one.equations, other.equations, strict=False):
            if not _are_alike(*equations):
                unknown = Mixed(_COUNTED, equations[0])
                break
            given = [self._state(v, known, unknown) for v in _pairs(equations, "operands")]
            results = self._results(equations, given)
            for equation, states in zip(equations, known, strict=True):
                states.update(zip(equation.results, results, strict=True))
        return [
            self._state(v, known, unknown) for v in zip(one.outputs, other.outputs, strict=False)
        ]

    def _state(
        self,
        pair: tuple[Var, Var],
        known: tuple[dict[Var, State], dict[Var, State]],
        unknown: Mixed,
    ) -> State:
        one, other = pair
        if type(one) is Literal and type(other) is Literal:
            return self._constant(one.array, other.array)
        found = known[0].get(one)
        if found is None or found is not known[1].get(other):
            return unknown
        return found

    def _constant(self, one: ConcreteArray, other: ConcreteArray) -> State:
        """Returns the state of an array; a computed array is also checked by its computation."""
        origins = origin_of(one), origin_of(other)
        if one is not other and origins[0] is not None and origins[1] is not None:
            equations = origins[0].equation, origins[1].equation
            if not _are_alike(*equations) or origins[0].place != origins[1].place:
                return Mixed(_COUNTED)
            given = [
                self._constant(x.array, y.array)
                for x, y in _pairs(equations, "operands")
                if type(x) is Literal and type(y) is Literal
            ]
            made = self._results(equations, given)[origins[0].place]
            if isinstance(made, Mixed):
                return made
        return constant(self.expressions, (one, other), COUNTS)

    def _results(self, equations: Equations, operands: Sequence[State]) -> list[State]:
        equation = equations[0]
        inner = inlined(equation), inlined(equations[1])
        if inner[0] is not None and inner[1] is not None:
            return _located(self.outputs((inner[0], inner[1]), operands), equation)
        mixed = next((x for x in operands if isinstance(x, Mixed)), None)
        own = [x for x in operands if isinstance(x, Own)]
        try:
            if mixed is not None:
                raise RefusedError(mixed.reason, mixed.equation)
            rule = row_loops.RULES.get(equation.primitive.name)
            if rule is not None:
                return rule(self, equations, own)
            found = [self._applied(equations, n, own) for n in range(2)]
        except RefusedError as refused:
            return [Mixed(str(refused), refused.equation or equation)] * len(equation.results)
        return [
            x
            if x == y
            else Mixed(f"The op {equation.primitive.name!r} depends on {_NUMBER}.", equation)
            for x, y in zip(*found, strict=True)
        ]

    def _applied(self, equations: Equations, number: int, operands: Sequence[Own]) -> list[Own]:
        """Returns the states of an op's results in one of the programs."""
        equation, count = equations[number], COUNTS[number]
        rows = [x.rows for x in operands]
        new = [_new_rows(v) for v in _pairs(equations, "results")]
        parts = Parts(equation.params, [v.type.shape for v in equation.results], [None] * len(new))
        if any(x is not None and x.numbered for x in rows):
            if looks_up(equation):
                parts = of_own_row(equation, operands, count)
            else:
                parts = self._parts(equation, rows, count, new)
                parts = parts._replace(rows=numbered_results(equation, operands, count, parts.rows))
        elif equation.primitive.name == "iota" and (number_of := numbers_of(equation, count, new)):
            array, own = number_of
            return [Own(self.expressions.constant(array), own)]
        elif any(rows) or any(x is not None for x in new):
            parts = self._parts(equation, rows, count, new)
        made = self.expressions.applied(
            equation, parts.params, [x.expression for x in operands], parts.shapes
        )
        return [Own(*each) for each in zip(made, parts.rows, strict=True)]

    def _parts(
        self, equation: Equation, rows: Sequence[Rows | None], count: int,
        new: Sequence[int | None],
    ) -> Parts:  # fmt: skip
        name = equation.primitive.name
        if equation.primitive.fixed_layout is not None:
            shapes = [part_shape(v.type.shape, rows[0], count) for v in equation.results]
            return Parts(equation.params, shapes, [rows[0]])
        dimensions = dimensions_of(equation)
        if dimensions is None or isinstance(dimensions, Function):
            raise RefusedError(f"What the op {name!r} does with rows is not known.")
        return parts_of(equation, dimensions, rows, count, new)


_NUMBER = "how many rows there are"
_COUNTED = f"The program depends on {_NUMBER}."


def _are_alike(one: Equation, other: Equation) -> bool:
    """Tells whether ops are the same one, on as many operands."""
    counts = [(len(e.operands), len(e.results)) for e in (one, other)]
    return one.primitive is other.primitive and counts[0] == counts[1]


def _pairs(equations: Equations, what: str) -> list[tuple[Var, Var]]:
    return list(zip(*(getattr(e, what) for e in equations), strict=False))


def _new_rows(pair: tuple[Var, Var]) -> int | None:
    """Returns the first dimension in which a value is larger for more rows."""
    shapes: list[Shape] = [v.type.shape for v in pair]
    places = (d for d, (m, n) in enumerate(zip(*shapes, strict=False)) if m != n)
    return next(places, None)


def _located(states: Sequence[State], equation: Equation) -> list[State]:
    """Returns states with this op as the reason of those `Mixed` ones that name no op."""
    return [
        Mixed(x.reason, equation) if isinstance(x, Mixed) and x.equation is None else x
        for x in states
    ]

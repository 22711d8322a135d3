"""Functions with custom rules that capture traced values.

Such values do not outlive their trace, but a rule runs later, if ever. So the captures of function
and rule become operands of the call. When the rule runs, these operands replace the values.
Derivatives with respect to captures of the function itself are refused. A backward rule runs when
its residuals are known: its captures become residuals.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import FunctionType, MethodType, ModuleType
from typing import NamedTuple

from axir._trees import tree
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import Array
from axir.dialect.core.state import standing_in
from axir.dialect.core.symbolic_zeros import Marks, Zero, chosen, inexact, spread
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.custom_rules.bodies import closed_over_error, inexact_only
from axir.dialect.ops.custom_rules.custom_lin import Backward
from axir.dialect.ops.custom_rules.custom_vjp import Rules
from axir.dialect.ops.custom_rules.rules import Rule
from axir.dialect.ops.elementwise.family import instantiate
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.rules import Cotangent, Value
from axir.dialect.program.tracer import Tracer, stand_in, state

from ._calls import Applying, CustomFunction, Recorded

# Limit of the search for traced values; rules hold only a few objects.
_SEARCHED = 1000


def closed_over(
    function: Function, rule: Callable[..., object], operands: Sequence[Value]
) -> list[Tracer]:
    """Returns the traced values captured by a traced function, or possibly used by its rule.

    The rule has not been traced: closure, bound arguments, defaults and attributes are looked at.
    Values of traces inside the call's traces are left out: the rule does not use them there.

    Args:
        function: The function.
        rule: Its rule.
        operands: The operands of its call.
    """
    captured = [x for x in function.captured if type(x) is Tracer]
    owners = [x.owner for x in (*captured, *operands) if type(x) is Tracer]
    traces = owners if state.ambient is None else [*owners, state.ambient]
    level = max((trace.level for trace in traces), default=0)
    held = [x for x in _tracers_behind(rule) if _is_usable(x, level)]
    return list({id(x): x for x in (*captured, *held)}.values())


def _is_usable(tracer: Tracer, level: int) -> bool:
    is_usable = tracer.owner.is_open and tracer.owner.level <= level
    return is_usable or tracer in state.stand_ins


def _tracers_behind(rule: Callable[..., object]) -> Iterator[Tracer]:
    seen: set[int] = set()
    waiting: list[UserObject] = [rule]
    while waiting and len(seen) < _SEARCHED:
        held = waiting.pop()
        if type(held) is Tracer:
            yield held
        elif id(held) not in seen:
            seen.add(id(held))
            waiting.extend(_held(held))


def _held(value: object) -> Iterator[object]:
    """Yields the objects held by a function, a container or an object."""
    if isinstance(value, (type, ModuleType, Array, Function)):
        return
    if isinstance(value, CustomFunction):
        yield from (value.fun, *(getattr(value, name) for name in value.rules))
    elif isinstance(value, MethodType):
        yield value.__func__
        yield value.__self__
    elif isinstance(value, functools.partial):
        yield value.func
        yield from value.args
        yield from value.keywords.values()
    elif isinstance(value, (list, tuple, dict)):
        yield from tree.leaves(value)
    else:
        if isinstance(value, FunctionType):
            yield from _held_by_function(value)
        yield from getattr(value, "__dict__", {}).values()


def _held_by_function(function: FunctionType) -> Iterator[object]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # nothing was assigned to the variable yet
            continue
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()


class Enclosed(NamedTuple):
    """A call with the captures of function and rule as operands.

    Attributes:
        function: The function of all operands.
        rules: Its rule(s), of all operands.
        values: The values closed over.
    """

    function: Function
    rules: UserObject
    values: list[Tracer]

    def all_operands(self, operands: Sequence[Value]) -> list[Value]:
        """Returns operands of the call with those values behind them."""
        return [*operands, *(stand_in(x) if x in state.stand_ins else x for x in self.values)]


def enclosed_call(
    applying: Applying,
    operands: Sequence[Value],
    found: Recorded,
    asked: Callable[..., object],
    enclose: Callable[[Function, UserObject, Operands, str], Enclosed],
) -> Enclosed | None:
    """Returns a call with the captures of function and rule as operands; None without captures.

    A rule that calls its own function gets the same rule again.

    Args:
        applying: The call.
        operands: Its operands.
        found: Its traced form.
        asked: The rule that may run when traces have ended.
        enclose: `enclosed` or `enclosed_pair`.
    """
    key, enclosing = applying.call.key, applying.custom.enclosing
    known = enclosing.get(key)
    if known is not None:
        return known
    values = closed_over(found.function, asked, operands)
    if not values:
        return None
    further = Operands(found.function, values, lambda: _running(enclosing, key, made))
    made = enclose(found.function, found.rules, further, applying.call.name)
    return made


@contextmanager
def _running(enclosing: dict[Hashable, object], key: Hashable, call: Enclosed) -> Iterator[None]:
    before = enclosing.get(key)
    enclosing[key] = call
    try:
        yield
    finally:
        enclosing[key] = before


class Operands:
    """The operands of a call: the call's operands, then the captures of function and rule.

    Args:
        function: The computed function.
        values: The values closed over.
        running: Tells that a rule of the call runs.

    Attributes:
        count: The number of the call's operands without captures.
        values: The values closed over.
        types: Types of all of these.
    """

    def __init__(
        self,
        function: Function,
        values: list[Tracer],
        running: Callable[[], AbstractContextManager[None]],
    ):
        self._position = {id(x): index for index, x in enumerate(values)}
        captured = {id(x) for x in function.captured}
        self._used = [id(x) in captured for x in values]
        self._running = running
        self.count = len(function.inputs)
        self.values = values
        self.types: list[ShapedArray] = [*function.input_types, *(x.type for x in values)]

    def closed(self, function: Function, kind: str) -> Function:
        """Returns a function as one of all operands."""

        def apply(*operands: Value) -> list[Value]:
            return self._interpret(function, operands[: self.count], operands[self.count :])

        return trace_function(apply, self.types, name=function.name, kind=kind)

    def run_rule(
        self, trace: Callable[[], Function], operands: Sequence[Value], *more: Value
    ) -> list[Value]:
        """Runs a rule, which takes `more`, with operands in place of its captures."""
        given = operands[self.count :]
        with self._running(), standing_in(dict(zip(self.values, given, strict=True))):
            return self._interpret(trace(), [*operands[: self.count], *more], given)

    def depends_on(self, active: Marks) -> bool:
        """Tells whether the function closes over an active operand; its rule may."""
        return any(chosen(self._used, active[self.count :]))

    def _interpret(
        self, function: Function, arguments: Sequence[Value], given: Sequence[Value]
    ) -> list[Value]:
        captured = []
        for x in function.captured:
            index = self._position.get(id(x))
            captured.append(x if index is None else given[index])
        return function.interpret([*arguments, *captured])


def enclosed(function: Function, rule: Rule, operands: Operands, name: str) -> Enclosed:
    """Returns a function and its rule with traced values as further inputs.

    Args:
        function: The computed function.
        rule: Its forward-mode rule.
        operands: The operands of both new functions.
        name: Name of the function.
    """
    count, types = operands.count, operands.types

    @functools.cache
    def traced(own: Marks) -> Function:
        def apply(*values: Value) -> list[Value]:
            trace = functools.partial(rule.traced_anew, own)
            return operands.run_rule(trace, values[: len(types)], *values[len(types) :])

        taken = [*types, *chosen(types[:count], own)]
        return trace_function(apply, taken, name=rule.name, kind="Jvp")

    closed = operands.closed(function, "Jvp")

    def make(active: Marks) -> Function:
        if operands.depends_on(active):
            raise closed_over_error("custom_jvp", name)
        own = rule.key_of(active[:count])
        inner = traced(own) if any(active[:count]) else None

        def apply(*values: Value) -> list[Value]:
            if inner is None:
                return _without_tangents(closed, values[: len(types)])
            tangents = spread(values[len(types) :], active, types)[:count]
            moved = map(instantiate, chosen(tangents, own))
            return inner.interpret([*values[: len(types)], *moved, *inner.captured])

        return trace_function(apply, [*types, *chosen(types, active)], name=rule.name, kind="Jvp")

    return Enclosed(closed, Rule(rule.name, make, inexact(types), True), operands.values)


def _without_tangents(function: Function, values: Sequence[Value]) -> list[Value]:
    """Returns the results of a function, and zeros as their tangents: nothing asks its rule."""
    outs = function.evaluate(*values)
    marks = inexact([x.type for x in outs])
    return [*outs, *(instantiate(Zero.from_primal_value(x)) for x in chosen(outs, marks))]


def enclosed_pair(function: Function, rules: Rules, operands: Operands, name: str) -> Enclosed:
    """Returns a function and its pair of rules with traced values as further inputs.

    Args:
        function: The computed function.
        rules: Its rules; the forward rule may capture traced values.
        operands: The operands of the returned functions.
        name: Name of the function.
    """
    count, types = operands.count, operands.types
    further = inexact_only(types[count:])

    @functools.cache
    def traced(own: Marks) -> tuple[Function, Backward]:
        backward: list[Backward] = []

        def trace() -> Function:
            forward, inner = rules.traced_anew(own)
            backward.append(inner)
            return forward

        def apply(*values: Value) -> list[Value]:
            return operands.run_rule(trace, values)

        return trace_function(apply, types, name=rules.fwd.name, kind="Vjp"), backward[0]

    def make(active: Marks) -> tuple[Function, Backward]:
        forward, inner = traced(rules.fwd.key_of(active[:count]))
        if operands.depends_on(active):
            raise closed_over_error("custom_vjp", name)

        def apply(residuals: Sequence[Value], cotangents: Sequence[Cotangent]) -> list[UserObject]:
            return [*inner(residuals, cotangents), *(Zero(t.to_tangent_aval()) for t in further)]

        argument_types = [*inner.argument_types, *further]
        return forward, Backward(
            inner.name,
            apply,
            inner.residual_types,
            inner.result_types,
            argument_types,
            inner.is_specialized,
        )

    active = (*rules.fwd.everything, *(False for _ in types[count:]))
    pair = Rules(rules.fwd.name, rules.name, make, active, True)
    return Enclosed(operands.closed(function, "Vjp"), pair, operands.values)

"""Functions whose rules close over traced values.

Such values do not outlive their trace, but a rule may run later. So the rule is traced at once,
and what function and rule close over become operands of the call; derivatives with respect to them
are refused. A backward rule runs when its residuals are known, and is not traced here: what it
needs are residuals.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from types import FunctionType, MethodType

from axir._trees import tree
from axir.dialect.core.annotations import UserFunction, UserObject
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
from axir.dialect.program.tracer import Tracer


def holds_tracers(function: Function, rule: UserFunction | None) -> bool:
    """Tells whether a traced function, or a rule for it, closes over traced values.

    Of a rule, which has not been traced, closure, bound arguments and defaults are looked at.
    """
    is_held = any(type(x) is Tracer for x in function.captured)
    return is_held or (rule is not None and _closes_over_tracers(rule))


def _closes_over_tracers(fun: UserFunction) -> bool:
    seen: set[int] = set()
    waiting: list[UserObject] = [fun]
    while waiting:
        held = waiting.pop()
        if type(held) is Tracer:
            return True
        if id(held) in seen:
            continue
        seen.add(id(held))
        waiting.extend(_held(held))
    return False


def _held(value: UserObject) -> Iterator[UserObject]:
    """Yields what a function or a container holds."""
    if isinstance(value, FunctionType):
        for cell in value.__closure__ or ():
            try:
                yield cell.cell_contents
            except ValueError:  # nothing was assigned to the variable yet
                continue
        yield from value.__defaults__ or ()
        yield from (value.__kwdefaults__ or {}).values()
    elif isinstance(value, MethodType):
        yield value.__func__
        yield value.__self__
    elif isinstance(value, functools.partial):
        yield value.func
        yield from value.args
        yield from value.keywords.values()
    elif isinstance(value, (list, tuple, dict)):
        yield from tree.leaves(value)


class _Operands:
    """The operands of a call with values that function and rule close over after its own.

    Args:
        function: What is computed.
        rule: The rule that is traced.

    Attributes:
        count: How many operands the call has of its own.
        values: The values closed over.
        types: Types of all of these.
    """

    def __init__(self, function: Function, rule: Function):
        found = {id(x): x for x in (*function.captured, *rule.captured) if type(x) is Tracer}
        self._position = {key: index for index, key in enumerate(found)}
        self.count = len(function.inputs)
        self.values: list[Value] = list(found.values())
        self.types: list[ShapedArray] = [*function.input_types, *(x.type for x in self.values)]

    def run(self, function: Function, operands: Sequence[Value], *more: Value) -> list[Value]:
        """Runs a function, or a rule that takes `more`, on operands of the call."""
        given, position = operands[self.count :], self._position
        captured = [given[position[id(x)]] if id(x) in position else x for x in function.captured]
        return function.interpret([*operands[: self.count], *more, *captured])

    def closed(self, function: Function, kind: str) -> Function:
        """Returns a function as one of all operands."""
        return trace_function(
            lambda *operands: self.run(function, operands),
            self.types,
            name=function.name,
            kind=kind,
        )


def enclosed(function: Function, rule: Rule, name: str) -> tuple[Function, Rule, list[Value]]:
    """Returns a function and its rule with traced values as further inputs, and those values.

    Args:
        function: What is computed.
        rule: Its forward-mode rule.
        name: What the user calls the function.
    """
    rule_function = rule.function
    operands = _Operands(function, rule_function)
    count, types = operands.count, operands.types

    def make(active: Marks) -> Function:
        if any(active[count:]):
            raise closed_over_error("custom_jvp", name)

        def apply(*values: Value) -> list[Value]:
            tangents = spread(values[len(types) :], active, types)[:count]
            moved = map(instantiate, chosen(tangents, inexact(types[:count])))
            return operands.run(rule_function, values[: len(types)], *moved)

        return trace_function(apply, [*types, *chosen(types, active)], name=rule.name, kind="Jvp")

    closed = operands.closed(function, "Jvp")
    return closed, Rule(rule.name, make, inexact(types), True), operands.values


def enclosed_pair(
    function: Function, rules: Rules, name: str
) -> tuple[Function, Rules, list[Value]]:
    """Returns a function and its pair of rules with traced values as further inputs, and those.

    Args:
        function: What is computed.
        rules: Its rules, of which the forward rule may close over traced values.
        name: What the user calls the function.
    """
    everything = rules.fwd.everything
    rule_function, inner = rules.fwd.function, rules.backward_for(everything)
    operands = _Operands(function, rule_function)
    count, types = operands.count, operands.types
    further = inexact_only(types[count:])

    def trace(active: Marks) -> tuple[Function, Backward]:
        if any(active[count:]):
            raise closed_over_error("custom_vjp", name)
        forward = operands.closed(rule_function, "Vjp")

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

    active = (*everything, *(False for _ in types[count:]))
    pair = Rules(rules.fwd.name, rules.name, trace, active, True)
    return operands.closed(function, "Vjp"), pair, operands.values

"""Functions with a forward-mode rule that close over traced values.

Such values do not outlive their trace, but the rule may run later. So the rule is traced at once,
and what function and rule close over become operands of the call; derivatives with respect to them
are refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from axir.arguments import Value
from axir.dialect.function import Function
from axir.dialect.ops.custom_rules.bodies import closed_over_error, inexact
from axir.dialect.ops.custom_rules.rules import Rule
from axir.dialect.ops.family import instantiate
from axir.dialect.symbolic import Zero
from axir.dialect.trace import trace_function
from axir.dialect.tracer import Tracer


def enclosed(function: Function, rule: Rule, name: str) -> tuple[Function, Rule, list[Value]]:
    """Returns a function and its rule with traced values as further inputs, and those values.

    Args:
        function: What is computed; it captured traced values.
        rule: Its forward-mode rule.
        name: What the user calls the function.
    """
    rule_function = rule.function
    values: dict[int, Value] = {
        id(x): x
        for x in (*function.captured, *rule_function.captured)
        if type(x) is Tracer
    }
    position = {key: index for index, key in enumerate(values)}
    count = len(function.inputs)
    types = [*function.input_types, *(x.type for x in values.values())]

    def captured(of: Function, given: Sequence[Value]) -> list[Value]:
        return [given[position[id(x)]] if id(x) in position else x for x in of.captured]

    def call(*operands: Value) -> list[Value]:
        return function.interpret([*operands[:count], *captured(function, operands[count:])])

    def make(active: tuple[bool, ...]) -> Function:
        if any(active[count:]):
            raise closed_over_error("custom_jvp", name)

        def apply(*operands: Value) -> list[Value]:
            moving = iter(operands[len(types) :])
            tangents = [
                next(moving) if is_active else instantiate(Zero(t))
                for t, is_active, has in zip(types[:count], active, inexact(types), strict=False)
                if has
            ]
            given = operands[count : len(types)]
            return rule_function.interpret(
                [*operands[:count], *tangents, *captured(rule_function, given)]
            )

        moving_types = [t for t, is_active in zip(types, active, strict=True) if is_active]
        return trace_function(apply, [*types, *moving_types], name=rule.name, kind="Jvp")

    closed = trace_function(call, types, name=function.name, kind="Jvp")
    return closed, Rule(rule.name, make, tuple(inexact(types)), True), list(values.values())

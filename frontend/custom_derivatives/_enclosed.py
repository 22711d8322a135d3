"""Functions with a forward-mode rule that close over traced values.

Such values do not outlive their trace, but the rule may run later. So the rule is traced at once,
and what function and rule close over become operands of the call; derivatives with respect to them
are refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from axir.dialect.core.symbolic_zeros import Marks, chosen, inexact, spread
from axir.dialect.ops.custom_rules.bodies import closed_over_error
from axir.dialect.ops.custom_rules.rules import Rule
from axir.dialect.ops.elementwise.family import instantiate
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Tracer


def enclosed(function: Function, rule: Rule, name: str) -> tuple[Function, Rule, list[Value]]:
    """Returns a function and its rule with traced values as further inputs, and those values.

    Args:
        function: What is computed; it captured traced values.
        rule: Its forward-mode rule.
        name: What the user calls the function.
    """
    rule_function = rule.function
    values: dict[int, Value] = {
        id(x): x for x in (*function.captured, *rule_function.captured) if type(x) is Tracer
    }
    position = {key: index for index, key in enumerate(values)}
    count = len(function.inputs)
    types = [*function.input_types, *(x.type for x in values.values())]

    def captured(of: Function, given: Sequence[Value]) -> list[Value]:
        return [given[position[id(x)]] if id(x) in position else x for x in of.captured]

    def call(*operands: Value) -> list[Value]:
        return function.interpret([*operands[:count], *captured(function, operands[count:])])

    def make(active: Marks) -> Function:
        if any(active[count:]):
            raise closed_over_error("custom_jvp", name)

        def apply(*operands: Value) -> list[Value]:
            tangents = spread(operands[len(types) :], active, types)[:count]
            moved = map(instantiate, chosen(tangents, inexact(types[:count])))
            given = captured(rule_function, operands[count : len(types)])
            return rule_function.interpret([*operands[:count], *moved, *given])

        return trace_function(apply, [*types, *chosen(types, active)], name=rule.name, kind="Jvp")

    closed = trace_function(call, types, name=function.name, kind="Jvp")
    return closed, Rule(rule.name, make, inexact(types), True), list(values.values())

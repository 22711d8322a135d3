"""Lowering rules of primitives to StableHLO.

`register_lowering(p, rule)` with `rule(context, *values, **params)`, which writes StableHLO with
the typed builder `hlo` and returns the result value(s); `context.avals_in` and `context.avals_out`
are the types.

>>> from axir import core
>>> from axir.interpreters import mlir
>>> fused = core.Primitive("fused_multiply_add")
>>> mlir.register_lowering(
...     fused, lambda context, x, y, z: mlir.hlo.add(mlir.hlo.multiply(x, y), z))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from axir.dialect import stablehlo as hlo
from axir.dialect.errors import MissingRuleError
from axir.dialect.primitive import Primitive
from axir.dialect.trace import trace_function
from axir.dialect.types import ShapedArray
from axir.passes.lower_to_stablehlo import LoweringContext

__all__ = ["LoweringContext", "aval_to_ir_type", "hlo", "lower_fun", "register_lowering"]

Rule = Callable[..., Any]


def register_lowering(primitive: Primitive, rule: Rule, platform: str | None = None) -> None:
    """Defines how a primitive becomes StableHLO.

    Args:
        primitive: Whose rule to define.
        rule: `(context, *values, **params) -> value(s)`.
        platform: `cpu`, `vulkan` or `cuda`: the rule then serves that platform only, before one
            for all platforms.
    """
    if platform is None and not isinstance(primitive.lower, _PlatformRules):
        primitive.lower = rule
        return
    rules = primitive.lower
    if not isinstance(rules, _PlatformRules):
        rules = _PlatformRules(primitive.lower)
        primitive.lower = rules
    rules.table[platform] = rule


class _PlatformRules:
    """Chooses among lowering rules by platform."""

    def __init__(self, default: Rule | None):
        self.table: dict[str | None, Rule] = {} if default is None else {None: default}

    def __call__(self, context: LoweringContext, *values: Any, **params: Any) -> Any:
        rule = self.table.get(context.platform) or self.table.get(None)
        if rule is None:
            raise MissingRuleError(
                f"MLIR translation rule for primitive '{context.primitive.name}' not found for "
                f"platform {context.platform}",
                "Define it with mlir.register_lowering(primitive, rule).",
            )
        return rule(context, *values, **params)


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> Rule:
    """Returns a lowering rule that traces a function of values and lowers its ops."""

    def rule(context: LoweringContext, *values: Any, **params: Any) -> list[Any]:
        def flat(*operands: Any) -> list[Any]:
            result = fun(*operands, **params)
            return list(result) if multiple_results else [result]

        function = trace_function(flat, context.types_in, name=context.primitive.name)
        constants = [hlo.constant(x.host()) for x in function.captured]
        return context.inline(function, *values, *constants)

    return rule


def aval_to_ir_type(aval: ShapedArray) -> Any:
    """Returns the MLIR tensor type of a type."""
    return aval.mlir

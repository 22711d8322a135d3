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

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.annotations import Param, UserFunction, UserObject
from axir.dialect.core.array import as_array
from axir.dialect.core.errors import MissingRuleError
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import LoweringContext, LowerRule

__all__ = ["LoweringContext", "aval_to_ir_type", "hlo", "lower_fun", "register_lowering"]

Rule = UserFunction


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
    known = primitive.lower
    rules = known if isinstance(known, _PlatformRules) else _PlatformRules(known)
    primitive.lower = rules
    rules.table[platform] = rule


class _PlatformRules:
    """Chooses among lowering rules by platform."""

    def __init__(self, default: LowerRule | None):
        self.table: dict[str | None, LowerRule] = {} if default is None else {None: default}

    def __call__(
        self, context: LoweringContext, *values: UserObject, **params: Param
    ) -> UserObject:
        rule = self.table.get(context.platform) or self.table.get(None)
        if rule is None:
            raise MissingRuleError(
                f"MLIR translation rule for primitive '{context.primitive.name}' not found for "
                f"platform {context.platform}",
                "Define it with mlir.register_lowering(primitive, rule).",
            )
        return rule(context, *values, **params)


def lower_fun(fun: UserFunction, multiple_results: bool = True) -> Rule:
    """Returns a lowering rule that traces a function of values and lowers its ops."""

    def rule(context: LoweringContext, *values: UserObject, **params: Param) -> list[UserObject]:
        def flat(*operands: UserObject) -> list[UserObject]:
            result = fun(*operands, **params)
            return list(result) if multiple_results else [result]

        function = trace_function(flat, context.types_in, name=context.primitive.name)
        constants = [hlo.constant(as_array(x).host()) for x in function.captured]
        return context.inline(function, *values, *constants)

    return rule


def aval_to_ir_type(aval: ShapedArray) -> UserObject:
    """Returns the MLIR tensor type of a type."""
    return aval.mlir

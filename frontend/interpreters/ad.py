"""Differentiation rules of primitives.

`primitive_jvps[p] = rule` with `rule(primals, tangents, **params) -> (out, tangent)`, where
tangents may be `Zero`; `primitive_transposes[p] = rule` with `rule(cotangent, *operands, **params)`
giving a cotangent or None for each operand, where linear operands are `UndefinedPrimal`.
"""

from __future__ import annotations

from collections.abc import Callable

from axir._trees.registration import register_pytree_node
from axir.dialect.core.annotations import Param, PyTree, UserFunction, UserObject
from axir.dialect.core.dtypes import float0, is_inexact
from axir.dialect.core.errors import MissingRuleError
from axir.dialect.core.symbolic_zeros import UndefinedPrimal, Zero, is_undefined_primal
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.family import add_tangents, as_value, instantiate
from axir.dialect.program.op_table import OPS
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.tracer import Tracer
from axir.passes.transforms.tangent_walk import differentiate

from .batching import Rule, RuleTable

__all__ = [
    "JVPTracer", "UndefinedPrimal", "Zero", "add_jaxvals", "add_jaxvals_p", "add_tangents",
    "defbilinear", "defjvp", "defjvp2", "deflinear", "deflinear2", "get_primitive_transpose",
    "instantiate_zeros", "is_undefined_primal", "primitive_jvps", "primitive_transposes", "zero",
    "zeros_like_aval",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


def _value_and_jvp(primitive: Primitive) -> Rule | None:
    if primitive.jvp is None:
        return None
    return lambda primals, tangents, **params: differentiate(primitive, primals, tangents, params)


# Rules return known zeros, also from functions that `vmap` maps: they are containers of nothing.
register_pytree_node(Zero, lambda x: ((), x.aval), lambda aval, _: Zero(aval))
register_pytree_node(UndefinedPrimal, lambda x: ((), x.aval), lambda aval, _: UndefinedPrimal(aval))


primitive_jvps = RuleTable("value_and_jvp", _value_and_jvp)
primitive_transposes = RuleTable("transpose")

instantiate_zeros = instantiate
add_jaxvals_p = OPS["add"]

# Rules of early 2020 ask whether a tangent is this very object, and compute with all others. Today
# known zeros are separate objects, and become arrays where rules compute with them.
zero = Zero(ShapedArray((), float0))


class _JvpTracers(type):
    """Tells which tracers `jvp` differentiates in: there is one class of tracers for all."""

    def __instancecheck__(cls, instance: object) -> bool:
        if type(instance) is not Tracer:
            return False
        return instance.owner.kind == "Jvp" and is_inexact(instance.type.dtype)


class JVPTracer(metaclass=_JvpTracers):
    """The tracers with which `jvp` calls a function, and the tracers of results.

    >>> import axir
    >>> axir.jvp(lambda x: x * isinstance(x, JVPTracer), (2.0,), (1.0,))[0]
    Array(2., dtype=float32, weak_type=True)
    """


def add_jaxvals(x: UserObject, y: UserObject) -> UserObject:
    """Returns the sum of two tangents or cotangents; each may be `Zero`."""
    return add_tangents(x, y)


def zeros_like_aval(aval: ShapedArray) -> UserObject:
    """Returns an array of zeros of a type."""
    return instantiate(Zero(aval))


def defjvp(primitive: Primitive, *rules: UserFunction | None) -> None:
    """Defines the tangent as a sum over operands.

    Args:
        primitive: Whose rule to define.
        *rules: For each operand `(tangent, *primals, **params) -> tangent of the result`, or None
            if the result does not depend on it smoothly.
    """

    def value_and_jvp(primals: PyTree, tangents: PyTree, **params: Param) -> tuple[object, object]:
        out = primitive.bind(*primals, **params)
        total: UserObject = Zero.from_primal_value(as_value(out))
        for rule, tangent in zip(rules, tangents, strict=True):
            if rule is not None and type(tangent) is not Zero:
                total = add_tangents(total, rule(tangent, *primals, **params))
        return out, total

    primitive_jvps[primitive] = value_and_jvp


def defjvp2(primitive: Primitive, *rules: UserFunction | None) -> None:
    """Defines the tangent as a sum over operands, by rules that also take the result.

    Args:
        primitive: Whose rule to define.
        *rules: For each operand `(tangent, result, *primals, **params) -> tangent of the result`,
            or None if the result does not depend on it smoothly.
    """

    def value_and_jvp(primals: PyTree, tangents: PyTree, **params: Param) -> tuple[object, object]:
        out = primitive.bind(*primals, **params)
        total: UserObject = Zero.from_primal_value(as_value(out))
        for rule, tangent in zip(rules, tangents, strict=True):
            if rule is not None and type(tangent) is not Zero:
                total = add_tangents(total, rule(tangent, out, *primals, **params))
        return out, total

    primitive_jvps[primitive] = value_and_jvp


def defbilinear(
    prim: Primitive, lhs_rule: Callable[..., object], rhs_rule: Callable[..., object]
) -> None:
    """Declares a primitive of two operands linear in each of them.

    Args:
        prim: Whose rules to define.
        lhs_rule: `(cotangent, lhs, rhs, **params) -> cotangent of lhs`, which is undefined.
        rhs_rule: The same for rhs.

    >>> import axir
    >>> from axir import core
    >>> times = core.Primitive("times")
    >>> _ = times.def_impl(lambda x, y: x * y)
    >>> _ = times.def_abstract_eval(lambda x, y: core.ShapedArray(x.shape, x.dtype))
    >>> defbilinear(
    ...     times, lambda ct, x, y: times.bind(ct, y), lambda ct, x, y: times.bind(x, ct))
    >>> float(axir.grad(times.bind, argnums=1)(3.0, 2.0))
    3.0
    """

    def by_lhs(tangent: UserObject, lhs: object, rhs: UserObject, **params: object) -> object:
        return prim.bind(tangent, rhs, **params)

    def by_rhs(tangent: UserObject, lhs: UserObject, rhs: object, **params: object) -> object:
        return prim.bind(lhs, tangent, **params)

    def transpose(
        cotangent: object, lhs: object, rhs: object, **params: object
    ) -> list[UserObject]:
        if is_undefined_primal(lhs):
            return [lhs_rule(cotangent, lhs, rhs, **params), None]
        return [None, rhs_rule(cotangent, lhs, rhs, **params)]

    defjvp(prim, by_lhs, by_rhs)
    primitive_transposes[prim] = transpose


def get_primitive_transpose(p: Primitive) -> Rule:
    """Returns the rule of transposition of a primitive.

    Raises:
        MissingRuleError: if it is missing.
    """
    try:
        return primitive_transposes[p]
    except KeyError:
        raise MissingRuleError(
            f"Transpose rule (for reverse-mode differentiation) for '{p}' not implemented",
            "Set it in axir.interpreters.ad.primitive_transposes.",
        ) from None


def deflinear2(primitive: Primitive, transpose_rule: Callable[..., object]) -> None:
    """Declares a primitive linear in all operands.

    Args:
        primitive: Whose rules to define.
        transpose_rule: `(cotangent, *operands, **params) -> list of cotangents`.
    """

    def value_and_jvp(primals: PyTree, tangents: PyTree, **params: Param) -> tuple[object, object]:
        moving = [instantiate(t) for t in tangents]
        return primitive.bind(*primals, **params), primitive.bind(*moving, **params)

    primitive_jvps[primitive] = value_and_jvp
    primitive_transposes[primitive] = transpose_rule


def deflinear(primitive: Primitive, transpose_rule: Callable[..., object]) -> None:
    """Declares a primitive linear; the rule takes only the cotangent and the parameters."""
    deflinear2(primitive, lambda ct, *operands, **params: transpose_rule(ct, **params))

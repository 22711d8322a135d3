"""User primitives, jaxprs as functions, and the parts for building jaxprs.

`core` and `extend.core` share it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from axir.dialect.core.annotations import Param, Params, UserFunction, UserObject
from axir.dialect.core.errors import MissingRuleError
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.equation import MadeEquation, Var
from axir.dialect.program.jaxpr import ClosedJaxpr
from axir.dialect.program.op_table import OPS, USER_OPS
from axir.dialect.program.primitive import Primitive as _Primitive


class _AllPrimitives(type):
    """Makes every axir primitive an instance; only users' primitives have this class."""

    def __instancecheck__(cls, instance: object) -> bool:
        if cls is Primitive:
            return isinstance(instance, _Primitive)
        return super().__instancecheck__(instance)


class Primitive(_Primitive, metaclass=_AllPrimitives):
    """A user's primitive. Built-in primitives count as instances, too.

    Using an undefined rule raises `NotImplementedError` with the name of the rule. A class derived
    from this one may have its rules as methods: `impl` and `abstract_eval`, which also returns the
    effects, and `multiple_results` as an attribute.

    Args:
        name: Its name in jaxprs and modules.
        multiple_results: Whether `bind` returns a list.

    >>> class Halved(Primitive):
    ...     def impl(self, x):
    ...         return x / 2
    ...     def abstract_eval(self, x):
    ...         return x, set()
    >>> Halved("halved").bind(3.0)
    1.5
    """

    def __init__(self, name: str, multiple_results: bool | None = None):
        own = type(self)
        super().__init__(
            name, own.multiple_results if multiple_results is None else multiple_results
        )
        has_rule = own.impl is not _Primitive.impl
        self.implementation = self.impl if has_rule else self._missing_implementation
        if own.abstract_eval is not _Primitive.abstract_eval:
            self.def_effectful_abstract_eval(self.abstract_eval)
        if name not in OPS:
            USER_OPS[name] = self

    def def_effectful_abstract_eval(self, rule: UserFunction) -> UserFunction:
        """Defines the result type(s) for operand types and parameters, and the effects.

        Args:
            rule: `(*avals, **params) -> (result type(s), effects)`; primitives with effects are not
                left out, repeated or merged.
        """

        def infer(*types: ShapedArray, **params: Param) -> UserObject:
            results, effects = rule(*types, **params)
            self.is_effectful = self.is_effectful or bool(effects)
            return results

        self.def_abstract_eval(infer)
        return rule

    def _missing_implementation(self, *operands: object, **params: object) -> object:
        raise MissingRuleError(
            f"Evaluation rule for '{self.name}' not implemented",
            f"Define it with {self.name}.def_impl(rule).",
        )


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr) -> Callable[..., list[UserObject]]:
    """Returns a jaxpr as a function of flat values, which evaluates or inlines it."""
    return closed_jaxpr.function.evaluate


def new_jaxpr_eqn(
    invars: Sequence[Var],
    outvars: Sequence[Var],
    primitive: _Primitive,
    params: Params,
    effects: object,
    source_info: object = None,
    ctx: object = None,
) -> MadeEquation:
    """Returns an equation `outvars = primitive[params](invars)`, to stand in a `Jaxpr`.

    Args:
        invars: The operands: variables and literals.
        outvars: Variables for the results.
        primitive: The primitive.
        params: Its parameters; functions among them may be jaxprs.
        effects, source_info, ctx: Are ignored: the primitive defines the effects, and the source
            line is the line of the call.

    >>> from axir import core, lax
    >>> fresh = gensym()
    >>> x, y = (fresh(core.ShapedArray((2,), "float32")) for _ in range(2))
    >>> new_jaxpr_eqn([x], [y], lax.neg_p, {}, set())
    <Equation neg of ['float32[2]']>
    """
    return MadeEquation(invars, outvars, primitive, params)


def gensym() -> Callable[[ShapedArray], Var]:
    """Returns a function that makes a new variable of a given type."""
    return Var

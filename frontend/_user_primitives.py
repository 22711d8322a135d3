"""Primitives of users' own, and jaxprs as functions: what `core` and `extend.core` share."""

from __future__ import annotations

from collections.abc import Callable

from axir.dialect.core.annotations import Param, UserObject
from axir.dialect.core.errors import MissingRuleError
from axir.dialect.program.jaxpr import ClosedJaxpr
from axir.dialect.program.op_table import OPS, USER_OPS
from axir.dialect.program.primitive import Primitive as _Primitive


class _AllPrimitives(type):
    """Makes every primitive of axir an instance: a class of their own is for users' alone."""

    def __instancecheck__(cls, instance: UserObject) -> bool:
        return isinstance(instance, _Primitive)


class Primitive(_Primitive, metaclass=_AllPrimitives):
    """A primitive of one's own. All others count as instances, too.

    Until its rules are defined, what needs them raises `NotImplementedError` and names the rule.

    Args:
        name: Its name in jaxprs and modules.
        multiple_results: Whether `bind` returns a list.
    """

    def __init__(self, name: str, multiple_results: bool = False):
        super().__init__(name, multiple_results)
        self.implementation = self._missing_implementation
        if name not in OPS:
            USER_OPS[name] = self

    def _missing_implementation(self, *operands: UserObject, **params: Param) -> UserObject:
        raise MissingRuleError(
            f"Evaluation rule for '{self.name}' not implemented",
            f"Define it with {self.name}.def_impl(rule).",
        )


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr) -> Callable[..., list[UserObject]]:
    """Returns a jaxpr as a function of flat values, which evaluates or inlines it."""
    return closed_jaxpr.function.evaluate

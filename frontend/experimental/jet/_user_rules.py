"""Users' rules: how a primitive computes with series. They take precedence over axir's.

A rule is `(primals, series, **params) -> (result, its series)`, where a series is a list of the
coefficients of a power series, from the first power on, or, in results, `zero_series`. For
primitives with several results, both are lists.
"""

from __future__ import annotations

from collections.abc import Sequence

from axir.dialect.core.annotations import Param, UserFunction, UserObject
from axir.dialect.core.dtypes import is_inexact
from axir.dialect.ops.elementwise.family import as_value, full
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import Value

from ._series import Series

jet_rules: dict[Primitive, UserFunction] = {}
"""Rules by primitive, those that users define."""


def defzero(prim: Primitive) -> None:
    """Declares a primitive constant along curves, but for where it jumps.

    >>> from axir import core
    >>> defzero(core.Primitive("whole_part"))
    """

    def rule(primals: UserObject, series: object, **params: Param) -> UserObject:
        out = prim.bind(*primals, **params)
        return out, [None] * len(out) if prim.multiple_results else None

    jet_rules[prim] = rule


def deflinear(prim: Primitive) -> None:
    """Declares a primitive linear in all its operands together.

    >>> from axir import core
    >>> deflinear(core.Primitive("doubled"))
    """

    def rule(primals: UserObject, series: UserObject, **params: Param) -> UserObject:
        terms = [prim.bind(*each, **params) for each in zip(*series, strict=True)]
        if prim.multiple_results:
            terms = [list(of_one) for of_one in zip(*terms, strict=True)]
        return prim.bind(*primals, **params), terms

    jet_rules[prim] = rule


def apply_user_rule(
    primitive: Primitive, operands: Sequence[Value], series: Sequence[Series], order: int,
    params: Param,
) -> tuple[list[Value], list[Series]]:  # fmt: skip
    """Applies a user's rule to values and series; zero series are passed to it, too."""
    given = [
        [full(x.shape, 0, x.dtype)] * order if terms is None else list(terms)
        for x, terms in zip(operands, series, strict=True)
    ]
    result, found = jet_rules[primitive](list(operands), given, **params)
    outs = list(result) if primitive.multiple_results else [result]
    terms = list(found) if primitive.multiple_results else [found]
    values = [as_value(x) for x in outs]
    return values, [_series_of(x, s) for x, s in zip(values, terms, strict=True)]


def _series_of(x: Value, terms: UserObject) -> Series:
    if terms is None or not is_inexact(x.dtype):
        return None
    return tuple(as_value(t) for t in terms)

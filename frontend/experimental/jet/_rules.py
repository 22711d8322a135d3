"""How ops compute with series: linear ops, products, and functions with recurrences.

A rule takes the primitive, values and series of the operands, the order, and the parameters; it
returns the result and its series. Elsewhere: ops without a rule, which follow from their `jvp`
(`_interpreter.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from axir import lax
from axir.dialect.core.annotations import Param, Params, UserFunction, UserObject
from axir.dialect.core.dtypes import is_inexact
from axir.dialect.ops.elementwise.family import as_value, full
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import Value

from ._series import (
    Polynomial,
    Series,
    by_own_value,
    coefficient,
    exponential,
    integer_power,
    logarithm,
    multiplied,
    quotient,
    sine_and_cosine,
    square_root,
    total,
)

Rule: TypeAlias = Callable[
    [Primitive, list[Value], list[Series], int, Params], tuple[Value, Series]
]

# Linear in all float operands together; others are indices, predicates and the like.
_LINEAR = (
    "add", "sub", "neg", "real", "imag", "conj", "complex", "convert_element_type", "copy",
    "broadcast_in_dim", "reshape", "rev", "slice", "squeeze", "transpose", "concatenate", "stack",
    "tile", "pad", "select_n", "dynamic_slice", "dynamic_update_slice", "reduce_sum",
    "reduce_window_sum", "cumsum", "fft", "scatter_add", "psum", "reduce_precision",
)  # fmt: skip
_BILINEAR = ("mul", "dot_general", "conv_general_dilated")


def _linear(
    primitive: Primitive, operands: list[Value], series: list[Series], order: int, params: Params
) -> tuple[Value, Series]:
    out = primitive.bind(*operands, **params)
    if not is_inexact(out.dtype):
        return out, None

    def at(place: int, k: int) -> Value:
        x, terms = operands[place], series[place]
        if not is_inexact(x.dtype):
            return x
        return full(x.shape, 0, x.dtype) if terms is None else terms[k]

    terms = [
        primitive.bind(*(at(place, k) for place in range(len(operands))), **params)
        for k in range(order)
    ]
    return out, tuple(terms)


def _bilinear(
    primitive: Primitive, operands: list[Value], series: list[Series], order: int, params: Params
) -> tuple[Value, Series]:
    (x, y), (dx, dy) = operands, series

    def product(a: Value, b: Value) -> Value:
        return primitive.bind(a, b, **params)

    out = product(x, y)
    if dx is None or dy is None:
        factors = [(a, y) for a in dx] if dx is not None else [(x, b) for b in dy or ()]
        return out, tuple(product(a, b) for a, b in factors)
    terms = [coefficient((x, *dx), (y, *dy), k, product) for k in range(1, order + 1)]
    return out, tuple(terms)


def _polynomial(x: Value, series: Series, order: int) -> Polynomial:
    if series is None:
        return [x, *([full(x.shape, 0, x.dtype)] * order)]
    return [x, *series]


def _of_one(function: Callable[[Polynomial], Polynomial]) -> Rule:
    """Makes a rule of a function of one polynomial."""

    def rule(
        primitive: Primitive,
        operands: list[Value],
        series: list[Series],
        order: int,
        params: Params,
    ) -> tuple[Value, Series]:
        _, *terms = function(_polynomial(operands[0], series[0], order))
        return primitive.bind(*operands, **params), tuple(terms)

    return rule


def _div(
    primitive: Primitive, operands: list[Value], series: list[Series], order: int, params: Params
) -> tuple[Value, Series]:
    (x, z), (dx, dz) = operands, series
    out = primitive.bind(x, z, **params)
    if dz is None:
        return out, tuple(primitive.bind(c, z, **params) for c in dx or ())
    # Operands of rank 0 are stretched.
    dx = dx or (full(x.shape, 0, x.dtype),) * order
    terms: list[Value] = []
    for k in range(order):
        earlier = [out, *terms]
        known = total([lax.mul(earlier[k - j], dz[j]) for j in range(k + 1)])
        terms.append(lax.div(lax.sub(dx[k], known), z))
    return out, tuple(terms)


def _integer_pow(
    primitive: Primitive, operands: list[Value], series: list[Series], order: int, params: Params
) -> tuple[Value, Series]:
    _, *terms = integer_power(_polynomial(operands[0], series[0], order), params["y"])
    return primitive.bind(*operands, **params), tuple(terms)


def _tanh(x: Polynomial) -> Polynomial:
    def slope(y: Polynomial) -> Value:
        last = coefficient(y, y, len(y) - 1, lax.mul)
        return 1 - last if len(y) == 1 else -last

    return by_own_value(lax.tanh(x[0]), x, slope)


def _logistic(x: Polynomial) -> Polynomial:
    def slope(y: Polynomial) -> Value:
        return y[-1] - coefficient(y, y, len(y) - 1, lax.mul)

    return by_own_value(lax.logistic(x[0]), x, slope)


def _shifted(function: Callable[[Polynomial], Polynomial], shift: float) -> Rule:
    """Makes the rule of a function of one polynomial with a shifted argument."""
    return _of_one(lambda x: function([x[0] + shift, *x[1:]]))


def _sine(place: int, is_hyperbolic: bool) -> Rule:
    return _of_one(lambda x: sine_and_cosine(x, is_hyperbolic)[place])


def _zero(
    primitive: Primitive,
    operands: list[Value],
    series: Sequence[Series],
    order: int,
    params: Params,
) -> tuple[Value, Series]:
    return primitive.bind(*operands, **params), None


RULES: dict[str, Rule] = {
    **dict.fromkeys(_LINEAR, _linear),
    **dict.fromkeys(_BILINEAR, _bilinear),
    **dict.fromkeys(("floor", "ceil", "round", "sign", "stop_gradient"), _zero),
    "div": _div,
    "integer_pow": _integer_pow,
    "square": _of_one(lambda x: multiplied(x, x)),
    "exp": _of_one(exponential),
    "expm1": _of_one(exponential),
    "log": _of_one(logarithm),
    "log1p": _shifted(logarithm, 1.0),
    "sqrt": _of_one(square_root),
    "rsqrt": _of_one(lambda x: quotient([x[0] * 0 + 1, *(c * 0 for c in x[1:])], square_root(x))),
    "sin": _sine(0, False),
    "cos": _sine(1, False),
    "sinh": _sine(0, True),
    "cosh": _sine(1, True),
    "tanh": _of_one(_tanh),
    "logistic": _of_one(_logistic),
}


# Users' rules -------------------------------------------------------------------------------------


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

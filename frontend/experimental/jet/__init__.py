r"""Taylor mode: derivatives of high order along a curve, by arithmetic on truncated power series.

If the first n derivatives of a curve \(x(t)\) are known, `jet` returns the first n derivatives of
\(f(x(t))\). The cost is about n^2 evaluations of f; nested `jvp` takes 2^n.

>>> import axir.numpy as jnp
>>> from axir.experimental.jet import jet
>>> value, (first, second) = jet(jnp.sin, (0.0,), ([1.0, 0.0],))
>>> float(value), float(first), float(second)
(0.0, 1.0, 0.0)

Elsewhere: how ops compute with series (`_rules.py`), and how functions are walked over
(`_interpreter.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial

from axir import lax
from axir import numpy as jnp
from axir._arguments.arguments import (
    FlatFunction,
    check_callable,
    flat_arguments,
    to_value,
    trace_abstract,
)
from axir._trees import tree
from axir.dialect.core.annotations import Param, PyTree, UserFunction, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.dtypes import is_inexact
from axir.dialect.core.errors import ParameterError, ShapeError, TreeError
from axir.dialect.program.function_tracing import function_name
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import Value

from ._interpreter import run
from ._rules import deflinear, defzero, jet_rules
from ._series import Polynomial, Series

__all__ = [
    "def_comp", "def_deriv", "deflinear", "defzero", "fact", "jet", "jet2", "jet_rules",
    "zero_series",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


zero_series = None
"""The series of a value that does not depend on the parameter of the curve."""


def jet(
    fun: Callable[..., object],
    primals: Sequence[ArrayLike],
    series: Sequence[Sequence[ArrayLike]],
    factorial_scaled: bool = True,
    **_: object,
) -> tuple[PyTree, PyTree]:
    """Returns the value of a function on curves, and its derivatives along them.

    Args:
        fun: Function of arrays, of any number of them; returns a tree of arrays.
        primals: Values of its arguments: where the curves are at 0.
        series: For each argument the derivatives of its curve at 0, from the first to the n-th; as
            many for all arguments.
        factorial_scaled: Whether these, and those that are returned, are derivatives; else they are
            coefficients of power series, which are k! times smaller.

    Returns:
        `(value, derivatives)`: a tree of arrays, and that tree with a list of n arrays for each.

    Raises:
        ParameterError: if arguments have different numbers of derivatives, or there are not as many
            series as primals.
        TreeError: if an argument or a derivative is no array.
        ShapeError: if a derivative has another shape than its argument.

    >>> import axir.numpy as jnp
    >>> _, derivatives = jet(lambda x: x**3, (2.0,), ([1.0, 0.0, 0.0],))
    >>> [float(d) for d in derivatives]
    [12.0, 12.0, 6.0]
    """
    check_callable(fun, "jet")
    order = _order(primals, series)
    values, in_tree = flat_arguments(tuple(primals), function_name(fun))
    _check_leaves(primals, series)
    scales = [factorial(k) if factorial_scaled else 1 for k in range(1, order + 1)]
    given = [_coefficients(x, terms, scales) for x, terms in zip(values, series, strict=True)]
    flat = FlatFunction(fun, in_tree)
    function = trace_abstract(flat, [x.type for x in values], "Jet")
    captured = [None] * len(function.captures)
    outs, found = run(function, [*values, *function.captured], [*given, *captured], order)
    terms = [_terms(x, s, scales) for x, s in zip(outs, found, strict=True)]
    return flat.out_tree.unflatten(outs), flat.out_tree.unflatten(terms)


def jet2(
    fun: Callable[..., object], primals: Sequence[ArrayLike], series: Sequence[Sequence[ArrayLike]],
    **options: object,
) -> tuple[PyTree, PyTree]:  # fmt: skip
    """Returns the value of a function on curves, and coefficients of its power series; see `jet`.

    >>> _, coefficients = jet2(lambda x: x**3, (2.0,), ([1.0, 0.0, 0.0],))
    >>> [float(c) for c in coefficients]
    [12.0, 6.0, 1.0]
    """
    return jet(fun, primals, series, factorial_scaled=False, **options)


def def_comp(prim: Primitive, comp: Callable[..., object], **params: object) -> None:
    """Defines how a primitive computes with series by a function that does the same.

    Args:
        prim: The primitive.
        comp: `(*operands, **params) -> result`, of primitives that have rules or derivatives.
        **params: Options of `jet2`.

    >>> from axir import core
    >>> def_comp(core.Primitive("cubed"), lambda x: x * x * x)
    """

    def rule(primals: UserObject, terms: UserObject, **own: object) -> UserObject:
        return jet2(lambda *operands: comp(*operands, **own), primals, terms, **params)

    jet_rules[prim] = rule


def def_deriv(prim: Primitive, deriv: UserFunction) -> None:
    r"""Defines how a primitive of one operand computes with series by its derivative.

    If \(\dot y = f'(x) \dot x\), then \(k y_k = \sum_{j=1}^k j x_j (f'(x))_{k-j}\).

    Args:
        prim: The primitive.
        deriv: From the operand to the derivative, of primitives that have rules or derivatives.

    >>> from axir import core
    >>> def_deriv(core.Primitive("squared"), lambda x: 2 * x)
    """

    def rule(primals: UserObject, terms: UserObject, **own: Param) -> UserObject:
        (series,) = terms
        slope, slopes = jet2(deriv, primals, terms)
        slopes = [slope, *slopes]
        found: Polynomial = [
            sum(j * series[j - 1] * slopes[k - j] for j in range(1, k + 1)) / k
            for k in range(1, len(series) + 1)
        ]
        return prim.bind(*primals, **own), found

    jet_rules[prim] = rule


def fact(n: ArrayLike) -> Value:
    """Returns the factorial of n, as a float.

    >>> fact(3).round(3)
    Array(6., dtype=float32, weak_type=True)
    """
    return lax.exp(lax.lgamma(jnp.asarray(n) + 1.0))


def _order(primals: Sequence[ArrayLike], series: Sequence[Sequence[ArrayLike]]) -> int:
    if len(primals) != len(series):
        raise ParameterError(
            f"jet: {len(primals)} primals were passed, but {len(series)} series.",
            "Pass a list of derivatives for each argument.",
        )
    lengths = {len(terms) for terms in series}
    if len(lengths) != 1:
        raise ParameterError(
            f"jet terms have inconsistent lengths for different arguments: {sorted(lengths)}.",
            "Pass as many derivatives for each argument; zeros where a curve has no more.",
        )
    return lengths.pop()


def _check_leaves(primals: Sequence[ArrayLike], series: Sequence[Sequence[ArrayLike]]) -> None:
    for place, (x, terms) in enumerate(zip(primals, series, strict=True)):
        if not tree.structure(x).is_leaf():
            raise TreeError(
                f"jet: primal value at position {place} is not an array.",
                "Make a function of the leaves: jet takes arrays, each with a list of derivatives.",
            )
        for number, term in enumerate(terms):
            if not tree.structure(term).is_leaf():
                raise TreeError(f"jet: term {number} for argument {place} is not an array.")
            if jnp.shape(term) != jnp.shape(x):
                raise ShapeError(
                    f"jet: term {number} for argument {place} has shape {jnp.shape(term)}, but the "
                    f"argument has {jnp.shape(x)}.",
                    "Derivatives of a curve have the shape of its points.",
                )


def _coefficients(x: Value, terms: Sequence[ArrayLike], scales: Sequence[int]) -> Series:
    if not is_inexact(x.dtype):
        return None
    values = [to_value(t, lambda: "A term of jet").astype(x.dtype) for t in terms]
    return tuple(v / s if s != 1 else v for v, s in zip(values, scales, strict=True))


def _terms(x: Value, series: Series, scales: Sequence[int]) -> list[object]:
    if series is None:
        return [jnp.zeros_like(x) for _ in scales]
    return [c * s if s != 1 else c for c, s in zip(series, scales, strict=True)]

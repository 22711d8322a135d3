"""Polynomials in one variable, 1 - x^2, and the logarithm to the base of two.

Here derivatives have explicit formulas: the derivatives of a polynomial are polynomials again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import axir.numpy as jnp
from axir.custom_derivatives import custom_jvp
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import DTypeError, check_accuracy
from axir.dialect.ops.elementwise.arithmetic import add, mul, sub
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.program.rules import Value

from ._operators import AccuracyMode, Tolerance
from .control_flow import scan

_UNROLLED = 8  # so many terms are written out by default


def log2(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Value:
    """Returns the logarithm to the base of two of floats or complex numbers, elementwise.

    Args:
        x: Array of floats or complex numbers.
        accuracy: Must be None; there is one way to compute it.

    Raises:
        ParameterError: for an accuracy.
        DTypeError: for integers.

    >>> log2(8.0)
    Array(3., dtype=float32, weak_type=True)
    """
    check_accuracy("log2", accuracy)
    value = as_value(x)
    if not dtypes.is_inexact(value.dtype):
        raise DTypeError(
            f"log2 does not accept dtype {value.dtype}.",
            "Convert with astype(float), or use axir.numpy.log2, which does.",
        )
    return convert_element_type(jnp.log2(value), value.dtype, value.type.weak_type)


@custom_jvp
def _one_minus_square(x: Value) -> Value:
    return mul(add(x, 1), sub(1, x))


@_one_minus_square.defjvp
def _one_minus_square_jvp(primals: UserObject, tangents: UserObject) -> tuple[Value, Value]:
    (x,), (tangent,) = primals, tangents
    return _one_minus_square(x), mul(tangent, mul(x, -2))


def one_minus_square(x: ArrayLike) -> Value:
    """Returns 1 - x^2 as (1 + x)(1 - x), which is exact also where |x| is near 1.

    Args:
        x: Array of numbers.

    >>> one_minus_square(0.5)
    Array(0.75, dtype=float32, weak_type=True)
    """
    return _one_minus_square(as_value(x))


def polynomial(x: ArrayLike, coeffs: Sequence[ArrayLike], *, unroll: int | None = None) -> Value:
    """Returns the values of a polynomial, `a[0] + a[1] x + a[2] x^2 + ...`, by Horner's rule.

    Derivatives are polynomials, too: that in x, of one degree less.

    Args:
        x: Where to take the values.
        coeffs: The coefficients, the constant first: numbers, or arrays that broadcast against `x`.
        unroll: Up to how many coefficients the steps are written out, 8 by default; more are
            steps of a loop.

    Returns:
        An array of the shape and dtype of `x` and the coefficients together; zeros if there are
        no coefficients.

    >>> polynomial(3.0, [1.0, 5.0, 2.0])
    Array(34., dtype=float32, weak_type=True)
    """
    values = [as_value(x), *map(as_value, coeffs)]
    dtype = jnp.result_type(*values)
    point, *terms = [v if v.dtype == dtype else v.astype(dtype) for v in values]
    if not terms:
        return jnp.zeros_like(point)
    return _polynomial(_UNROLLED if unroll is None else unroll, point, *terms)


def _horner(unroll: int, x: Value, *terms: Value) -> Value:
    if len(terms) <= max(unroll, 1):
        return reduce(lambda value, term: value * x + term, reversed(terms[:-1]), _last(x, terms))
    shape = jnp.broadcast_shapes(*(v.shape for v in (x, *terms)))
    rest = jnp.stack([jnp.broadcast_to(term, shape) for term in terms[-2::-1]])
    start = jnp.broadcast_to(terms[-1], shape)
    return scan(lambda value, term: (value * x + term, None), start, rest)[0]


def _last(x: Value, terms: Sequence[Value]) -> Value:
    """Returns the coefficient with which Horner's rule begins, whole if it is the only one."""
    last = terms[-1]
    if len(terms) > 1:
        return last
    return jnp.broadcast_to(last, jnp.broadcast_shapes(x.shape, last.shape))


def _rule(unroll: int, primals: UserObject, tangents: UserObject) -> tuple[Value, Value]:
    x, *terms = primals
    slopes = [term * k for k, term in enumerate(terms)][1:]
    moved = _polynomial(unroll, x, *tangents[1:])
    if slopes:
        moved = moved + _polynomial(unroll, x, *slopes) * tangents[0]
    return _polynomial(unroll, x, *terms), moved


_polynomial = custom_jvp(_horner, nondiff_argnums=(0,))
_polynomial.defjvp(_rule)

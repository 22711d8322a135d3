"""Truncated power series, and the recurrences of elementary functions on them.

A polynomial is the list of its coefficients from the 0-th to the n-th. The recurrences follow from
differential equations (Griewank, Walther: Evaluating derivatives, 2008, chapter 13).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from axir import lax
from axir import numpy as jnp
from axir.dialect.core.annotations import UserObject
from axir.dialect.program.rules import Value

Series: TypeAlias = tuple[Value, ...] | None
"""Coefficients of a value from the first to the n-th; None if all are zero."""

Polynomial: TypeAlias = list[Value]
"""Coefficients from the 0-th to the n-th."""

Product: TypeAlias = Callable[[Value, Value], Value]


def coefficient(x: Sequence[Value], y: Sequence[Value], k: int, product: Product) -> Value:
    """Returns the k-th coefficient of the product of two polynomials."""
    return total([product(x[j], y[k - j]) for j in range(k + 1)])


def total(terms: Sequence[Value]) -> Value:
    """Returns the sum of one or more values."""
    result = terms[0]
    for term in terms[1:]:
        result = lax.add(result, term)
    return result


def weighted(x: Polynomial, y: Polynomial, k: int) -> Value:
    """Returns the (k-1)-th coefficient of x'(t) y(t)."""
    return total([(j * x[j]) * y[k - j] for j in range(1, k + 1)])


def quotient(x: Polynomial, z: Polynomial) -> Polynomial:
    """Returns x / z."""
    y = [lax.div(x[0], z[0])]
    for k in range(1, len(x)):
        known = total([z[j] * y[k - j] for j in range(1, k + 1)])
        y.append((x[k] - known) / z[0])
    return y


def exponential(x: Polynomial) -> Polynomial:
    """Returns exp(x), from y' = y x'."""
    y = [lax.exp(x[0])]
    for k in range(1, len(x)):
        y.append(weighted(x, y, k) / k)
    return y


def logarithm(x: Polynomial) -> Polynomial:
    """Returns log(x), from x y' = x'."""
    y = [lax.log(x[0])]
    for k in range(1, len(x)):
        known = [(j * y[j]) * x[k - j] for j in range(1, k)]
        y.append((x[k] - total(known) / k if known else x[k]) / x[0])
    return y


def square_root(x: Polynomial) -> Polynomial:
    """Returns sqrt(x), from y y = x."""
    y = [lax.sqrt(x[0])]
    for k in range(1, len(x)):
        known = [y[j] * y[k - j] for j in range(1, k)]
        y.append((x[k] - total(known) if known else x[k]) / (2 * y[0]))
    return y


def sine_and_cosine(x: Polynomial, is_hyperbolic: bool) -> tuple[Polynomial, Polynomial]:
    """Returns sin(x) and cos(x), or sinh(x) and cosh(x): s' = c x', and c' = -s x' or s x'."""
    first, second = (lax.sinh, lax.cosh) if is_hyperbolic else (lax.sin, lax.cos)
    sines, cosines = [first(x[0])], [second(x[0])]
    for k in range(1, len(x)):
        rate = weighted(x, sines, k) / k
        sines.append(weighted(x, cosines, k) / k)
        cosines.append(rate if is_hyperbolic else -rate)
    return sines, cosines


def by_own_value(
    start: Value,
    x: Polynomial,
    slope: Callable[[Polynomial], UserObject],
) -> Polynomial:
    """Returns y with y' = slope(y) x'.

    Args:
        start: The 0-th coefficient of y.
        x: The argument.
        slope: From the first coefficients of y to the last of as many of the slope.
    """
    y = [start]
    slopes = [slope(y)]
    for k in range(1, len(x)):
        y.append(weighted(x, slopes, k) / k)
        slopes.append(slope(y))
    return y


def integer_power(x: Polynomial, exponent: int) -> Polynomial:
    """Returns a power by repeated multiplication, which is exact at 0 as well."""
    if exponent < 0:
        return quotient(constant_one(x), integer_power(x, -exponent))
    result = constant_one(x)
    while exponent:
        if exponent % 2:
            result = multiplied(result, x)
        exponent //= 2
        if exponent:
            x = multiplied(x, x)
    return result


def constant_one(x: Polynomial) -> Polynomial:
    """Returns 1 as a polynomial of the degree and the type of x."""
    return [jnp.ones_like(x[0]), *(jnp.zeros_like(c) for c in x[1:])]


def multiplied(x: Polynomial, y: Polynomial, product: Product = lax.mul) -> Polynomial:
    """Returns the product of two polynomials."""
    return [coefficient(x, y, k, product) for k in range(len(x))]

"""Bounds of extents that are quotients and remainders of one number: they repeat themselves.

`2*b - floordiv(b, 2)` of b + 2 is its value of b plus three: so its values for two sizes determine
all values. The least and the greatest value are exact, unlike intervals of its parts, because the
parts depend on each other. Elsewhere: other extents (`symbolic_bounds.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from .annotations import Extent
from .symbolic_dims import OPERATIONS, Applied, Product, Terms, terms_of

Bounds = tuple[float, float]
# The largest number of sizes to evaluate.
_MOST_SIZES = 64


def periodic_bounds(terms: Terms, bounds_of: Callable[[Product], Bounds]) -> Bounds | None:
    """Returns the bounds of a polynomial of a single number; None for other polynomials.

    Algorithm:
        1. All names stand in one product n, directly or within quotients and remainders by numbers.
        2. With L the product of these numbers, f(n + L) = f(n) + c, where c is a number.
        3. The least value of f is among the first L sizes if c is not negative, else f is
           unbounded.

    Args:
        terms: The polynomial.
        bounds_of: Returns the bounds of a product of names.
    """
    products = set(_products(terms))
    if len(products) != 1 or None in products or not _has_operations(terms):
        return None
    (product,) = products
    assert product is not None
    low, high = bounds_of(product)
    period = math.prod(_divisors(terms))
    if math.isinf(low) or period > _MOST_SIZES:
        return None
    start = int(low)
    count = int(min(period, high - start + 1))
    values = [_value(terms, start + n) for n in range(count)]
    slope = _value(terms, start + period) - values[0]
    if high - start + 1 <= period:
        slope = 0  # these are all
    return (
        float(min(values)) if slope >= 0 else -math.inf,
        float(max(values)) if slope <= 0 else math.inf,
    )


def _products(terms: Terms) -> Iterator[Product | None]:
    """Yields products of names, and None for terms of another form."""
    for product in terms:
        if len(product) == 1 and isinstance(product[0], Applied):
            operands = product[0].operands
            is_division = product[0].name in ("floordiv", "mod")
            if not is_division or type(operands[1]) is not int or operands[1] < 1:
                yield None
            yield from _products(dict(terms_of(operands[0])))
        elif product:
            yield product if all(isinstance(atom, str) for atom in product) else None


def _has_operations(terms: Terms) -> bool:
    return any(isinstance(atom, Applied) for product in terms for atom in product)


def _divisors(terms: Terms) -> Iterator[int]:
    for product in terms:
        for atom in product:
            if isinstance(atom, Applied):
                dividend, divisor = atom.operands
                yield int(divisor)
                yield from _divisors(dict(terms_of(dividend)))


def _value(terms: Terms, size: int) -> int:
    """Returns the value of a polynomial for a value of its product of names."""
    total = 0
    for product, factor in terms.items():
        if not product:
            total += factor
        elif isinstance(product[0], Applied):
            total += factor * _applied(product[0], size)
        else:
            total += factor * size
    return total


def _applied(atom: Applied, size: int) -> int:
    dividend, divisor = atom.operands
    return OPERATIONS[atom.name](_extent(dividend, size), _extent(divisor, size))


def _extent(extent: Extent, size: int) -> int:
    return _value(dict(terms_of(extent)), size)

"""Quotients, remainders, minima and maxima of symbolic dimensions, simplified.

Simplifications hold for all sizes: terms that divide, common factors, and decisions by bounds.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from axir.dialect.core.annotations import Extent
from axir.dialect.core.symbolic_dims import SymbolicDim, of_terms, symbolic_dim_bounds, terms_of

from .terms import OPERATIONS, Applied, Atom, Product, Scope, SymbolicDimError, Terms, joined_scope

if TYPE_CHECKING:
    pass


def simplified(name: str, a: Extent, b: Extent, scope: Scope | None = None) -> Extent:
    """Returns one of `OPERATIONS` of two extents; as an atom if nothing else is known of it."""
    if name in ("floordiv", "mod") and isinstance(b, int) and b == 0:
        raise SymbolicDimError(f"{name}({a}, 0): a division by zero.", "Divide by another extent.")
    if not isinstance(a, SymbolicDim) and not isinstance(b, SymbolicDim):
        return OPERATIONS[name](int(a), int(b))
    scope = scope or joined_scope(a, b)
    if name in ("max", "min"):
        return _extremum(name, a, b, scope)
    a, b, factor = _cancelled(a, b)
    if factor != 1:
        return simplified(name, a, b, scope) * (1 if name == "floordiv" else factor)
    if isinstance(b, int) and b == 1:
        return a if name == "floordiv" else 0
    quotient, rest = _divided(a, b)
    if isinstance(rest, int) and rest == 0:
        return quotient if name == "floordiv" else 0
    low, high = symbolic_dim_bounds(rest)
    least, _most = symbolic_dim_bounds(b)
    if low >= 0 and (high < least or (least >= 1 and symbolic_dim_bounds(b - rest)[0] >= 1)):
        return quotient if name == "floordiv" else rest
    if high <= -1 and least >= 1 and symbolic_dim_bounds(b + rest)[0] >= 0:
        return quotient - 1 if name == "floordiv" else rest + b
    made = SymbolicDim(terms={(Applied(name, rest, b),): 1}, scope=scope)
    low, high = symbolic_dim_bounds(made)
    if low == high:
        return int(low) + (quotient if name == "floordiv" else 0)
    return quotient + made if name == "floordiv" else made


def _extremum(name: str, a: Extent, b: Extent, scope: Scope | None) -> Extent:
    low, high = symbolic_dim_bounds(a - b)
    if low >= 0:
        return a if name == "max" else b
    if high <= 0:
        return b if name == "max" else a
    a, b = sorted((a, b), key=lambda x: (not isinstance(x, SymbolicDim), str(x)))
    return SymbolicDim(terms={(Applied(name, a, b),): 1}, scope=scope)


def _cancelled(a: Extent, b: Extent) -> tuple[Extent, Extent, Extent]:
    """Returns two extents without their common factor, and the factor, which is not zero."""
    products = [*terms_of(a), *terms_of(b)]
    if not terms_of(a):
        return a, b, 1
    number = math.gcd(*terms_of(a).values(), *terms_of(b).values())
    # Names are sizes of at least 1; other factors of a product may be zero.
    common = [atom for atom in products[0] if isinstance(atom, str)]
    kept: list[Atom] = []
    for atom in dict.fromkeys(common):
        kept += [atom] * min(product.count(atom) for product in products)
    if number == 1 and not kept:
        return a, b, 1
    factor = of_terms({tuple(kept): number}, joined_scope(a, b))
    return _without_factor(a, kept, number), _without_factor(b, kept, number), factor


def _without_factor(extent: Extent, atoms: list[Atom], number: int) -> Extent:
    terms: Terms = {}
    for product, times in terms_of(extent).items():
        shorter = _without(product, tuple(atoms))
        assert shorter is not None
        terms[shorter] = times // number
    return of_terms(terms, getattr(extent, "scope", None))


def _divided(a: Extent, b: Extent) -> tuple[Extent, Extent]:
    """Returns a quotient and a rest, such that a = quotient * b + rest.

    Divides the terms of `a` by the leading term of `b`, which is exact where `b` divides.
    """
    divisor, scope = terms_of(b), joined_scope(a, b)
    leading = max(divisor, key=_degree)
    quotient: Extent = 0
    rest: Terms = {}
    left: Extent = a
    for _ in range(_MOST_STEPS):
        terms = terms_of(left)
        if not terms:
            break
        product = max(terms, key=_degree)
        shorter = _without(product, leading)
        times = terms[product] // divisor[leading]
        if shorter is None or not times or (not product and leading):
            rest[product] = rest.get(product, 0) + terms[product]
            left = left - of_terms({product: terms[product]}, scope)
            continue
        part = of_terms({shorter: times}, scope)
        quotient, left = quotient + part, left - part * b
        kept = terms_of(left).get(product, 0)
        if kept:
            rest[product] = rest.get(product, 0) + kept
            left = left - of_terms({product: kept}, scope)
    remainder = of_terms(rest, scope) + left
    if len(divisor) > 1 and not (isinstance(remainder, int) and remainder == 0):
        return 0, a  # only exact quotients are useful
    return quotient, remainder


_MOST_STEPS = 64


def _degree(product: Product) -> tuple[int, str]:
    return len(product), str(product)


def _without(product: Product, factor: Product) -> Product | None:
    """Returns a product without some factors, or None if it lacks any of them."""
    left = list(product)
    for atom in factor:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)

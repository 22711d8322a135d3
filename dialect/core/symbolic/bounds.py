"""Bounds of symbolic dimensions: the least and the greatest value of an extent, for all sizes.

Every step holds for all sizes that the constraints allow, so decisions by bounds are correct.
Bounds need not be tight: an undecided comparison is an error for the caller.

Extents that are quotients and remainders of one number repeat themselves: `2*b - floordiv(b, 2)` of
b + 2 is its value of b plus three. So its values for two sizes determine all values. The least and
the greatest value of such an extent are exact, unlike intervals of its parts, because the parts
depend on each other.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping

from axir.dialect.core.annotations import Extent
from axir.dialect.core.state import state
from axir.dialect.core.symbolic_dims import SymbolicDim, terms_of

from .terms import OPERATIONS, Applied, Atom, Product, Terms, multiplied

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


# The largest number of replacements of an extent; after that its bounds are unknown.
_MOST_REPLACEMENTS = 12
_ANY: Bounds = (-math.inf, math.inf)


def bounds(extent: SymbolicDim) -> Bounds:
    """Returns the bounds of an extent; infinite where nothing is known.

    Algorithm:
        1. Names that a constraint equates to an extent are replaced by that extent.
        2. A quotient by a number m is replaced by (a - mod(a, m)) / m, the extent times m.
        3. A maximum is bounded from both of its operands, and so is a minimum.
        4. The rest is a polynomial in names and atoms, each in an interval. Each is written as its
           lower end plus a number that is not negative: then the bounds of all terms add up.
        5. Constraints, added with a factor that cancels a term, may give better bounds.
        6. The periods of quotients of a single number may, too (`periodic_bounds`).
    """
    if state.presumed is not None:
        extent = state.presumed(extent)
    return _bounds_of(extent, extent.constraints)


@functools.lru_cache(4096)
def _bounds_of(extent: SymbolicDim, constraints: tuple[str, ...]) -> Bounds:
    facts = _Facts.of(extent)
    low, high = facts.bounds(dict(extent.terms), _MOST_REPLACEMENTS)
    found = periodic_bounds(extent.terms, lambda product: facts._interval({product: 1}))
    if found is not None:
        low, high = max(low, found[0]), min(high, found[1])
    # Of integers.
    return _rounded(low, math.ceil), _rounded(high, math.floor)


def _rounded(x: float, rounding: object) -> float:
    if math.isinf(x):
        return x
    return float(rounding(round(x, 9)))  # type: ignore[operator]


class _Facts:
    """The facts that constraints state.

    Attributes:
        positive: Extents that are not negative.
        replaced: Atoms that are equal to an extent.
        intervals: Bounds of single atoms.
    """

    def __init__(self, positive: list[Terms], replaced: dict[str, Extent]):
        self.positive = positive
        self.replaced = replaced
        self.intervals: dict[str, Bounds] = {}
        # Bounds of operands; the operands in progress; whether one of these was requested again.
        self._known: dict[str, Bounds] = {}
        self._asked: set[str] = set()
        self._is_cut = False
        for terms in positive:
            self._note(terms)

    @staticmethod
    def of(extent: SymbolicDim) -> _Facts:
        """Returns the facts under which an extent stands."""
        if extent.scope is None or not extent.scope.texts:
            return _Facts([], {})
        positive: list[Terms] = []
        replaced: dict[str, Extent] = {}
        for constraint in extent.scope.constraints:
            for difference in constraint.positive:
                positive.append(dict(terms_of(difference)))
            if constraint.is_equality:
                replaced.update(_replacement(constraint.left, constraint.right))
        return _Facts(positive, replaced)

    def _note(self, terms: Terms) -> None:
        """Notes the bound that a constraint with a single atom states."""
        rest = [product for product in terms if product]
        if len(rest) != 1 or len(rest[0]) != 1:
            return
        (atom,), factor = rest[0], terms[rest[0]]
        limit = -terms.get((), 0) / factor
        low, high = self.intervals.get(str(atom), _ANY)
        both = (max(low, math.ceil(limit)), high) if factor > 0 else (low, min(high, limit // 1))
        self.intervals[str(atom)] = both

    def bounds(self, terms: Terms, left: int) -> Bounds:
        """Returns the bounds of a polynomial."""
        terms = self._with_replacements(terms)
        if left <= 0:
            return _ANY
        low, high = self._by_constraints(terms)
        for atom in dict.fromkeys(x for product in terms for x in product):
            found = self._without_atom(terms, atom, left) if isinstance(atom, Applied) else None
            if found is not None:
                return max(low, found[0]), min(high, found[1])
        return low, high

    def _with_replacements(self, terms: Terms) -> Terms:
        if not self.replaced:
            return terms
        for _ in range(_MOST_REPLACEMENTS):
            made: Terms = {}
            is_changed = False
            for product, factor in terms.items():
                part: Terms = {(): factor}
                for atom in product:
                    new = self.replaced.get(str(atom))
                    is_changed |= new is not None
                    part = multiplied(part, {(atom,): 1} if new is None else terms_of(new))
                _add(made, part)
            terms = made
            if not is_changed:
                break
        return terms

    def _without_atom(self, terms: Terms, atom: Applied, left: int) -> Bounds | None:
        """Returns bounds from the meaning of an operation; None if it is an atom like a name."""
        name, (a, b) = atom.name, atom.operands
        if name == "floordiv" and type(b) is int and b > 0:
            return self._without_quotient(terms, atom, a, b, left)
        if name in ("max", "min"):
            return self._without_extremum(terms, atom, left)
        return None

    def _without_quotient(self, terms: Terms, atom: Atom, a: Extent, b: int, left: int) -> Bounds:
        rest: Terms = {(Applied("mod", a, b),): 1}
        numerator: Terms = dict(terms_of(a))
        _add(numerator, rest, -1)
        made: Terms = {}
        for product, factor in terms.items():
            count = product.count(atom)
            others = tuple([x for x in product if x != atom])
            if count > 1:
                return _ANY
            if count:
                _add(made, multiplied({others: factor}, numerator))
            else:
                _add(made, {product: factor * b})
        low, high = self.bounds(made, left - 1)
        return low / b, high / b

    def _without_extremum(self, terms: Terms, atom: Applied, left: int) -> Bounds:
        name, (a, b) = atom.name, atom.operands
        within = {p: f for p, f in terms.items() if atom in p}
        cases = []
        for chosen in (a, b):
            made: Terms = {}
            for product, factor in terms.items():
                part: Terms = {(): factor}
                for x in product:
                    part = multiplied(part, terms_of(chosen) if x == atom else {(x,): 1})
                _add(made, part)
            cases.append(self.bounds(made, left - 2))
        low, high = min(c[0] for c in cases), max(c[1] for c in cases)
        if list(map(len, within)) == [1]:  # it is the only one, with a factor
            (factor,) = within.values()
            if (factor > 0) == (name == "max"):
                low = max(c[0] for c in cases)
            else:
                high = min(c[1] for c in cases)
        return low, high

    def _by_constraints(self, terms: Terms) -> Bounds:
        low, high = self._interval(terms)
        for positive in (*self.positive, *self._of_remainders(terms)):
            for product in positive:
                if not product or product not in terms:
                    continue
                ratio = terms[product] / positive[product]
                if ratio != int(ratio):
                    continue
                made = dict(terms)
                _add(made, positive, -int(ratio))
                # terms = made + ratio * positive
                other_low, other_high = self._interval(made)
                if ratio > 0:
                    low = max(low, other_low)
                else:
                    high = min(high, other_high)
        return low, high

    def _of_remainders(self, terms: Terms) -> Iterator[Terms]:
        """Yields polynomials that are not negative: remainders are smaller than their divisors."""
        for atom in dict.fromkeys(x for product in terms for x in product):
            if isinstance(atom, Applied) and atom.name == "mod":
                divisor = atom.operands[1]
                if isinstance(divisor, SymbolicDim) and self._of(divisor)[0] >= 1:
                    positive = {**terms_of(divisor), (atom,): -1}
                    _add(positive, {(): -1})
                    yield positive

    def _interval(self, terms: Terms) -> Bounds:
        """Returns bounds of a polynomial with its atoms in independent intervals."""
        widths: dict[str, float] = {}
        shifted: Terms = {}
        for product, factor in terms.items():
            part: Terms = {(): factor}
            for atom in product:
                low, high = self._of_atom(atom)
                if math.isinf(low) and math.isinf(high):
                    return _ANY
                sign, start = (1, int(low)) if not math.isinf(low) else (-1, int(high))
                widths[str(atom)] = high - low
                part = multiplied(part, {(): start, (atom,): sign} if start else {(atom,): sign})
            _add(shifted, part)
        low = high = 0.0
        for product, factor in shifted.items():
            if not factor:
                continue
            most = math.prod(widths[str(atom)] for atom in product)
            ends = (factor, factor) if not product else (0.0, factor * most if most else 0.0)
            low, high = low + min(ends), high + max(ends)
        return low, high

    def _of_atom(self, atom: Atom) -> Bounds:
        low, high = (1.0, math.inf) if isinstance(atom, str) else self._of_operation(atom)
        least, most = self.intervals.get(str(atom), _ANY)
        return max(low, least), min(high, most)

    def _of_operation(self, atom: Applied) -> Bounds:
        name, (a, b) = atom.name, atom.operands
        first, second = self._of(a), self._of(b)
        if name == "max":
            return max(first[0], second[0]), max(first[1], second[1])
        if name == "min":
            return min(first[0], second[0]), min(first[1], second[1])
        if second[0] < 1:
            return _ANY
        if name == "mod":
            return 0.0, min(second[1] - 1, first[1] if first[0] >= 0 else math.inf)
        return _quotient(first, second)

    def _of(self, extent: Extent) -> Bounds:
        """Returns the bounds of an operand; constraints may lead back to the same operand."""
        text, terms = str(extent), dict(terms_of(extent))
        if text in self._known:
            return self._known[text]
        if text in self._asked:
            self._is_cut = True
            return self._interval(terms)
        was_cut, self._is_cut = self._is_cut, False
        self._asked.add(text)
        found = self.bounds(terms, _MOST_REPLACEMENTS // 2)
        self._asked.discard(text)
        if not self._is_cut:
            self._known[text] = found
        self._is_cut |= was_cut
        return found


def _quotient(first: Bounds, second: Bounds) -> Bounds:
    """Returns the bounds of a quotient with a divisor of at least 1."""
    low, high = first
    least, most = second
    if low < 0:
        low = low if math.isinf(low) else low // least
    else:
        low = 0.0 if math.isinf(most) else low // most
    if high < 0:
        high = -1.0 if math.isinf(most) else high // most
    else:
        high = high if math.isinf(high) else high // least
    return low, high


def _replacement(left: Extent, right: Extent) -> Iterator[tuple[str, Extent]]:
    """Yields the atom that an equality replaces by an extent without it."""
    for one, other in ((left, right), (right, left)):
        terms = terms_of(one)
        if len(terms) == 1:
            ((product, factor),) = terms.items()
            if len(product) == 1 and factor == 1 and str(product[0]) not in _atoms(other):
                yield str(product[0]), other
                return


def _atoms(extent: Extent) -> set[str]:
    found: set[str] = set()
    for product in terms_of(extent):
        for atom in product:
            found.add(str(atom))
            if isinstance(atom, Applied):
                found.update(*map(_atoms, atom.operands))
    return found


def _add(terms: Terms, others: Mapping[Product, int], times: int = 1) -> None:
    for product, factor in others.items():
        terms[product] = terms.get(product, 0) + factor * times
        if not terms[product]:
            del terms[product]

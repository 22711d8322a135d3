"""Symbolic dimensions: extents that are not known when a function is exported.

`SymbolicDim` is a polynomial in names, with integers as coefficients; quotients, remainders, minima
and maxima of such stand in it like names. What does not live here: texts of them, and their values
in a call (`symbolic_shapes.py`).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import NoReturn, TypeAlias

from axir.dialect.core.annotations import UserObject
from axir.dialect.core.errors import AxirError

Extent: TypeAlias = "int | SymbolicDim"
# Names, and operations with their operands. A product has each as often as it is a factor.
_Atom: TypeAlias = "str | tuple[str, Extent, Extent]"
Product: TypeAlias = "tuple[_Atom, ...]"

OPERATIONS: Mapping[str, Callable[[int, int], int]] = {
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "max": max,
    "min": min,
}


class SymbolicDimError(AxirError, ValueError):
    """A symbolic dimension was used as a number, or compared where sizes decide."""


class SymbolicDim:
    """An extent that is not known; equal to those that are the same polynomial.

    Args:
        name: What it is called, of a single one.
        terms: Otherwise the polynomial: coefficients of products.
        scope: Where constraints on its names stand, if there are some.

    >>> b, t = SymbolicDim("b"), SymbolicDim("t")
    >>> 2 * b * t + b - 1, b + t == t + b, (b + 1) * (b - 1)
    (2*b*t + b - 1, True, b^2 - 1)
    >>> (b + 3) // 2, b - b
    (floordiv(b + 3, 2), 0)
    """

    __slots__ = ("scope", "terms")

    def __init__(
        self,
        name: str = "",
        terms: Mapping[Product, int] | None = None,
        scope: UserObject = None,
    ):
        self.terms: dict[Product, int] = {(name,): 1} if terms is None else dict(terms)
        self.scope = scope

    @property
    def name(self) -> str:
        """What it is called."""
        return repr(self)

    @property
    def is_name(self) -> bool:
        """Whether it is a name alone."""
        return [*self.terms.values()] == [1] and all(
            len(product) == 1 and isinstance(product[0], str) for product in self.terms
        )

    def names(self) -> Iterator[str]:
        """Yields the names in it, perhaps repeatedly."""
        for product in self.terms:
            for atom in product:
                if isinstance(atom, str):
                    yield atom
                else:
                    for operand in atom[1:]:
                        yield from names_of(operand)

    def value(self, sizes: Mapping[str, int]) -> int:
        """Returns what it is for sizes of its names."""
        return sum(
            factor * math.prod(_atom_value(atom, sizes) for atom in product)
            for product, factor in self.terms.items()
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SymbolicDim) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(("SymbolicDim", frozenset(self.terms.items())))

    def __add__(self, other: Extent) -> Extent:
        terms = dict(self.terms)
        for product, factor in _terms(other).items():
            terms[product] = terms.get(product, 0) + factor
        return _made(terms, self.scope or getattr(other, "scope", None))

    def __mul__(self, other: Extent) -> Extent:
        terms: dict[Product, int] = {}
        for product, factor in self.terms.items():
            for others, times in _terms(other).items():
                both = tuple(sorted((*product, *others), key=str))
                terms[both] = terms.get(both, 0) + factor * times
        return _made(terms, self.scope or getattr(other, "scope", None))

    def __neg__(self) -> Extent:
        return self * -1

    def __sub__(self, other: Extent) -> Extent:
        return self + other * -1

    def __rsub__(self, other: Extent) -> Extent:
        return -self + other

    def __pow__(self, power: int) -> Extent:
        return math.prod([self] * power, start=1)

    def __floordiv__(self, other: Extent) -> Extent:
        return operation("floordiv", self, other)

    def __rfloordiv__(self, other: int) -> Extent:
        return operation("floordiv", other, self)

    def __mod__(self, other: Extent) -> Extent:
        return operation("mod", self, other)

    def __rmod__(self, other: int) -> Extent:
        return operation("mod", other, self)

    __radd__, __rmul__ = __add__, __mul__

    def __repr__(self) -> str:
        ordered = sorted(self.terms.items(), key=lambda term: (-len(term[0]), str(term[0])))
        text = "".join(_term_text(*term) for term in ordered)
        return text[3:] if text.startswith(" + ") else "-" + text[3:]

    def _no_number(self, *others: UserObject) -> NoReturn:
        raise SymbolicDimError(
            f"The extent {self} is not known: it is no number to compute with.",
            "A symbolic dimension stands in shapes that are given to axir.export; the function "
            "itself is traced for a row, or for the sizes that come.",
        )

    __int__ = __index__ = __float__ = _no_number

    def _is_positive(self, extent: Extent, is_strict: bool) -> bool:
        """Tells whether an extent is above zero, or not below it, for all sizes of its names."""
        low, high = symbolic_dim_bounds(extent)
        least = 1 if is_strict else 0
        if low >= least:
            return True
        if high < least:
            return False
        self._no_number()

    def __bool__(self) -> bool:
        low, high = symbolic_dim_bounds(self)
        if low > 0 or high < 0:
            return True
        if low == high == 0:
            return False
        self._no_number()

    def __ge__(self, other: Extent) -> bool:
        return self._is_positive(self - other, False)

    def __gt__(self, other: Extent) -> bool:
        return self._is_positive(self - other, True)

    def __le__(self, other: Extent) -> bool:
        return self._is_positive(other - self, False)

    def __lt__(self, other: Extent) -> bool:
        return self._is_positive(other - self, True)


def operation(name: str, a: Extent, b: Extent) -> Extent:
    """Returns one of `OPERATIONS` of two extents."""
    if isinstance(a, int) and isinstance(b, int):
        return OPERATIONS[name](a, b)
    scope = getattr(a, "scope", None) or getattr(b, "scope", None)
    return SymbolicDim(terms={((name, a, b),): 1}, scope=scope)


def names_of(extent: Extent) -> Iterator[str]:
    """Yields the names in an extent, perhaps repeatedly."""
    if isinstance(extent, SymbolicDim):
        yield from extent.names()


def value_of(extent: Extent, sizes: Mapping[str, int]) -> int:
    """Returns what an extent is for sizes of its names."""
    return extent.value(sizes) if isinstance(extent, SymbolicDim) else extent


def is_symbolic_dim(p: UserObject) -> bool:
    """Tells whether an extent is symbolic.

    >>> from axir.export import symbolic_shape
    >>> [is_symbolic_dim(extent) for extent in symbolic_shape("b, 3")]
    [True, False]
    """
    return isinstance(p, SymbolicDim)


def symbolic_dim_bounds(dimension: Extent) -> tuple[float, float]:
    """Returns between which numbers an extent lies, as far as is known: sizes are at least 1.

    Args:
        dimension: An integer, or a symbolic extent.

    Returns:
        The bounds, which it may attain; infinite where nothing is known.

    >>> from axir.export import symbolic_shape
    >>> symbolic_dim_bounds(3), symbolic_dim_bounds(symbolic_shape("2*b + 1")[0])
    ((3.0, 3.0), (3.0, inf))
    """
    if not isinstance(dimension, SymbolicDim):
        return float(operator.index(dimension)), float(operator.index(dimension))
    low = high = 0.0
    for product, factor in dimension.terms.items():
        ends = (float(factor), float(factor))
        for atom in product:
            ends = _product_bounds(ends, _atom_bounds(atom))
        low, high = low + ends[0], high + ends[1]
    return low, high


def _product_bounds(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
    corners = [x * y if x and y else 0.0 for x in a for y in b]  # no infinity is attained
    return min(corners), max(corners)


def _atom_bounds(atom: _Atom) -> tuple[float, float]:
    if isinstance(atom, str):
        return 1.0, math.inf
    name, a, b = atom
    (low, high), (least, most) = symbolic_dim_bounds(a), symbolic_dim_bounds(b)
    if name in ("max", "min"):
        choose = max if name == "max" else min
        return choose(low, least), choose(high, most)
    if not isinstance(b, int) or b <= 0:
        return -math.inf, math.inf
    if name == "floordiv":
        return _quotient(low, b), _quotient(high, b)
    is_whole = 0 <= low and high < b  # then it is its own remainder
    return (low, high) if is_whole else (0.0, b - 1.0)


def _quotient(end: float, divisor: int) -> float:
    return end if math.isinf(end) else end // divisor


def _terms(extent: Extent) -> Mapping[Product, int]:
    if isinstance(extent, SymbolicDim):
        return extent.terms
    return {(): extent}


def _made(terms: Mapping[Product, int], scope: UserObject) -> Extent:
    kept = {product: factor for product, factor in terms.items() if factor}
    if not kept or list(kept) == [()]:
        return kept.get((), 0)
    return SymbolicDim(terms=kept, scope=scope)


def _atom_value(atom: _Atom, sizes: Mapping[str, int]) -> int:
    if isinstance(atom, str):
        return sizes[atom]
    name, a, b = atom
    return OPERATIONS[name](value_of(a, sizes), value_of(b, sizes))


def _term_text(product: Product, factor: int) -> str:
    atoms = dict.fromkeys(product)
    counts = [(atom, product.count(atom)) for atom in atoms]
    words = [_atom_text(atom) + (f"^{count}" if count > 1 else "") for atom, count in counts]
    if abs(factor) != 1 or not words:
        words.insert(0, str(abs(factor)))
    return f" {'-' if factor < 0 else '+'} {'*'.join(words)}"


def _atom_text(atom: _Atom) -> str:
    return atom if isinstance(atom, str) else f"{atom[0]}({atom[1]}, {atom[2]})"

"""Symbolic dimensions: extents that are not known while a function is traced.

`SymbolicDim` is a polynomial in names, with integers as coefficients; quotients, remainders, minima
and maxima of extents stand in it like names. A comparison is decided for all sizes that constraints
allow, or it is an error. It is never decided by samples. Elsewhere: quotients and the like
(`symbolic/operations.py`), bounds (`symbolic/bounds.py`), texts (`symbolic/texts.py`).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NoReturn, TypeGuard

import numpy as np

from axir.dialect.core.symbolic.terms import (
    Atom,
    Product,
    Scope,
    SymbolicDimError,
    SymbolicLookupError,
    Terms,
    joined_scope,
    multiplied,
    term_text,
)

from .annotations import Extent, UserObject
from .context import is_called_by_axir
from .late_modules import late_module

# late: simplification and bounds use the arithmetic of extents, which uses them
_bounds = late_module("axir.dialect.core.symbolic.bounds")
_operations = late_module("axir.dialect.core.symbolic.operations")


class SymbolicDim:
    """An unknown extent; equal to extents with the same value for all sizes.

    Args:
        name: The name of a single dimension.
        terms: Otherwise the polynomial: coefficients of products.
        scope: The constraints on its names, if there are any.

    >>> b, t = SymbolicDim("b"), SymbolicDim("t")
    >>> 2 * b * t + b - 1, b + t == t + b, (b + 1) * (b - 1)
    (2*b*t + b - 1, True, b^2 - 1)
    >>> (2 * b + 3) // 2, b - b, b >= 1
    (b + 1, 0, True)
    """

    __slots__ = ("_hash", "scope", "terms")
    # NumPy's arrays leave operators to it.
    __array_ufunc__ = None
    __array_priority__ = 100

    def __init__(
        self,
        name: str = "",
        terms: Mapping[Product, int] | None = None,
        scope: Scope | None = None,
    ):
        self.terms: Terms = {(name,): 1} if terms is None else dict(terms)
        self.scope = scope
        self._hash: int | None = None

    @property
    def name(self) -> str:
        """Its text."""
        return repr(self)

    @property
    def is_name(self) -> bool:
        """Whether it is only a name."""
        return [*self.terms.values()] == [1] and all(
            len(product) == 1 and isinstance(product[0], str) for product in self.terms
        )

    @property
    def constraints(self) -> tuple[str, ...]:
        """The constraints on its names, as texts."""
        return self.scope.texts if self.scope else ()

    def names(self) -> Iterator[str]:
        """Yields the names in it, perhaps repeatedly."""
        for product in self.terms:
            for atom in product:
                if isinstance(atom, str):
                    yield atom
                else:
                    for operand in atom.operands:
                        yield from names_of(operand)

    def value(self, sizes: Mapping[str, Extent]) -> Extent:
        """Returns its value for sizes of its names; names without a size stay."""
        found: Extent = 0
        for product, factor in self.terms.items():
            part: Extent = factor
            for atom in product:
                part = part * self._atom_value(atom, sizes)
            found = found + part
        return found

    def _atom_value(self, atom: Atom, sizes: Mapping[str, Extent]) -> Extent:
        if isinstance(atom, str):
            return sizes[atom] if atom in sizes else SymbolicDim(atom, scope=self.scope)
        a, b = atom.operands
        return operation(atom.name, value_of(a, sizes), value_of(b, sizes), self.scope)

    def __eq__(self, other: object) -> bool:
        """Tells whether two extents are equal for all sizes.

        axir's own code asks whether they are known to be equal (`is_same`). If sizes decide, it
        takes a way that is right for all sizes, or refuses.

        Raises:
            SymbolicDimError: if sizes decide, in code of users.
        """
        if not is_extent(other):
            return False
        found = _equality(self, other)
        if found is not None:
            return found
        if is_called_by_axir(__name__):
            return False
        raise self._undecided("==", other)

    def __hash__(self) -> int:
        """Returns equal hashes for extents that are known to be equal.

        Raises:
            SymbolicLookupError: in code of users, because extents with different hashes are never
                compared, although they may be equal for some sizes.
        """
        if not is_called_by_axir(__name__):
            error = SymbolicLookupError(
                f"Whether {self} is found in a set or a dictionary depends on its size.",
                "Compare with ==, which is an error only where sizes decide, or look up the text: "
                "sizes[str(x.shape[0])].",
            )
            error.is_choice_of_user = True
            raise error
        # Constraints distinguish types: results cached for one must not serve another.
        if self._hash is None:
            # Hashes the text: the hashes of -1 and -2 are equal, and a comparison may be an error.
            self._hash = hash(("SymbolicDim", repr(self)))
        return hash((self._hash, self.constraints))

    def __add__(self, other: object) -> object:
        if not is_extent(other):
            return operator.add(self._as_value(other), other)
        terms = dict(self.terms)
        for product, factor in terms_of(other).items():
            terms[product] = terms.get(product, 0) + factor
        return of_terms(terms, joined_scope(self, other))

    def __mul__(self, other: object) -> object:
        if not is_extent(other):
            return operator.mul(self._as_value(other), other)
        return of_terms(multiplied(self.terms, terms_of(other)), joined_scope(self, other))

    def __neg__(self) -> Extent:
        return of_terms({p: -factor for p, factor in self.terms.items()}, self.scope)

    def __pos__(self) -> Extent:
        return self

    def __sub__(self, other: object) -> object:
        if not is_extent(other):
            return operator.sub(self._as_value(other), other)
        return self + other * -1

    def __rsub__(self, other: object) -> object:
        if not is_extent(other):
            return operator.sub(other, self._as_value(other))
        return -self + other

    def __radd__(self, other: object) -> object:
        return self + other if is_extent(other) else operator.add(other, self._as_value(other))

    def __rmul__(self, other: object) -> object:
        return self * other if is_extent(other) else operator.mul(other, self._as_value(other))

    def __pow__(self, power: object) -> object:
        if type(power) is int and power >= 0:
            return math.prod([self] * power, start=1)
        return operator.pow(self._as_value(power), power)

    def __rpow__(self, base: object) -> object:
        return operator.pow(base, self._as_value(base))

    def __truediv__(self, other: object) -> object:
        if is_extent(other):
            return operator.truediv(as_traced(self), as_traced(other))
        return operator.truediv(self._as_value(other), other)

    def __rtruediv__(self, other: object) -> object:
        return operator.truediv(other, as_traced(self))

    def __floordiv__(self, other: object) -> object:
        if not is_extent(other):
            return operator.floordiv(self._as_value(other), other)
        return operation("floordiv", self, other)

    def __rfloordiv__(self, other: object) -> object:
        if not is_extent(other):
            return operator.floordiv(other, self._as_value(other))
        return operation("floordiv", other, self)

    def __mod__(self, other: object) -> object:
        if not is_extent(other):
            return operator.mod(self._as_value(other), other)
        return operation("mod", self, other)

    def __rmod__(self, other: object) -> object:
        if not is_extent(other):
            return operator.mod(other, self._as_value(other))
        return operation("mod", other, self)

    def __divmod__(self, other: Extent) -> tuple[Extent, Extent]:
        return self // other, self % other

    def __repr__(self) -> str:
        ordered = sorted(self.terms.items(), key=lambda term: (-len(term[0]), str(term[0])))
        text = "".join(term_text(*term) for term in ordered)
        return text[3:] if text.startswith(" + ") else "-" + text[3:]

    def _no_number(self, *others: object) -> NoReturn:
        raise SymbolicDimError(
            f"The extent {self} is not known: it is no number to compute with in Python.",
            "Compute with arrays, which take it as a value (x.sum() / x.shape[0]), loop with "
            "lax.scan or lax.fori_loop, or export the function for a fixed size.",
        )

    __int__ = __index__ = __float__ = __complex__ = bit_length = _no_number

    def __jax_array__(self) -> object:
        """Returns it as an integer of the traced program."""
        return as_traced(self)

    def _as_value(self, other: object) -> UserObject:
        """Returns it as an array, to compute with another one."""
        if isinstance(other, (str, bytes, tuple, list, type(None), dict)):
            raise TypeError(f"The extent {self} and {other!r} are no operands of one operation.")
        return as_traced(self)

    def _undecided(self, sign: str, other: Extent) -> SymbolicDimError:
        names = ", ".join(sorted({*self.names(), *names_of(other)}))
        where = f" where {', '.join(self.constraints)}" if self.constraints else ""
        error = SymbolicDimError(
            f"Whether {self} {sign} {other} holds depends on the size of {names}{where}.",
            "A program for all sizes cannot choose by them in Python: state a constraint that "
            "decides it, symbolic_shape(..., constraints=['b >= 8']), choose by arrays (jnp.where, "
            "lax.cond), or export the function for fixed sizes.",
        )
        error.is_choice_of_user = not is_called_by_axir(__name__)
        return error

    def _is_positive(self, extent: Extent, is_strict: bool, sign: str, other: Extent) -> bool:
        """Tells whether an extent is above zero, or not below it, for all sizes of its names."""
        low, high = symbolic_dim_bounds(extent)
        least = 1 if is_strict else 0
        if low >= least:
            return True
        if high < least:
            return False
        raise self._undecided(sign, other)

    def __bool__(self) -> bool:
        low, high = symbolic_dim_bounds(self)
        if low > 0 or high < 0:
            return True
        if low == high == 0:
            return False
        raise self._undecided("!=", 0)

    def __ge__(self, other: UserObject) -> object:
        if not is_extent(other):
            return operator.ge(self._as_value(other), other)
        return self._is_positive(self - other, False, ">=", other)

    def __gt__(self, other: UserObject) -> object:
        if not is_extent(other):
            return operator.gt(self._as_value(other), other)
        return self._is_positive(self - other, True, ">", other)

    def __le__(self, other: UserObject) -> object:
        if not is_extent(other):
            return operator.le(self._as_value(other), other)
        return self._is_positive(other - self, False, "<=", other)

    def __lt__(self, other: UserObject) -> object:
        if not is_extent(other):
            return operator.lt(self._as_value(other), other)
        return self._is_positive(other - self, True, "<", other)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, (self.terms, self.scope)


def _rebuilt(terms: Terms, scope: Scope | None) -> SymbolicDim:
    return SymbolicDim(terms=terms, scope=scope)


# Turns an extent into a value of the running trace; `dialect/ops/shape` sets it.
_tracing: list[Callable[[SymbolicDim], UserObject]] = []


def trace_extents_by(make: Callable[[SymbolicDim], object]) -> None:
    """Sets the function that turns an extent into an integer of the traced program."""
    _tracing[:] = [make]


def as_traced(extent: object) -> UserObject:
    """Returns an extent as a value of the running trace; a number as it is."""
    return _tracing[0](extent) if isinstance(extent, SymbolicDim) else extent


def is_extent(x: object) -> TypeGuard[Extent]:
    """Tells whether an object is an integer, or a symbolic dimension.

    >>> is_extent(3), is_extent(SymbolicDim("b")), is_extent(1.0)
    (True, True, False)
    """
    kind = type(x)
    return kind is int or kind is SymbolicDim or isinstance(x, (int, np.integer))


def as_extent(x: UserObject) -> Extent:
    """Returns an integer as one of Python's, and a symbolic dimension as it is.

    Raises:
        TypeError: if it is neither.

    >>> as_extent(np.int64(3)), as_extent(SymbolicDim("b"))
    (3, b)
    """
    return x if type(x) is SymbolicDim else operator.index(x)


def is_same(a: object, b: object) -> bool:
    """Tells whether two extents are known to be equal; False if sizes decide.

    Rules of broadcasting use it: an extent of 1 is stretched, also to an extent that may be 1.

    >>> b = SymbolicDim("b")
    >>> is_same(b, b), is_same(b, 1), is_same(2, 2)
    (True, False, True)
    """
    is_open = type(a) is SymbolicDim, type(b) is SymbolicDim
    if not any(is_open):
        return a == b
    if not all(is_open):
        return False
    assert isinstance(a, SymbolicDim)
    assert isinstance(b, SymbolicDim)
    if a.terms == b.terms:
        return a.scope is b.scope or not (a.scope and b.scope) or a.constraints == b.constraints
    low, high = symbolic_dim_bounds(a - b)
    return low == high == 0


def _equality(a: SymbolicDim, b: Extent) -> bool | None:
    if is_same(a, b):
        return True
    low, high = symbolic_dim_bounds(a - b)
    if low == high == 0:
        return True
    return False if low > 0 or high < 0 else None


def are_equal(shape: Sequence[Extent], other: Sequence[Extent]) -> bool:
    """Tells whether two shapes are equal, as an answer to the user's program.

    Raises:
        SymbolicDimError: if sizes decide.

    >>> from axir.export import symbolic_shape
    >>> a, b = symbolic_shape("a, b")
    >>> are_equal((a, 3), (a, 3)), are_equal((a, 3), (b, 4)), are_equal((a,), (a + 1,))
    (True, False, False)
    """
    if len(shape) != len(other):
        return False
    open_pairs = []
    for m, n in zip(shape, other, strict=True):
        one, two = (n, m) if type(m) is not SymbolicDim else (m, n)
        found = _equality(one, two) if type(one) is SymbolicDim else one == two
        if found is False:
            return False
        if found is None:
            open_pairs.append((one, two))
    for one, two in open_pairs:
        raise one._undecided("==", two)
    return True


def check_decided(shape: tuple[Extent, ...], number: int) -> None:
    """Raises a `SymbolicDimError` if sizes decide whether an extent is a number."""
    for extent in shape:
        if type(extent) is SymbolicDim and not is_same(extent, number):
            low, high = symbolic_dim_bounds(extent)
            if low <= number <= high:
                raise extent._undecided("==", number)


def are_same(a: tuple[object, ...], b: tuple[object, ...]) -> bool:
    """Tells whether two shapes are known to be equal.

    >>> are_same((SymbolicDim("b"), 1), (1, 1)), are_same((2,), (2,))
    (False, True)
    """
    return len(a) == len(b) and all(map(is_same, a, b))


def is_open(shape: Iterable[object]) -> bool:
    """Tells whether a shape has symbolic dimensions."""
    return SymbolicDim in map(type, shape)


def operation(name: str, a: Extent, b: Extent, scope: Scope | None = None) -> Extent:
    """Returns one of `OPERATIONS` of two extents, simplified where all sizes allow it.

    >>> b = SymbolicDim("b")
    >>> operation("mod", 4 * b + 1, 4), operation("max", b, 0), operation("floordiv", b * b, b)
    (1, b, b)
    """
    return _operations.simplified(name, a, b, scope)


def smaller(a: Extent, b: Extent) -> Extent:
    """Returns the smaller of two extents; an expression if sizes decide.

    >>> smaller(2, 3), smaller(SymbolicDim("b"), 1), smaller(SymbolicDim("b"), 3)
    (2, 1, min(b, 3))
    """
    return operation("min", a, b)


def larger(a: Extent, b: Extent) -> Extent:
    """Returns the larger of two extents; an expression if sizes decide."""
    return operation("max", a, b)


def names_of(extent: object) -> Iterator[str]:
    """Yields the names in an extent, perhaps repeatedly."""
    if isinstance(extent, SymbolicDim):
        yield from extent.names()


def value_of(extent: Extent, sizes: Mapping[str, Extent]) -> Extent:
    """Returns the value of an extent for sizes of its names."""
    return extent.value(sizes) if isinstance(extent, SymbolicDim) else extent


def is_symbolic_dim(p: object) -> bool:
    """Tells whether an extent is symbolic.

    >>> from axir.export import symbolic_shape
    >>> [is_symbolic_dim(extent) for extent in symbolic_shape("b, 3")]
    [True, False]
    """
    return isinstance(p, SymbolicDim)


def symbolic_dim_bounds(dimension: Extent) -> tuple[float, float]:
    """Returns the bounds of an extent, for sizes of at least 1 that satisfy the constraints.

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
    return _bounds.bounds(dimension)


def terms_of(extent: Extent) -> Mapping[Product, int]:
    """Returns the polynomial that an extent is."""
    if isinstance(extent, SymbolicDim):
        return extent.terms
    number = operator.index(extent)
    return {(): number} if number else {}


def of_terms(terms: Mapping[Product, int], scope: Scope | None) -> Extent:
    """Returns the extent that a polynomial is."""
    kept = {product: factor for product, factor in terms.items() if factor}
    if not kept or list(kept) == [()]:
        return kept.get((), 0)
    return SymbolicDim(terms=kept, scope=scope)

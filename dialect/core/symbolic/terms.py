"""Terms of symbolic dimensions: names, operations with their operands, and constraints.

A symbolic dimension is a polynomial: coefficients of products of atoms. Elsewhere: symbolic
dimensions (`dialect/core/symbolic_dims.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

from axir.dialect.core.annotations import Extent
from axir.dialect.core.errors import AxirError

# Names, and operations with their operands. A product repeats each by its exponent.
Atom: TypeAlias = "str | Applied"


Product: TypeAlias = "tuple[Atom, ...]"


Terms: TypeAlias = "dict[Product, int]"


OPERATIONS: Mapping[str, Callable[[int, int], int]] = {
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "max": max,
    "min": min,
}


class Applied(tuple[Extent, ...]):
    """One of `OPERATIONS` with its operands; equal to others with the same text.

    Comparing the operands themselves may be an error.
    """

    text: str

    def __new__(cls, name: str, a: Extent, b: Extent) -> Applied:
        """Makes it of the name of an operation and its operands."""
        self = super().__new__(cls, (name, a, b))
        self.text = f"{name}({a}, {b})"
        return self

    @property
    def name(self) -> str:
        """The name of the operation."""
        return str(self[0])

    @property
    def operands(self) -> tuple[Extent, Extent]:
        """The operands of the operation."""
        _, a, b = self
        assert not isinstance(a, str)
        assert not isinstance(b, str)
        return a, b

    def __eq__(self, other: object) -> bool:
        return type(other) is Applied and self.text == other.text

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.text)

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def __reduce__(self) -> tuple[object, ...]:
        return Applied, tuple(self)


class SymbolicDimError(AxirError, ValueError):
    """A symbolic dimension was used as a number, or compared where sizes decide.

    Attributes:
        is_choice_of_user: Whether the user's code compared it, and not axir's.
    """

    is_choice_of_user = False


class SymbolicLookupError(SymbolicDimError, TypeError):
    """A symbolic dimension was looked up in a set or dictionary, which compares by hashes.

    It is a `TypeError`, because libraries expect this error for objects that cannot be hashed.
    """


class Condition(Protocol):
    """A comparison that holds in all calls: `Constraint`."""

    @property
    def left(self) -> Extent:
        """The extent on the left."""
        ...

    @property
    def right(self) -> Extent:
        """The extent on the right."""
        ...

    @property
    def is_equality(self) -> bool:
        """Whether it says that two extents are equal."""
        ...

    @property
    def positive(self) -> list[Extent]:
        """The extents that are not negative according to the constraint."""
        ...


class Scope(Protocol):
    """Constraints on symbolic dimensions: `SymbolicScope`."""

    @property
    def constraints(self) -> Sequence[Condition]:
        """The comparisons."""
        ...

    @property
    def texts(self) -> tuple[str, ...]:
        """The comparisons as texts."""
        ...


def multiplied(a: Mapping[Product, int], b: Mapping[Product, int]) -> Terms:
    """Returns the product of two polynomials."""
    terms: Terms = {}
    for product, factor in a.items():
        for others, times in b.items():
            both = tuple(sorted((*product, *others), key=str))
            terms[both] = terms.get(both, 0) + factor * times
    return terms


def joined_scope(a: object, b: object) -> Scope | None:
    """Returns the scope of a result computed from two extents.

    Raises:
        SymbolicDimError: if they have different constraints.
    """
    first, second = getattr(a, "scope", None), getattr(b, "scope", None)
    if first is None or second is None or first is second:
        return first or second
    if not (first.texts and second.texts):
        return first if first.texts else second
    if first.texts != second.texts:
        raise SymbolicDimError(
            f"The extents {a} and {b} stand under different constraints.",
            "Give the shapes one scope: symbolic_shape(..., scope=scope).",
        )
    return first


def term_text(product: Product, factor: int) -> str:
    """Returns a product with its coefficient as text, with its sign in front."""
    atoms = dict.fromkeys(product)
    counts = [(atom, product.count(atom)) for atom in atoms]
    words = [str(atom) + (f"^{count}" if count > 1 else "") for atom, count in counts]
    if abs(factor) != 1 or not words:
        words.insert(0, str(abs(factor)))
    return f" {'-' if factor < 0 else '+'} {'*'.join(words)}"

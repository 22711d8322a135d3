"""The facts about the bytes of a buffer: each relates a range of bytes to the bytes of an atom.

Here: also the pieces that make up contents.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .reading import Operation
from .scalars import Scalars

# A length that the value does not tell, as of a block's argument.
UNKNOWN = 1 << 62
FILL, CONSTANT, GLOBAL = "fill:", "constant:", "global:"
_INTEGER = re.compile(r"-?\d+(?= : i)")
_ZERO = re.compile(r"0\.0+e\+00 : ")
WIDTHS = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "f16": 2, "bf16": 2, "f32": 4, "f64": 8}
_ELEMENT_BYTES = {
    **WIDTHS,
    **{f"{sign}i{bits}": bits // 8 for sign in "su" for bits in (8, 16, 32, 64)},
    "complex<f32>": 8,
    "complex<f64>": 16,
}
_COMPOSITE = re.compile(r"#util\.composite<(\d+)xi8, \[(.*)\]>\Z", re.S)
_BETWEEN_ELEMENTS = re.compile(r">\s*,\s*(?=dense)")
_SHAPE = re.compile(r": (?:tensor|vector)<((?:\d+x)*)([^<>]+(?:<[^<>]+>)?)>\Z")


class Piece(NamedTuple):
    """A part of a value: `length` bytes from `start` on equal an atom's bytes from `offset` on.

    An atom is the name of a value that an operation computes, the name of a block's argument, a
    fill, a constant, or the contents of a global. None stands for bytes that have not been written.
    """

    start: int
    length: int
    atom: str | None
    offset: int


class UnprovableError(Exception):
    """The program does something that this proof does not know."""


def part(pieces: tuple[Piece, ...], start: int, length: int) -> tuple[Piece, ...]:
    """Returns the pieces of a part of a value."""
    end = start + length
    found = []
    for piece in pieces:
        first, last = max(piece.start, start), min(piece.start + piece.length, end)
        if first < last:
            offset = piece.offset + first - piece.start
            found.append(Piece(first - start, last - first, piece.atom, offset))
    return tuple(found)


def placed(pieces: tuple[Piece, ...], start: int, new: tuple[Piece, ...]) -> tuple[Piece, ...]:
    """Returns the pieces of a value after other pieces are inserted at `start`."""
    if not new:
        return pieces
    end = start + new[-1].start + new[-1].length
    return (
        *part(pieces, 0, start),
        *(piece._replace(start=piece.start + start) for piece in new),
        *(piece._replace(start=piece.start + end) for piece in part(pieces, end, UNKNOWN - end)),
    )


def filling(operation: Operation, scalars: Scalars) -> str:
    """Returns the atom of memory that an operation fills: with its first or its last operand."""
    which = 0 if operation.name == "stream.async.splat" else -1
    value, kind = operation.operands[which], operation.kinds()[which]
    width = WIDTHS.get(kind)
    if width is None:
        raise UnprovableError(f"memory filled with {kind}")
    constant = scalars.constant(value)
    return f"{FILL}{width}:{value}" if constant is None else pattern(constant, width)


def pattern(constant: str, width: int) -> str:
    """Returns how memory is described that is filled with a number, by its shortest period.

    >>> pattern("0 : i32", 4), pattern("257 : i32", 4), pattern("0.000000e+00 : f32", 4)
    ('fill:1:00', 'fill:4:01010000', 'fill:1:00')
    """
    found = _INTEGER.match(constant)
    if found is None:
        if _ZERO.match(constant) is None:
            return f"{FILL}{width}:{constant}"
        number = 0
    else:
        number = int(found[0])
    content = (number % (1 << 8 * width)).to_bytes(width, "little")
    for period in (1, 2, 4):
        if period < width and content == content[:period] * (width // period):
            return f"{FILL}{period}:{content[:period].hex()}"
    return f"{FILL}{width}:{content.hex()}"


def constant_pieces(text: str) -> tuple[Piece, ...]:
    """Returns the constants that an operation packs into one, from its text.

    Raises:
        UnprovableError: if an element has a type that arrays of programs do not have.
    """
    whole = constant_atom(text)[len(CONSTANT) :]
    composite = _COMPOSITE.match(whole)
    elements = [whole] if composite is None else _split(composite[2])
    found, start = [], 0
    for element in elements:
        shape = _SHAPE.search(element)
        if shape is None or shape[2] not in _ELEMENT_BYTES:
            raise UnprovableError(f"a constant of type {element[-40:]}")
        length = _ELEMENT_BYTES[shape[2]]
        for extent in shape[1].split("x")[:-1]:
            length *= int(extent)
        found.append(Piece(start, length, CONSTANT + element, 0))
        start += length
    if composite is not None and start != int(composite[1]):
        raise UnprovableError(f"constants of {start} bytes in {composite[1]}")
    return tuple(found)


def _split(text: str) -> list[str]:
    """Splits at commas between elements, which each end with the `>` of a type."""
    parts = _BETWEEN_ELEMENTS.split(text.strip().rstrip(","))
    return [part + ">" for part in parts[:-1]] + [parts[-1]]


def constant_atom(text: str) -> str:
    """Returns the atom of a constant, which is its text."""
    start = text.index("value = ") + 8
    return CONSTANT + text[start : text.index("}>", start)]


class Fact(NamedTuple):
    """The bytes from `start` to `end` are an atom's, and its first byte would be at `base`."""

    start: int
    end: int
    atom: str
    base: int


class Contents:
    """The facts about one buffer; several may be true of one byte."""

    __slots__ = ("facts",)

    def __init__(self, facts: tuple[Fact, ...] = ()) -> None:
        self.facts = facts

    def forget(self, start: int, end: int) -> None:
        """Forgets the facts about bytes that are overwritten."""
        if not self.facts:
            return
        kept: list[Fact] = []
        for fact in self.facts:
            if fact.end <= start or end <= fact.start:
                kept.append(fact)
                continue
            if fact.start < start:
                kept.append(fact._replace(end=start))
            if end < fact.end:
                kept.append(fact._replace(start=end))
        self.facts = tuple(kept)

    def learn(self, facts: tuple[Fact, ...]) -> None:
        """Adds facts."""
        self.facts += facts

    def taken(self, start: int, length: int, to: int) -> tuple[Fact, ...]:
        """Returns the facts about a part, as they are true where it is copied."""
        end = start + length
        shift = to - start
        return tuple(
            Fact(max(x.start, start) + shift, min(x.end, end) + shift, x.atom, x.base + shift)
            for x in self.facts
            if x.start < end and start < x.end
        )

    def lacking(self, at: int, pieces: tuple[Piece, ...]) -> tuple[Piece, int] | None:
        """Returns the first of these pieces that is not known to be here, and the place."""
        for piece in pieces:
            if piece.atom is None:
                continue
            first = at + piece.start
            reached = self.reached(first, piece)
            if reached < first + piece.length:
                return piece, reached
        return None

    def reached(self, first: int, piece: Piece) -> int:
        """Returns the end of the range from `first` on that is known to hold a piece's bytes."""
        assert piece.atom is not None
        base = first - piece.offset
        period = period_of(piece.atom)
        end = min(first + piece.length, UNKNOWN)
        reached = first
        known = [x for x in self.facts if x.atom == piece.atom]
        if period:
            known = [x for x in known if not (x.base - base) % period]
        else:
            known = [x for x in known if x.base == base]
        if len(known) > 1:
            known.sort()
        for fact in known:
            if fact.start <= reached < fact.end:
                reached = fact.end
        return min(reached, end)

    def atoms_at(self, place: int) -> list[str]:
        """Returns the atoms that a byte is known to belong to."""
        return [x.atom for x in self.facts if x.start <= place < x.end]

    def meet(self, other: Contents) -> Contents:
        """Returns the facts that hold in both."""
        if self.facts == other.facts:
            return self
        found = []
        for mine in self.facts:
            for theirs in other.facts:
                start, end = max(mine.start, theirs.start), min(mine.end, theirs.end)
                if mine.atom == theirs.atom and mine.base == theirs.base and start < end:
                    found.append(Fact(start, end, mine.atom, mine.base))
        return Contents(tuple(dict.fromkeys(found)))


def period_of(atom: str) -> int:
    """Returns the period of an atom in bytes, 0 if it is not periodic.

    >>> period_of("fill:4:01020304"), period_of("%7")
    (4, 0)
    """
    return int(atom.split(":", 2)[1]) if atom.startswith(FILL) else 0

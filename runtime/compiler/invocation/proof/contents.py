"""The facts about the bytes of a buffer: each relates a range of bytes to the bytes of an atom."""

from __future__ import annotations

from typing import NamedTuple

from .pieces import FILL, UNKNOWN, Piece


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

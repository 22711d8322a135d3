"""Places the allocations of functions without control flow in one block that they share.

Algorithm: allocations that are live at the same time do not overlap; each takes the lowest place
that is free from its first step to its last, large ones first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ALIGNMENT = 64


@dataclass(frozen=True)
class Piece:
    """Memory that is needed from one step to another, both counted."""

    size: int
    first: int
    last: int


def place(pieces: Sequence[Piece]) -> tuple[list[int], int]:
    """Returns the offset of each piece, and the size of the block.

    >>> place([Piece(100, 0, 1), Piece(10, 1, 2), Piece(64, 2, 3)])
    ([0, 128, 0], 192)
    """
    offsets = [0] * len(pieces)
    placed: list[int] = []
    for index in sorted(range(len(pieces)), key=lambda n: (-pieces[n].size, n)):
        piece = pieces[index]
        others = sorted(
            (offsets[n], offsets[n] + _rounded(pieces[n].size))
            for n in placed
            if pieces[n].first <= piece.last and piece.first <= pieces[n].last
        )
        offset = 0
        for start, end in others:
            if offset + _rounded(piece.size) <= start:
                break
            offset = max(offset, end)
        offsets[index] = offset
        placed.append(index)
    size = max((o + _rounded(p.size) for o, p in zip(offsets, pieces, strict=True)), default=0)
    return offsets, size


def _rounded(size: int) -> int:
    return -(-max(size, 1) // ALIGNMENT) * ALIGNMENT

"""MLIR bytecode with attributes of dialects that the wheel does not know.

JAX marks calls of LAPACK with attributes of `sdy`, which say how to distribute them. Nobody needs
them here, but nobody can read bytecode that holds them either: how they are encoded is known to
their dialect alone. They are replaced by `unit` before the bytecode is read. The format is that of
MLIR's documentation, "MLIR Bytecode Format".
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

__all__ = ["without_foreign_attributes"]

_MAGIC = b"ML\xefR"
_STRINGS, _DIALECTS, _VALUES, _OFFSETS = 0, 1, 2, 3
_FILLING = b"\xcb"
_FOREIGN = frozenset({b"sdy"})
_UNIT = b"unit\0"


def without_foreign_attributes(data: bytes) -> bytes:
    """Returns bytecode without attributes that nobody here can read; damaged one as it is.

    >>> without_foreign_attributes(b"ML?")
    b'ML?'
    """
    if not any(name + b"\0" in data for name in _FOREIGN):
        return data
    try:
        return _rewritten(data)
    except (IndexError, ValueError):  # whoever reads it says what is wrong
        return data


@dataclasses.dataclass
class _Section:
    """A section of bytecode: what kind, what is in it, and where it must begin."""

    kind: int
    data: bytes
    alignment: int = 1


class _Reader:
    """Reads numbers, texts and sections one after the other."""

    def __init__(self, data: bytes, position: int = 0):
        self.data, self.position = data, position

    def number(self) -> int:
        """Reads a number whose first byte says by trailing zeros how many bytes follow."""
        first = self.data[self.position]
        count = 8 if first == 0 else (first & -first).bit_length() - 1
        taken = self.taken(count + 1)
        if first == 0:
            return int.from_bytes(taken[1:], "little")
        return int.from_bytes(taken, "little") >> (count + 1)

    def taken(self, count: int) -> bytes:
        """Reads so many bytes."""
        end = self.position + count
        if end > len(self.data):
            raise ValueError("the bytecode ends too early")
        part, self.position = self.data[self.position : end], end
        return part

    def section(self) -> _Section:
        """Reads a section."""
        (kind,) = self.taken(1)
        length = self.number()
        alignment = 1
        if kind & 0x80:
            alignment = self.number()
            self.taken(-self.position % alignment)
        return _Section(kind & 0x7F, self.taken(length), alignment)

    @property
    def is_at_end(self) -> bool:
        """Whether nothing is left."""
        return self.position >= len(self.data)


def _written(value: int) -> bytes:
    """Returns a number as `_Reader.number` reads it."""
    for count in range(8):
        if value < 1 << (7 * (count + 1)):
            return ((value << (count + 1)) | (1 << count)).to_bytes(count + 1, "little")
    return b"\0" + value.to_bytes(8, "little")


def _rewritten(data: bytes) -> bytes:
    reader = _Reader(data, len(_MAGIC))
    reader.number()
    reader.position = data.index(b"\0", reader.position) + 1  # behind the producer's name
    head = data[: reader.position]
    sections = []
    while not reader.is_at_end:
        sections.append(reader.section())
    found = {section.kind: section for section in sections}
    foreign = _foreign_dialects(found[_DIALECTS].data, _texts(found[_STRINGS].data))
    offsets, values = _replaced(found[_OFFSETS].data, found[_VALUES].data, foreign)
    found[_OFFSETS].data, found[_VALUES].data = offsets, values
    made = bytearray(head)
    for section in sections:
        _append(made, section)
    return bytes(made)


def _append(made: bytearray, section: _Section) -> None:
    is_aligned = section.alignment > 1
    made.append(section.kind | (0x80 if is_aligned else 0))
    made += _written(len(section.data))
    if is_aligned:
        made += _written(section.alignment)
        made += _FILLING * (-len(made) % section.alignment)
    made += section.data


def _texts(data: bytes) -> list[bytes]:
    reader = _Reader(data)
    count = reader.number()
    sizes = [reader.number() for _ in range(count)][::-1]  # written from the last to the first
    return [reader.taken(size)[:-1] for size in sizes]


def _foreign_dialects(data: bytes, texts: Sequence[bytes]) -> set[int]:
    reader = _Reader(data)
    found = set()
    for index in range(reader.number()):
        name = reader.number()
        if name & 1:
            reader.section()  # the dialect's version
        if texts[name >> 1] in _FOREIGN:
            found.add(index)
    return found


def _replaced(offsets: bytes, values: bytes, foreign: set[int]) -> tuple[bytes, bytes]:
    """Returns both sections with the attributes of foreign dialects replaced."""
    reader, contents = _Reader(offsets), _Reader(values)
    counts = [reader.number(), reader.number()]
    made, kept = bytearray(b"".join(map(_written, counts))), bytearray()
    for count in counts:
        for dialect, entries in _groups(reader, count):
            made += _written(dialect) + _written(len(entries))
            for entry in entries:
                content = contents.taken(entry >> 1)
                if dialect in foreign:
                    content, entry = _UNIT, len(_UNIT) << 1
                made += _written(entry)
                kept += content
    return bytes(made), bytes(kept)


def _groups(reader: _Reader, count: int) -> Iterator[tuple[int, list[int]]]:
    """Yields dialects, and of each entry the size and whether its dialect encoded it."""
    while count > 0:
        dialect, size = reader.number(), reader.number()
        yield dialect, [reader.number() for _ in range(size)]
        count -= size

"""MLIR bytecode, its sections, numbers and texts, read and written.

MLIR's documentation describes the format: "MLIR Bytecode Format". Elsewhere: attributes of Shardy
(`bytecode_shardings.py`), weights (`bytecode_weights.py`).
"""

from __future__ import annotations

import dataclasses
import mmap
from collections.abc import Iterator, Sequence
from typing import TypeAlias

BYTECODE = b"ML\xefR"
"""What bytecode begins with."""

Content: TypeAlias = bytes | mmap.mmap
"""The content of a file, read or mapped."""

STRINGS, DIALECTS, VALUES, OFFSETS, BLOBS, BLOB_OFFSETS, PROPERTIES = 0, 1, 2, 3, 5, 6, 8
"""Kinds of sections: texts, names of dialects, attributes with types and where these begin,
resources and where these begin, attributes of operations."""
_LENGTH_BYTES = 4
_FILLING = b"\xcb"


def embedded_bytecode(data: Content) -> bytes | None:
    """Returns the bytecode within a file of another format, such as JAX's serialized functions.

    Such a file is a table; its texts stand behind their lengths, of four bytes each. Returns None
    without bytecode in the file.

    >>> embedded_bytecode(b"...." + (6).to_bytes(4, "little") + BYTECODE + b"..")[-2:]
    b'..'
    """
    position = data.find(BYTECODE)
    if position < _LENGTH_BYTES:
        return None
    length = int.from_bytes(data[position - _LENGTH_BYTES : position], "little")
    return data[position : position + length] if position + length <= len(data) else None


@dataclasses.dataclass
class Section:
    """A section of bytecode: its kind, its content, its alignment, and its start."""

    kind: int
    data: bytes | memoryview
    alignment: int = 1
    start: int = 0


class Reader:
    """Reads numbers, texts and sections one after the other."""

    def __init__(self, data: Content | memoryview, position: int = 0):
        self.data, self.position = memoryview(data), position

    def number(self) -> int:
        """Reads a number; the trailing zeros of its first byte give the number of further bytes."""
        first = self.data[self.position]
        count = 8 if first == 0 else (first & -first).bit_length() - 1
        taken = self.taken(count + 1)
        if first == 0:
            return int.from_bytes(taken[1:], "little")
        return int.from_bytes(taken, "little") >> (count + 1)

    def taken(self, count: int) -> memoryview:
        """Reads a number of bytes, without a copy."""
        end = self.position + count
        if end > len(self.data):
            raise ValueError("the bytecode ends too early")
        part, self.position = self.data[self.position : end], end
        return part

    def section(self) -> Section:
        """Reads a section."""
        (kind,) = self.taken(1)
        length = self.number()
        alignment = 1
        if kind & 0x80:
            alignment = max(1, self.number())
            self.taken(-self.position % alignment)
        start = self.position
        return Section(kind & 0x7F, self.taken(length), alignment, start)

    @property
    def is_at_end(self) -> bool:
        """Whether nothing is left."""
        return self.position >= len(self.data)


def written(value: int) -> bytes:
    """Returns a number as `Reader.number` reads it."""
    for count in range(8):
        if value < 1 << (7 * (count + 1)):
            return ((value << (count + 1)) | (1 << count)).to_bytes(count + 1, "little")
    return b"\0" + value.to_bytes(8, "little")


def sections_of(data: Content) -> tuple[bytes, list[Section]]:
    """Returns the bytes before the sections of bytecode, and the sections."""
    reader = Reader(data, len(BYTECODE))
    reader.number()
    end = data.find(b"\0", reader.position) + 1  # behind the producer's name
    if not end:
        raise ValueError("the bytecode ends too early")
    reader.position = end
    sections = []
    while not reader.is_at_end:
        sections.append(reader.section())
    return data[:end], sections


def assembled(head: bytes, sections: Sequence[Section]) -> bytes:
    """Returns bytecode of the bytes before its sections, and of these."""
    made = bytearray(head)
    for section in sections:
        _append(made, section)
    return bytes(made)


def _append(made: bytearray, section: Section) -> None:
    is_aligned = section.alignment > 1
    made.append(section.kind | (0x80 if is_aligned else 0))
    made += written(len(section.data))
    if is_aligned:
        made += written(section.alignment)
        made += _FILLING * (-len(made) % section.alignment)
    made += section.data


def texts_of(data: bytes | memoryview) -> list[bytes]:
    """Returns the texts in the content of a section of texts."""
    reader = Reader(data)
    count = reader.number()
    sizes = [reader.number() for _ in range(count)][::-1]  # written from the last to the first
    return [bytes(reader.taken(size)[:-1]) for size in sizes]


def dialects_of(
    data: bytes | memoryview, texts: Sequence[bytes], wanted: frozenset[bytes] | set[bytes]
) -> set[int]:
    """Returns the numbers of dialects of given names."""
    reader = Reader(data)
    found = set()
    for index in range(reader.number()):
        name = reader.number()
        if name & 1:
            reader.section()  # the dialect's version
        if texts[name >> 1] in wanted:
            found.add(index)
    return found


def groups_of(reader: Reader, count: int) -> Iterator[tuple[int, list[int]]]:
    """Yields dialects with the size of each entry, and whether its dialect encoded it."""
    while count > 0:
        dialect, size = reader.number(), reader.number()
        yield dialect, [reader.number() for _ in range(size)]
        count -= size

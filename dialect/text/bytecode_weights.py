"""Weights in MLIR bytecode, taken out of it before MLIR reads it: they stay where they are.

These are resources, which have a section of their own, and large constants, which stand among the
attributes. In what MLIR reads, resources have no content, and constants are resources as well; in
portable artifacts of StableHLO, whose constants are no attributes of MLIR's, they are texts. What
does not live here: the format as such (`bytecode.py`), what weights are (`resources.py`).
"""

from __future__ import annotations

from collections.abc import Callable

from .bytecode import (
    BLOB_OFFSETS,
    BLOBS,
    DIALECTS,
    OFFSETS,
    STRINGS,
    VALUES,
    Content,
    Reader,
    Section,
    assembled,
    dialects_of,
    groups_of,
    sections_of,
    texts_of,
    written,
)

__all__ = ["named_weights"]

_BUILTIN, _VHLO = b"builtin", b"vhlo"
# What the dialects encode an array as, and the name of one.
_DENSE, _RESOURCE = 18, 16
_VHLO_DENSE, _VHLO_TEXT = 15, 14
# Constants of so many bytes are weights.
_LARGE = 1 << 14


def named_weights(data: Content, prefix: str) -> tuple[bytes, list[tuple[str, memoryview]]] | None:
    r"""Returns bytecode without the weights in it, and these by name.

    Args:
        data: The bytecode.
        prefix: What the names of weights begin with in the new bytecode. Large constants have the
            names `#0`, `#1`, ...

    Returns:
        None if there are no weights.

    Raises:
        ValueError, IndexError, KeyError: if the bytecode is damaged.

    >>> named_weights(b"ML\xefR\rMLIR\0", "a.") is None
    Traceback (most recent call last):
        ...
    KeyError: 0
    """
    head, sections = sections_of(data)
    found = {section.kind: section for section in sections}
    weights = _Weights(texts_of(found[STRINGS].data), prefix)
    dialects = found[DIALECTS].data
    (builtin,) = dialects_of(dialects, weights.texts, {_BUILTIN}) or (-1,)
    vhlo = dialects_of(dialects, weights.texts, {_VHLO})
    offsets = weights.without_content(found[BLOB_OFFSETS], found[BLOBS], builtin, data)

    def replaced(dialect: int, entry: memoryview) -> bytes | memoryview:
        if len(entry) < _LARGE or dialect not in (builtin, *vhlo):
            return entry
        return weights.replacement(entry, dialect in vhlo)

    values = _rewritten_values(found[OFFSETS], found[VALUES], replaced)
    if not weights.found:
        return None
    found[OFFSETS].data, found[VALUES].data = values
    found[BLOB_OFFSETS].data = weights.offsets(offsets, builtin)
    found[BLOBS].data, found[BLOBS].alignment = b"", 1
    found[STRINGS].data = _text_section(weights.texts)
    return assembled(head, sections), weights.found


class _Weights:
    """The weights that are taken out.

    Attributes:
        texts: The texts of the bytecode, and those that were added.
        found: The weights by name.
    """

    def __init__(self, texts: list[bytes], prefix: str):
        self.texts = texts
        self.found: list[tuple[str, memoryview]] = []
        self._prefix = prefix.encode()
        self._resources = 0
        self._constants: list[int] = []
        self._count = 0

    def _named(self, name: bytes) -> int:
        """Adds the text that is the handle of a weight; returns its number."""
        self.texts.append(self._prefix + name)
        return len(self.texts) - 1

    def without_content(
        self, offsets: Section, blobs: Section, builtin: int, data: Content
    ) -> dict[int, bytes]:
        """Takes what the resources hold; returns how those of each dialect are listed now."""
        reader, contents = Reader(offsets.data), Reader(data, blobs.start)
        for _ in range(reader.number()):  # those of programs that MLIR knows nothing of
            reader.number()
            for _ in range(reader.number()):
                _, size, _ = reader.number(), reader.number(), reader.taken(1)
                contents.taken(size)
        listed: dict[int, bytes] = {}
        while not reader.is_at_end:
            dialect, count = reader.number(), reader.number()
            entries = bytearray()
            for _ in range(count):
                name, size, kind = reader.number(), reader.number(), bytes(reader.taken(1))
                if dialect == builtin:
                    label = self.texts[name]
                    name = self._named(label)
                    self._resources += 1
                if not size or kind != b"\0":
                    contents.taken(size)
                elif dialect == builtin:
                    self.found.append((label.decode(errors="replace"), _blob(contents, size)))
                entries += written(name) + written(0) + b"\0"
            listed[dialect] = listed.get(dialect, b"") + bytes(entries)
        return listed

    def replacement(self, entry: memoryview, is_vhlo: bool) -> bytes | memoryview:
        """Takes a constant; returns what stands in its place. Others stay."""
        reader = Reader(entry)
        code, kind = reader.number(), reader.number()
        if code != (_VHLO_DENSE if is_vhlo else _DENSE):
            return entry
        content = reader.taken(reader.number())
        name = f"#{self._count}"
        self._count += 1
        self.found.append((name, content))
        number = self._named(name.encode())
        if is_vhlo:
            return written(_VHLO_TEXT) + written(number)
        self._constants.append(number)
        handle = self._resources + len(self._constants) - 1
        return written(_RESOURCE) + written(kind) + written(handle)

    def offsets(self, listed: dict[int, bytes], builtin: int) -> bytes:
        """Returns the section that lists resources, without content."""
        added = b"".join(written(number) + written(0) + b"\0" for number in self._constants)
        if added or builtin in listed:
            listed[builtin] = listed.get(builtin, b"") + added
        groups = bytearray(written(0))
        for dialect, entries in listed.items():
            count = self._resources + len(self._constants)
            count = count if dialect == builtin else _entry_count(entries)
            groups += written(dialect) + written(count) + entries
        return bytes(groups)


def _entry_count(entries: bytes) -> int:
    reader = Reader(entries)
    count = 0
    while not reader.is_at_end:
        reader.number()
        reader.number()
        reader.taken(1)
        count += 1
    return count


def _blob(reader: Reader, length: int) -> memoryview:
    """Reads the content of a resource, whose alignment and padding are part of its length."""
    end = reader.position + length
    alignment, size = reader.number(), reader.number()
    reader.taken(-reader.position % max(1, alignment))
    content = reader.taken(size)
    if reader.position != end:
        raise ValueError("a resource has another length than is said")
    return content


def _rewritten_values(
    offsets: Section,
    values: Section,
    replaced: Callable[[int, memoryview], bytes | memoryview],
) -> tuple[bytes, bytes]:
    """Returns the sections of attributes and types, and of their sizes, some replaced."""
    reader, contents = Reader(offsets.data), Reader(values.data)
    counts = [reader.number(), reader.number()]
    made, kept = bytearray(b"".join(map(written, counts))), bytearray()
    for is_type, count in zip((False, True), counts, strict=True):
        for dialect, entries in groups_of(reader, count):
            made += written(dialect) + written(len(entries))
            for entry in entries:
                whole = contents.taken(entry >> 1)
                content = replaced(dialect, whole) if entry & 1 and not is_type else whole
                made += written(len(content) << 1 | entry & 1)
                kept += content
    return bytes(made), bytes(kept)


def _text_section(texts: list[bytes]) -> bytes:
    sizes = b"".join(written(len(text) + 1) for text in reversed(texts))
    return written(len(texts)) + sizes + b"".join(text + b"\0" for text in texts)

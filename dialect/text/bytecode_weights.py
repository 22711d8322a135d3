"""Weights in MLIR bytecode, taken out of it before MLIR reads it: they stay where they are.

These are resources, which have a separate section, and large constants, which stand among the
attributes. In the bytecode that MLIR reads, resources have no content, and constants are resources
as well. In portable artifacts of StableHLO, constants are not attributes of MLIR, and become texts.
Elsewhere: the format (`bytecode.py`), the weights (`resources.py`).
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

__all__ = ["LARGE_BYTES", "weights_in_bytecode"]

_BUILTIN, _VHLO = b"builtin", b"vhlo"
# The dialects' codes of an array, and of the name of an array.
_DENSE, _RESOURCE = 18, 16
_VHLO_DENSE, _VHLO_TEXT = 15, 14

LARGE_BYTES = 1 << 14
"""Constants of so many bytes are weights."""


def weights_in_bytecode(
    data: Content, prefix: str
) -> tuple[bytes, list[str | None], dict[int, memoryview]] | None:
    r"""Returns bytecode without its weights, and the weights.

    Args:
        data: The bytecode.
        prefix: The beginning of weights' handles in the new bytecode; their numbers follow.

    Returns:
        The bytecode, the names of weights by number (None for constants), and their content by
        number. Weights outside of the bytecode have no content. None if it has no weights.

    Raises:
        ValueError, IndexError, KeyError: if the bytecode is damaged.

    >>> weights_in_bytecode(b"ML\xefR\rMLIR\0", "a.") is None
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
    weights.take_resources(found[BLOB_OFFSETS], found[BLOBS], builtin, data)

    def replaced(dialect: int, entry: memoryview) -> bytes | memoryview:
        if len(entry) < LARGE_BYTES or dialect not in (builtin, *vhlo):
            return entry
        return weights.replacement(entry, dialect in vhlo)

    values = _rewritten_values(found[OFFSETS], found[VALUES], replaced)
    if not weights.names:
        return None
    found[OFFSETS].data, found[VALUES].data = values
    found[BLOB_OFFSETS].data = weights.offsets(builtin)
    found[BLOBS].data, found[BLOBS].alignment = b"", 1
    found[STRINGS].data = _text_section(weights.texts)
    return assembled(head, sections), weights.names, weights.blobs


class _Weights:
    """The weights that are taken out.

    Attributes:
        texts: The texts of the bytecode, and added ones.
        names: Names of weights by number; None for constants.
        blobs: The content of weights by number.
    """

    def __init__(self, texts: list[bytes], prefix: str):
        self.texts = texts
        self.names: list[str | None] = []
        self.blobs: dict[int, memoryview] = {}
        self._prefix = prefix
        self._listed: list[tuple[int, list[int]]] = []
        self._constants: list[int] = []

    def _added(self, name: str | None) -> int:
        """Adds weights; returns the number of the text that is their handle."""
        self.texts.append(f"{self._prefix}{len(self.names)}".encode())
        self.names.append(name)
        return len(self.texts) - 1

    def take_resources(self, offsets: Section, blobs: Section, builtin: int, data: Content) -> None:
        """Takes the content of a dialect's resources; others keep only their names."""
        reader, contents = Reader(offsets.data), Reader(data, blobs.start)
        for _ in range(reader.number()):  # resources of programs, which MLIR does not know
            reader.number()
            for _ in range(reader.number()):
                _, size, _ = reader.number(), reader.number(), reader.taken(1)
                contents.taken(size)
        while not reader.is_at_end:
            dialect, count = reader.number(), reader.number()
            entries = []
            for _ in range(count):
                name, size, kind = reader.number(), reader.number(), bytes(reader.taken(1))
                if dialect == builtin:
                    name = self._added(self.texts[name].decode(errors="backslashreplace"))
                if dialect == builtin and size and kind == b"\0":
                    self.blobs[len(self.names) - 1] = _blob(contents, size)
                else:
                    contents.taken(size)
                entries.append(name)
            self._listed.append((dialect, entries))

    def replacement(self, entry: memoryview, is_vhlo: bool) -> bytes | memoryview:
        """Takes a constant; returns its replacement. Other entries stay."""
        reader = Reader(entry)
        code, kind = reader.number(), reader.number()
        if code != (_VHLO_DENSE if is_vhlo else _DENSE):
            return entry
        self.blobs[len(self.names)] = reader.taken(reader.number())
        number = self._added(None)
        if is_vhlo:
            return written(_VHLO_TEXT) + written(number)
        # Resources are counted over all dialects; the resources of constants come last.
        handle = sum(len(entries) for _, entries in self._listed) + len(self._constants)
        self._constants.append(number)
        return written(_RESOURCE) + written(kind) + written(handle)

    def offsets(self, builtin: int) -> bytes:
        """Returns the section that lists resources, without content."""
        groups = bytearray(written(0))
        added = [(builtin, self._constants)] if self._constants else []
        for dialect, entries in (*self._listed, *added):
            groups += written(dialect) + written(len(entries))
            groups += b"".join(written(name) + written(0) + b"\0" for name in entries)
        return bytes(groups)


def _blob(reader: Reader, length: int) -> memoryview:
    """Reads the content of a resource; its length includes alignment and padding."""
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

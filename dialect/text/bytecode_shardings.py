"""Attributes of Shardy in bytecode, which only their dialect can read: they become texts.

Shardy's `bytecode.td` describes their encoding: a number for the kind, then the fields. MLIR reads
a single attribute for an operation of an unknown dialect. Therefore computations of parts and
meshes get a dictionary in the form that `shardings.py` gives their texts. Attributes that say
nothing about a program become `unit`. Elsewhere: the format of bytecode (`bytecode.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .bytecode import (
    DIALECTS,
    OFFSETS,
    PROPERTIES,
    STRINGS,
    VALUES,
    Content,
    Reader,
    assembled,
    dialects_of,
    groups_of,
    sections_of,
    texts_of,
    written,
)

_SHARDY, _BUILTIN = b"sdy", b"builtin"
_UNIT = b"unit"
# Kinds of Shardy's attributes, by their numbers.
_AXES, _AXIS, _MESH, _NAME, _DIMENSION = 0, 1, 2, 4, 5
_SHARDINGS = (6, 15, 17)
_LISTS = (7, 16)
# Kinds of MLIR's own attributes.
_STRING, _SYMBOL = 2, 4


class _Attribute(NamedTuple):
    """An attribute in bytecode, and whether its dialect encoded it."""

    dialect: int
    content: memoryview
    is_encoded: bool


def without_foreign_attributes(data: Content) -> Content:
    """Returns bytecode in which MLIR can read Shardy's attributes; damaged bytecode as it is.

    >>> without_foreign_attributes(b"ML?")
    b'ML?'
    """
    if data.find(_SHARDY + b"\0") < 0:
        return data
    try:
        return _without_foreign(data)
    except (IndexError, ValueError, KeyError):  # the reader reports the fault
        return data


def _without_foreign(data: Content) -> bytes:
    head, sections = sections_of(data)
    found = {section.kind: section for section in sections}
    texts = texts_of(found[STRINGS].data)
    numbers = [dialects_of(found[DIALECTS].data, texts, {x}) for x in (_SHARDY, _BUILTIN)]
    offsets, values = Reader(found[OFFSETS].data), Reader(found[VALUES].data)
    counts = [offsets.number(), offsets.number()]
    attributes, types = (list(_attributes(offsets, values, count)) for count in counts)
    shardy = _Shardy(texts, attributes, *numbers)
    made = [shardy.readable(attribute) for attribute in attributes]
    if PROPERTIES in found:
        found[PROPERTIES].data, more = _named(found[PROPERTIES].data, shardy)
        made += more
    found[OFFSETS].data = written(len(made)) + written(len(types)) + _sizes(made) + _sizes(types)
    found[VALUES].data = b"".join(x.content for x in (*made, *types))
    return assembled(head, sections)


def _attributes(offsets: Reader, values: Reader, count: int) -> Iterator[_Attribute]:
    for dialect, entries in groups_of(offsets, count):
        for entry in entries:
            yield _Attribute(dialect, values.taken(entry >> 1), bool(entry & 1))


def _sizes(attributes: Sequence[_Attribute]) -> bytes:
    """Returns the part of the section that says where each attribute ends."""
    made = bytearray()
    for attribute in attributes:  # each is a group
        made += written(attribute.dialect) + written(1)
        made += written(len(attribute.content) << 1 | attribute.is_encoded)
    return bytes(made)


def _named(data: bytes | memoryview, shardy: _Shardy) -> tuple[bytes, list[_Attribute]]:
    """Returns the section of properties, and further attributes, dictionaries of Shardy's.

    An operation's entry is the list of its attributes in the order of their names.
    """
    reader = Reader(data)
    count = reader.number()
    kept, more = bytearray(written(count)), list[_Attribute]()
    for _ in range(count):
        entry: bytes | memoryview = reader.taken(reader.number())
        dictionary = shardy.dictionary(entry)
        if dictionary is not None:
            entry = written(len(shardy.attributes) + len(more))
            more.append(_Attribute(shardy.builtin, _text(dictionary), False))
        kept += written(len(entry)) + entry
    return bytes(kept), more


def _text(text: bytes) -> memoryview:
    return memoryview(text + b"\0")


class _Shardy:
    """Reads the attributes of Shardy.

    Attributes:
        attributes: All attributes of the bytecode.
        builtin: The number of MLIR's own dialect.
    """

    def __init__(
        self,
        texts: Sequence[bytes],
        attributes: Sequence[_Attribute],
        numbers: set[int],
        builtin: set[int],
    ):
        self.attributes = attributes
        self.builtin = min(builtin)
        self._texts = texts
        self._numbers = numbers

    def readable(self, attribute: _Attribute) -> _Attribute:
        """Returns an attribute as it is, or `unit` for one of Shardy."""
        if attribute.dialect not in self._numbers:
            return attribute
        return attribute._replace(content=_text(_UNIT), is_encoded=False)

    def dictionary(self, entry: bytes | memoryview) -> bytes | None:
        """Returns the attributes of a computation of parts, or of a mesh, as a dictionary."""
        numbers = _numbers_in(entry)
        if any(number >= len(self.attributes) for number in numbers):
            return None
        kinds = [self._kind(number) for number in numbers]
        if len(kinds) == 3 and kinds[1] == _AXES and {kinds[0], kinds[2]} <= set(_LISTS):
            inputs, manual, outputs = (self._shown(number) for number in numbers)
            said = {b"in_shardings": inputs, b"manual_axes": manual, b"out_shardings": outputs}
            entries = (b'%s = "%s"' % (k, v.replace(b'"', b'\\"')) for k, v in said.items())
            return b"{%s}" % b", ".join(entries)
        if len(kinds) == 2 and kinds[0] == _MESH and self._is_string(numbers[1]):
            return self._mesh(*numbers)
        return None

    def _is_string(self, number: int) -> bool:
        """Tells whether a number is of a text; 0 stands for an absent one in other operations."""
        attribute = self.attributes[number]
        is_known = number > 0 and attribute.dialect == self.builtin and attribute.is_encoded
        return is_known and Reader(attribute.content).number() == _STRING

    def _kind(self, number: int) -> int | None:
        """Returns the kind of an attribute of Shardy; None for others."""
        attribute = self.attributes[number]
        return Reader(attribute.content).number() if attribute.dialect in self._numbers else None

    def _mesh(self, mesh: int, name: int) -> bytes | None:
        """Returns the attributes of a mesh; none for a mesh with an explicit order of devices."""
        reader = self._reader(mesh)
        axes = [self._reader(number) for number in _list(reader)]
        if reader.number():
            return None
        names, sizes = [], []
        for axis in axes:
            names.append(b'"%s"' % self._texts[axis.number()])
            sizes.append(b"%d" % _signed(axis.number()))
        given = b": " + b", ".join(sizes) if sizes else b""
        listed = b", ".join(names)
        shown = self._shown(name)
        return b'{sym_name = "%s", axes = [%s], sizes = array<i64%s>}' % (shown, listed, given)

    def _reader(self, number: int) -> Reader:
        """Returns a reader of the fields of an attribute."""
        reader = Reader(self.attributes[number].content)
        reader.number()
        return reader

    def _shown(self, number: int) -> bytes:
        """Returns the text of an attribute, as in the text of a computation of parts."""
        reader = Reader(self.attributes[number].content)
        kind = reader.number()
        if self.attributes[number].dialect == self.builtin:
            if kind == _SYMBOL:
                return b"@" + self._shown(reader.number())
            if kind != _STRING:
                raise ValueError("a text is expected")
            return self._texts[reader.number()]
        if kind in _SHARDINGS:
            mesh = self._shown(reader.number())
            return b"<%s, [%s]>" % (mesh, b", ".join(map(self._shown, _list(reader))))
        if kind == _DIMENSION:
            return b"{%s}" % b", ".join(map(self._shown, _list(reader)))
        if kind == _NAME:
            name = self._texts[reader.number()]
            return b'"%s"%s' % (name, b":part" if reader.number() else b"")
        if kind == _AXES:
            return b", ".join(b'"%s"' % self._shown(each) for each in _list(reader))
        if kind in _LISTS:
            return b", ".join(map(self._shown, _list(reader)))
        raise ValueError("an attribute of Shardy is unknown")


def _list(reader: Reader) -> list[int]:
    return [reader.number() for _ in range(reader.number())]


def _numbers_in(entry: bytes | memoryview) -> list[int]:
    """Returns the first numbers of an entry, up to four; none if it holds something else."""
    reader, numbers = Reader(entry), list[int]()
    try:
        while not reader.is_at_end and len(numbers) < 4:
            numbers.append(reader.number())
    except ValueError:
        return []
    return numbers


def _signed(number: int) -> int:
    return number >> 1 ^ -(number & 1)

"""Weights in the text of a module, taken out of it before MLIR reads it: they stay where they are.

These are resources, which stand in sections behind the operations, and large constants in
hexadecimal digits, which become resources. Elsewhere: bytecode (`bytecode_weights.py`), the weights
(`resources.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from axir.dialect.core.errors import WeightsError

from .bytecode import Content
from .bytecode_weights import LARGE_BYTES

__all__ = ["damaged", "weights_in_text"]

_SECTION = b"{-#"
_SECTION_END = b"#-}"
_STRING = rb'"[^"\\\n]*(?:\\.[^"\\\n]*)*"'
_USE = re.compile(rb"%s|//[^\n]*|dense_resource<\s*(%s|[^>\s\"]+)\s*>" % (_STRING, _STRING))
_ESCAPE = re.compile(rb"\\(?:([0-9A-Fa-f]{2})|(.))", re.DOTALL)
_LETTERS = {b"n": b"\n", b"t": b"\t"}
_TOKEN = re.compile(rb"\s*(?:([A-Za-z_0-9][\w$.-]*)|(\S))")
# A constant in digits, and the text behind it. An element has whole bytes, in their order.
_DIGITS = b'dense<"0x'
_ELEMENT = rb"(?:f64|f32|f16|bf16|[us]?i(?:64|32|16|8))"
_TYPE = re.compile(rb'"\s*>\s*:\s*tensor<(?:\d+x)*(?:%s|complex<%s>)>' % (_ELEMENT, _ELEMENT))
_LONGEST_TYPE = 400
# The name of a constant until it has a handle: no resource can have this name.
_CONSTANT = b"#"
_PATH = ["", "dialect_resources", "builtin"]
_INDENTATION = 80


def weights_in_text(
    data: Content, prefix: str, name: str
) -> tuple[bytes, list[str | None], dict[int, memoryview]] | None:
    """Returns text without its weights, and the weights in hexadecimal digits.

    Args:
        data: The text.
        prefix: The beginning of weights' handles in the new text; their numbers follow.
        name: Name of the text.

    Returns:
        The text, the names of weights by number (None for constants), and their digits by number.
        Weights outside of the text have no digits. None if it has no weights.

    Raises:
        WeightsError: if weights are cut off.
    """
    parts = _Text(data)
    if not parts.constants and data.find(b"dense_resource") < 0:
        return None
    if not parts.is_whole:
        raise damaged("they are cut off", name)
    names: list[str | None] = [None] * len(parts.constants)
    digits = dict(enumerate(parts.constants))
    constants = {b"%s%d" % (_CONSTANT, number): number for number in digits}
    numbers: dict[str, int] = {}
    for section in parts.sections:
        for label, content in _written(data, section, name):
            numbers[label] = len(names)
            digits[len(names)] = content
            names.append(label)

    def handle(found: re.Match[bytes]) -> bytes:
        if found[1] is None:
            return found[0]
        if found[1].startswith(_CONSTANT):
            place = constants.get(found[1])
            if place is None:
                return found[0]  # not the name of a resource: MLIR's parser reports it
            number = place
        else:
            label = _unescaped(found[1])
            number = numbers.setdefault(label, len(names))
            if number == len(names):
                names.append(label)
        return b"dense_resource<%s%d>" % (prefix.encode(), number)

    return _USE.sub(handle, b"".join(parts.pieces)), names, digits


class _Text:
    """Text of a module in parts.

    Attributes:
        pieces: The text, with large constants as resources called `#0`, `#1`, ...
        constants: The content of these constants, in hexadecimal digits.
        sections: The start and the end of each section of resources.
        is_whole: Whether all sections have an end.
    """

    def __init__(self, data: Content):
        self.constants: list[memoryview] = []
        self.sections: list[tuple[int, int]] = []
        self.is_whole = True
        self.pieces: list[bytes | memoryview] = []
        begin = 0
        while (place := _section_start(data, begin)) >= 0:
            self.pieces += self._without_constants(data, begin, place)
            end = _section_end(data, place + len(_SECTION))
            if end < 0:
                self.is_whole = False
                end = len(data)
            self.sections.append((place + len(_SECTION), end))
            begin = end + len(_SECTION_END)
        self.pieces += self._without_constants(data, begin, len(data))

    def _without_constants(
        self, data: Content, begin: int, limit: int
    ) -> Iterator[bytes | memoryview]:
        memory = memoryview(data)
        position = begin
        while (start := data.find(_DIGITS, position, limit)) >= 0:
            position = start + len(_DIGITS)
            end = data.find(b'"', position, limit)
            is_large = end - position >= 2 * LARGE_BYTES
            if not is_large or not _TYPE.match(data[end : end + _LONGEST_TYPE]):
                continue
            yield memory[begin:start]
            yield b"dense_resource<%s%d" % (_CONSTANT, len(self.constants))
            self.constants.append(memory[position:end])
            begin = position = end + 1
        yield memory[begin:limit]


def _section_start(data: Content, position: int) -> int:
    """Returns the start of the next section of resources, or a negative number if absent."""
    while (position := data.find(_SECTION, position)) >= 0:
        line = data[max(0, position - _INDENTATION) : position].rpartition(b"\n")[2]
        if not line.strip():
            break
        position += 1
    return position


def _section_end(data: Content, position: int) -> int:
    """Returns the end of a section, negative if absent; its strings may have gigabytes."""
    while True:
        quote = data.find(b'"', position)
        end = data.find(_SECTION_END, position, quote if quote >= 0 else len(data))
        if end >= 0 or quote < 0:
            return end
        close = _end_of_string(data, quote + 1, len(data))
        if close < 0:
            return close
        position = close + 1


def _written(
    data: Content, section: tuple[int, int], name: str
) -> Iterator[tuple[str, memoryview]]:
    """Yields the arrays of a section by name, in hexadecimal digits.

    Args:
        data: The text.
        section: The start and the end of the section in it.
        name: Name of the text.
    """
    memory = memoryview(data)
    path = [""]
    key = ""
    position, end = section
    while (found := _TOKEN.match(memory, position, end)) is not None:
        position = found.end()
        sign = found[2]
        begin, close = found.span(1)
        if sign == b'"':
            begin, close = position, _end_of_string(data, position, end)
            position = close + 1
        if sign == b"{":
            path.append(key)
        elif sign == b"}" and len(path) > 1:
            path.pop()
        elif sign == b"}":
            raise damaged("a bracket is closed that was not opened", name)
        elif sign == b'"' and path == _PATH and not _is_key(memory, position):
            if data[begin : begin + 2] != b"0x":
                raise damaged(f"{key!r} is not written in hexadecimal digits", name)
            yield key, memory[begin + 2 : close]
        elif sign in (None, b'"'):
            key = _text_of(data[begin:close])
    if path != [""]:
        raise damaged("they are cut off", name)


def _end_of_string(data: Content, position: int, end: int) -> int:
    """Returns the end of a string, negative if absent."""
    close = data.find(b'"', position, end)
    while close >= 0:
        before = close
        while data[before - 1 : before] == b"\\" and before > position:
            before -= 1
        if (close - before) % 2 == 0:
            break
        close = data.find(b'"', close + 1, end)
    return close


def _unescaped(word: bytes) -> str:
    """Returns the name of a resource, as it stands in text, perhaps in quotes."""
    return _text_of(word[1:-1] if word.startswith(b'"') else word)


def _text_of(content: bytes) -> str:
    """Returns the text of one of MLIR's strings, which write bytes beyond ASCII as digits."""

    def plain(found: re.Match[bytes]) -> bytes:
        if found[1] is not None:
            return bytes.fromhex(found[1].decode())
        return _LETTERS.get(found[2], found[2])

    return _ESCAPE.sub(plain, content).decode(errors="backslashreplace")


def _is_key(section: memoryview, position: int) -> bool:
    """Tells whether a key ends at a position, with a colon behind it."""
    return bytes(section[position : position + _INDENTATION]).lstrip()[:1] == b":"


def damaged(what: str, file: str) -> WeightsError:
    """Returns the error of weights that cannot be read."""
    return WeightsError(
        f"The weights of {file} cannot be read: {what}.",
        "The module is damaged: export it again.",
        where="",
    )

"""Messages of protocol buffers, written field by field.

The encoding: a field is its number and its kind, followed by a variable-length integer, or by a
length and bytes (protobuf.dev, "Encoding"). In axir, only profiles of memory are such files.
"""

from __future__ import annotations

from collections.abc import Iterable

_NUMBER, _BYTES = 0, 2


def number(field: int, value: int) -> bytes:
    """Returns a field that holds an integer, negative ones as 64 bits.

    >>> number(1, 300).hex()
    '08ac02'
    """
    return _varint(field << 3 | _NUMBER) + _varint(value & (1 << 64) - 1)


def message(field: int, content: bytes | str) -> bytes:
    """Returns a field that holds a message, or text."""
    encoded = content.encode() if isinstance(content, str) else content
    return _varint(field << 3 | _BYTES) + _varint(len(encoded)) + encoded


def numbers(field: int, values: Iterable[int]) -> bytes:
    """Returns a field that holds several integers, packed."""
    return message(field, b"".join(_varint(value & (1 << 64) - 1) for value in values))


def _varint(value: int) -> bytes:
    """Returns seven bits for each byte, the lowest first; the eighth says that more follow."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)

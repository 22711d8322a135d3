"""Messages between a process and its helper: a length, then a value in the format of `marshal`.

Both ends are the same Python, so `marshal` suffices; the streams are unbuffered pipes.
"""

from __future__ import annotations

import io
import marshal
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from marshal import _Marshallable

_LENGTH = struct.Struct("<Q")


def send(stream: io.RawIOBase, *message: _Marshallable) -> None:
    """Writes a message; raises OSError if the reading end is closed."""
    content = marshal.dumps(message)
    rest = memoryview(_LENGTH.pack(len(content)) + content)
    while rest:
        rest = rest[stream.write(rest) :]


def receive(stream: io.RawIOBase) -> tuple | None:
    """Reads a message; returns None if the other side has closed, even within a message."""
    header = _read(stream, _LENGTH.size)
    content = None if header is None else _read(stream, _LENGTH.unpack(header)[0])
    return None if content is None else marshal.loads(content)


def _read(stream: io.RawIOBase, size: int) -> bytearray | None:
    content = bytearray(size)
    rest = memoryview(content)
    while rest:
        count = stream.readinto(rest)
        if not count:
            return None
        rest = rest[count:]
    return content

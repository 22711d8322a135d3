"""Messages over sockets: a table as JSON, and bytes. Nothing that is read is executed."""

from __future__ import annotations

import json
import socket
import struct
import threading

from axir.dialect.core.annotations import UserObject

Message = dict[str, UserObject]
_LENGTHS = struct.Struct("<II")
_MOST_HEADER = 1 << 24


class Connection:
    """A socket that carries messages; several threads may send, one receives.

    Args:
        found: A connected socket.
    """

    def __init__(self, found: socket.socket):
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = found
        self._lock = threading.Lock()
        self._received = bytearray()

    def fileno(self) -> int:
        """Returns the number by which the system knows the socket."""
        return self.socket.fileno()

    def send(self, message: Message, content: bytes = b"") -> None:
        """Sends a message.

        Raises:
            OSError: the other side has closed.
        """
        header = json.dumps(message).encode()
        with self._lock:
            self.socket.sendall(_LENGTHS.pack(len(header), len(content)) + header + content)

    def receive(self) -> tuple[Message, bytes]:
        """Waits for a message, and returns it.

        Raises:
            OSError: the other side has closed.
        """
        while (found := self.take()) is None:
            self.fill(self._missing())
        return found

    def _missing(self) -> int:
        """Returns how many bytes at least belong to the message that is coming."""
        received = self._received
        if len(received) < _LENGTHS.size:
            return _LENGTHS.size - len(received)
        return _LENGTHS.size + sum(_LENGTHS.unpack_from(received)) - len(received)

    def fill(self, most: int = 1 << 16) -> None:
        """Waits for bytes, and keeps them.

        Args:
            most: The most bytes to take: the bytes after a message may be for others.

        Raises:
            OSError: the other side is gone.
        """
        found = self.socket.recv(most)
        if not found:
            raise ConnectionResetError("the connection was closed")
        self._received += found

    def take(self) -> tuple[Message, bytes] | None:
        """Returns the next message of the bytes that have come; None if it is not all there.

        Raises:
            ConnectionError: the bytes are not a message.
        """
        received = self._received
        if len(received) < _LENGTHS.size:
            return None
        header, content = _LENGTHS.unpack_from(received)
        if header > _MOST_HEADER:
            raise ConnectionError("what has come is no message")
        end = _LENGTHS.size + header + content
        if len(received) < end:
            return None
        start = _LENGTHS.size + header
        try:
            message = json.loads(bytes(received[_LENGTHS.size : start]))
        except ValueError:
            raise ConnectionError("what has come is no message") from None
        found = message, bytes(received[start:end])
        del received[:end]
        return found

    def close(self) -> None:
        """Closes the socket."""
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:  # the other side has closed it
            self.socket.close()
            return
        self.socket.close()


def address(text: str, what: str) -> tuple[str, int]:
    """Returns host and port of `host:port`.

    Raises:
        ValueError: if the text has another form.

    >>> address("localhost:1234", "coordinator_address"), address("[::1]:80", "x")
    (('localhost', 1234), ('::1', 80))
    """
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or not 0 <= int(port) < 1 << 16:
        raise ValueError(f"{what}={text!r} is not of the form host:port")
    return host.strip("[]"), int(port)


def listening(host: str, port: int) -> socket.socket:
    """Returns a socket that waits for connections; port 0 is any that is free."""
    if host in ("", "::", "0.0.0.0"):
        both = socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if both else socket.AF_INET
        return socket.create_server(("", port), family=family, dualstack_ipv6=both)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family)

"""The coordinator: a thread of process 0 that all processes talk to, and that notices a loss.

It collects the arguments of `all_gather`, reports to all processes that one fails or ends, and
reports a process as lost when its connection breaks or it is silent for too long. Elsewhere: the
processes' side (`member.py`), and the elements of arrays, which do not pass through here.
"""

from __future__ import annotations

import secrets
import selectors
import socket
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field

from axir.dialect.core.annotations import UserObject

from .wire import Connection, Message

# The interval between checks for silent processes, in seconds.
_LOOK_SECONDS = 0.2


@dataclass
class _Peer:
    connection: Connection
    heard: float
    index: int | None = None
    state: str = ""


@dataclass
class _Gathering:
    contents: dict[int, bytes] = field(default_factory=dict)


class Coordinator:
    """The process that all others connect to.

    Args:
        server: A socket that listens for them.
        count: The number of processes.
        silence: Seconds of silence after which a process counts as lost.

    Attributes:
        port: The port that it listens on.
    """

    def __init__(self, server: socket.socket, count: int, silence: float):
        self._server = server
        self.port = int(server.getsockname()[1])
        self._count = count
        self._silence = silence
        self._selector = selectors.DefaultSelector()
        self._peers: dict[int, _Peer] = {}
        self._infos: dict[int, UserObject] = {}
        self._gatherings: dict[tuple[str, int], _Gathering] = defaultdict(_Gathering)
        self._gone: set[int] = set()
        self._is_closed = False
        server.setblocking(False)
        self._selector.register(server, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name="axir coordinator", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the thread, and closes all connections."""
        self._is_closed = True
        self._thread.join(5)

    def _run(self) -> None:
        while not self._is_closed:
            for key, _ in self._selector.select(_LOOK_SECONDS):
                if key.fileobj is self._server:
                    self._accept()
                else:
                    self._hear(key.data)
            self._look_for_silent()
        for key in list(self._selector.get_map().values()):
            if key.data is not None:
                key.data.connection.close()
        self._server.close()
        self._selector.close()

    def _accept(self) -> None:
        try:
            found, _ = self._server.accept()
        except OSError:  # it has closed the connection meanwhile
            return
        found.setblocking(True)
        # A process that does not read must not block all others.
        found.settimeout(self._silence)
        peer = _Peer(Connection(found), time.monotonic())
        self._selector.register(peer.connection, selectors.EVENT_READ, peer)

    def _hear(self, peer: _Peer) -> None:
        try:
            peer.connection.fill()
            peer.heard = time.monotonic()
            while (found := peer.connection.take()) is not None:
                self._answer(peer, *found)
        except (OSError, KeyError, TypeError, ValueError) as error:
            self._lose(peer, "its connection has ended", error)

    def _lose(self, peer: _Peer, reason: str, error: BaseException | None = None) -> None:
        """Drops a connection; if it was a process's, reports the loss to all others."""
        try:
            self._selector.unregister(peer.connection)
        except (KeyError, ValueError):
            return
        peer.connection.close()
        if peer.index is not None:
            self._peers.pop(peer.index, None)
            if peer.index not in self._gone:
                self._gone.add(peer.index)
                self._tell_all({"kind": "lost", "index": peer.index, "reason": reason})

    def _answer(self, peer: _Peer, message: Message, content: bytes) -> None:
        kind = message["kind"]
        if kind == "hello":
            self._welcome(peer, message)
        elif peer.index is None:
            raise ConnectionError("a process says who it is first")
        elif kind == "gather":
            self._gather(peer, message, content)
        elif kind == "beat":
            self._tell(peer, message)
        elif kind == "state":
            peer.state = str(message["text"])
        elif kind == "states":
            states = {index: other.state for index, other in self._peers.items()}
            self._tell(peer, {"kind": "states", "states": states})
        elif kind in ("abort", "bye"):
            if kind == "bye":
                self._gone.add(peer.index)
            self._tell_all({**message, "index": peer.index})

    def _welcome(self, peer: _Peer, message: Message) -> None:
        index = int(message["index"])
        reason = None
        if message["count"] != self._count:
            reason = f"it was told of {message['count']} processes, process 0 of {self._count}"
        elif index in self._infos:
            reason = f"there are two processes {index}"
        if reason is not None:
            self._tell(peer, {"kind": "refused", "reason": reason})
            return
        peer.index = index
        self._peers[index] = peer
        self._infos[index] = message["info"]
        if len(self._infos) == self._count:
            infos = [self._infos[n] for n in range(self._count)]
            secret = secrets.token_hex(16)
            self._tell_all({"kind": "welcome", "infos": infos, "secret": secret})

    def _gather(self, peer: _Peer, message: Message, content: bytes) -> None:
        key = str(message["name"]), int(message["number"])
        gathering = self._gatherings[key]
        assert peer.index is not None
        gathering.contents[peer.index] = content
        if len(gathering.contents) == self._count:
            contents = [gathering.contents[n] for n in range(self._count)]
            del self._gatherings[key]
            answer = {"kind": "gathered", "name": key[0], "number": key[1]}
            answer["sizes"] = [len(x) for x in contents]
            self._tell_all(answer, b"".join(contents))

    def _look_for_silent(self) -> None:
        now = time.monotonic()
        for peer in list(self._peers.values()):
            if now - peer.heard > self._silence:
                self._lose(peer, f"it has not been heard of for {self._silence:g} seconds")

    def _tell_all(self, message: Message, content: bytes = b"") -> None:
        for peer in list(self._peers.values()):
            self._tell(peer, message, content)

    def _tell(self, peer: _Peer, message: Message, content: bytes = b"") -> None:
        try:
            peer.connection.send(message, content)
        except OSError as error:
            self._lose(peer, "its connection has ended", error)

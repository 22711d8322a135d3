"""Sockets: carry bytes among processes that need nothing but a network.

Each process waits for the others at an address that the coordinator has told; of two processes, the
one with the larger number connects. Elsewhere: MPI (`mpi.py`).
"""

from __future__ import annotations

import hmac
import select
import socket
import threading
from collections.abc import Sequence

import numpy as np

from axir.dialect.core.annotations import HostArray
from axir.runtime.errors import ProcessLostError

from .member import Member, Patience
from .wire import Connection, Message, listening

_PIECE = 1 << 20


class Sockets:
    """The address at which the processes of a job reach this one, and the accepted connections.

    Args:
        host: The address to listen on; empty for all.

    Attributes:
        port: The port that others may connect to.
    """

    def __init__(self, host: str):
        self._server = listening(host, 0)
        self.port = int(self._server.getsockname()[1])
        self._secret: str | None = None
        self._changed = threading.Condition()
        self._found: dict[tuple[int, str], socket.socket] = {}
        self._used: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, name="axir sockets", daemon=True)
        self._thread.start()

    def know(self, secret: str) -> None:
        """Admits connections that prove to know the job's secret."""
        with self._changed:
            self._secret = secret
            self._changed.notify_all()

    def _accept(self) -> None:
        while True:
            try:
                found, _ = self._server.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._admit, args=(found,), daemon=True).start()

    def _admit(self, found: socket.socket) -> None:
        """Accepts a connection of a process of this job, and closes others."""
        connection = Connection(found)
        try:
            found.settimeout(10)
            message, _ = connection.receive()
            with self._changed:
                self._changed.wait_for(lambda: self._secret is not None, 10)
            if not hmac.compare_digest(str(message["secret"]), self._secret or ""):
                raise ConnectionError("it does not belong to this job")
            key = int(message["index"]), str(message["name"])
        except (OSError, KeyError, TypeError, ValueError):
            connection.close()
            return
        with self._changed:
            self._found[key] = found
            self._changed.notify_all()

    def connected(self, member: Member, other: int, name: str, patience: Patience) -> socket.socket:
        """Returns a socket to another process; both sides name its purpose equally."""
        if other < member.index:
            info: Message = member.infos[other]
            connection = Connection(socket.create_connection((info["address"], info["port"]), 30))
            connection.send({"secret": self._secret, "index": member.index, "name": name})
            found = connection.socket
        else:
            with self._changed:
                while (other, name) not in self._found:
                    patience.look()
                    self._changed.wait(Patience.SECONDS)
                found = self._found.pop((other, name))
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        found.setblocking(False)
        self._used.append(found)
        return found

    def close(self) -> None:
        """Stops waiting for connections, and closes the open ones."""
        for found in [*self._used, *self._found.values()]:
            found.close()
        # A thread that waits in `accept` does not notice that the socket is closed.
        try:
            self._server.shutdown(socket.SHUT_RDWR)
        except OSError:
            self._server.close()
            return
        self._server.close()


class SocketTransport:
    """Carries bytes by sockets, from each process to each.

    Args:
        processes: Which processes, ascending; all of them make one.
        name: A name that distinguishes this transport from others: all processes pass the same.
        member: This process.
        sockets: The sockets that connect the processes.

    Attributes:
        processes: Which processes.
    """

    def __init__(
        self, processes: tuple[int, ...], name: str, member: Member, sockets: Sockets
    ) -> None:
        self.processes = processes
        self._member = member
        self._place = processes.index(member.index)
        patience = Patience(member, f"the connections of {name}", processes)
        self._sockets = {
            place: sockets.connected(member, other, name, patience)
            for place, other in enumerate(processes)
            if other != member.index
        }
        patience.end()

    def all_gather(self, part: HostArray, patience: Patience) -> HostArray:
        """Returns the arguments of all processes, in their order; see `Transport`."""
        found = np.empty((len(self.processes), part.size), np.uint8)
        found[self._place] = part
        self._exchange({place: part for place in self._sockets}, found, patience)
        return found

    def all_to_all(
        self, parts: Sequence[HostArray], sizes: Sequence[int], patience: Patience
    ) -> list[HostArray]:
        """Returns the bytes that each process has for this one, in their order; see `Transport`."""
        found = [np.empty(size, np.uint8) for size in sizes]
        found[self._place] = parts[self._place]
        self._exchange({place: parts[place] for place in self._sockets}, found, patience)
        return found

    def _exchange(
        self,
        sent: dict[int, HostArray],
        received: Sequence[HostArray] | HostArray,
        patience: Patience,
    ) -> None:
        """Sends to all and receives from all, in the order in which they are ready."""
        to_send = {place: part.data for place, part in sent.items() if part.size}
        to_receive = {p: received[p].data for p in self._sockets if received[p].size}
        place_of = {self._sockets[place].fileno(): place for place in self._sockets}
        while to_send or to_receive:
            readable, writable, _ = select.select(
                [self._sockets[place] for place in to_receive],
                [self._sockets[place] for place in to_send],
                [],
                Patience.SECONDS,
            )
            if not readable and not writable:
                patience.look()
            for found in readable:
                self._progress(place_of[found.fileno()], to_receive, found.recv_into, patience)
            for found in writable:
                self._progress(place_of[found.fileno()], to_send, found.send, patience)
        patience.end()

    def _progress(
        self,
        place: int,
        left: dict[int, memoryview],
        move: object,
        patience: Patience,
    ) -> None:
        """Moves some bytes, and drops the processes that have all their bytes."""
        assert callable(move)
        try:
            count = move(left[place][:_PIECE])
        except BlockingIOError:
            return
        except OSError:
            count = 0
        if not count:
            patience.listen()
            name = self._member.name_of(self.processes[place])
            error = ProcessLostError(
                f"{name.capitalize()} was lost: its connection has ended.",
                "It was killed or has failed: look at what it says, and start the job again from "
                "its last checkpoint.",
            )
            self._member.fail(lambda: type(error)(error.message, error.way_out))
            raise error
        left[place] = left[place][count:]
        if not left[place]:
            del left[place]

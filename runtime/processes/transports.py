"""Transports: sockets and MPI carry bytes among the processes of a mesh.

With sockets, which need nothing but a network, each process waits for the others at an address that
the coordinator has told; of two processes, the one with the larger number connects. MPI, through
mpi4py, is for processes that `mpirun` has started. Calls do not block, so that a process that waits
notices the loss of another one. Elsewhere: how the loss is noticed (`coordinator.py`).
"""

from __future__ import annotations

import atexit
import hmac
import os
import select
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np

from axir.dialect.core.annotations import Foreign, HostArray
from axir.runtime.errors import DistributedSetupError, ProcessLostError

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


# A process polls for this long, and for as long as so many bytes may take: MPI moves bytes only
# while it is polled. Then it sleeps between polls, because others may need the core.
_SPIN_SECONDS = 2e-3
_BYTES_PER_SECOND = 5e8
_REST_SECONDS = 5e-5
_YIELD_SECONDS = 2e-5
_yield = getattr(os, "sched_yield", lambda: None)  # not all systems have it


def world() -> Foreign:
    """Returns mpi4py's communicator of all processes.

    Raises:
        DistributedSetupError: mpi4py is not installed, or finds no MPI.
    """
    try:
        from mpi4py import MPI  # late: optional, and to import it starts MPI
    except (ImportError, RuntimeError) as error:
        raise DistributedSetupError(
            f"MPI is not to be had: {error}.",
            "Install it (pip install 'axir[distributed]'), or pass coordinator_address, "
            "num_processes and process_id, with which processes need no MPI.",
        ) from None
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        raise DistributedSetupError(
            "MPI was started for a single thread, but devices have a thread each.",
            "Import mpi4py.MPI as it comes, without other settings of mpi4py.rc.",
        )
    return MPI.COMM_WORLD


class MpiTransport:
    """Carries bytes by MPI.

    Args:
        processes: Which processes, ascending; all of them make one.
        tag: A small number that distinguishes this transport from others that begin at the same
            time.

    Attributes:
        processes: Which processes.
    """

    def __init__(self, processes: tuple[int, ...], tag: int):
        communicator = world()
        self.processes = processes
        group = communicator.Get_group().Incl(list(processes))
        self._communicator = communicator.Create_group(group, tag)
        self._memory = np.empty(0, np.uint8)
        self._bytes = sys.modules["mpi4py.MPI"].BYTE

    def all_gather(self, part: HostArray, patience: Patience) -> HostArray:
        """Returns the arguments of all processes, in their order; see `Transport`."""
        size = len(self.processes) * part.size
        if self._memory.size < size:  # fresh memory costs as much as the exchange
            self._memory = np.empty(size, np.uint8)
        found = self._memory[:size].reshape(len(self.processes), part.size)
        request = self._communicator.Iallgather([part, self._bytes], [found, self._bytes])
        self._wait(request, size, patience)
        return found

    def all_to_all(
        self, parts: Sequence[HostArray], sizes: Sequence[int], patience: Patience
    ) -> list[HostArray]:
        """Returns the bytes that each process has for this one, in their order; see `Transport`."""
        sent = np.concatenate(parts) if len(parts) > 1 else parts[0]
        received = np.empty(sum(sizes), np.uint8)
        counts = [part.size for part in parts]
        request = self._communicator.Ialltoallv(
            [sent, counts, _starts(counts), self._bytes],
            [received, list(sizes), _starts(sizes), self._bytes],
        )
        self._wait(request, received.size, patience)
        return np.split(received, _starts(sizes)[1:])

    def _wait(self, request: Foreign, size: int, patience: Patience) -> None:
        """Waits for a request of so many bytes."""
        test, spinning = request.Test, _SPIN_SECONDS + size / _BYTES_PER_SECOND
        now = began = time.monotonic()
        looked = began
        while not test():
            now = time.monotonic()
            if now - looked > Patience.SECONDS:
                looked = now
                patience.look()
            if now - began > spinning:
                time.sleep(_REST_SECONDS)
            elif now - began > _YIELD_SECONDS:
                _yield()  # to the other process, if it shares the core
        patience.end()


def _starts(sizes: Sequence[int]) -> list[int]:
    return [0, *np.cumsum(sizes)[:-1].tolist()]


def end_if_broken(has_failed: Callable[[], bool]) -> None:
    """Sees to it that the process ends, although MPI would wait for one that is lost."""

    def end() -> None:
        if has_failed():
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(1)

    atexit.register(end)

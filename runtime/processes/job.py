"""`Job`: the processes that compute together, from their first meeting to their end."""

from __future__ import annotations

import atexit
import os
import socket
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from axir.dialect.core.annotations import Foreign
from axir.runtime.errors import DistributedSetupError

from . import group
from .coordinator import Coordinator
from .member import Member, Transport
from .transports import MpiTransport, Sockets, SocketTransport, end_if_broken, world
from .wire import address, listening

# Transports are identified by MPI's tags; MPI guarantees tags up to this number.
_TAGS = 1 << 15


@dataclass(frozen=True)
class Times:
    """Timeouts of processes, in seconds.

    Attributes:
        setup: Until all have connected.
        silence: Silence after which a process counts as lost.
        shutdown: The wait at the end for all others.
    """

    setup: float = 300
    silence: float = 100
    shutdown: float = 300


class Job:
    """The processes that compute together.

    Args:
        member: This process.
        connect: Makes the transport among some processes, given a name that all of them pass.
        shutdown_seconds: How long to wait at the end until all others have come to it.
        coordinator: The coordinator, in process 0.
        sockets: The sockets at which the others reach this one, if they use sockets.
    """

    def __init__(
        self,
        member: Member,
        connect: Callable[[tuple[int, ...], str], Transport],
        shutdown_seconds: float,
        coordinator: Coordinator | None,
        sockets: Sockets | None = None,
    ):
        self.member = member
        member.connect = connect
        self._shutdown_seconds = shutdown_seconds
        self.coordinator = coordinator
        self._sockets = sockets
        self._reason: str | None = None
        self._is_over = False
        self._hook = sys.excepthook
        sys.excepthook = self._remember
        atexit.register(self.end)
        group.become(member)

    def _remember(self, kind: type[BaseException], error: BaseException, trace: Foreign) -> None:
        """Keeps the exception that ends the program, so that the others can be told."""
        self._reason = f"{kind.__name__}: {error}".splitlines()[0]
        self._hook(kind, error, trace)

    def end(self) -> None:
        """Leaves the job: waits until all processes have come to the end, unless one failed."""
        if self._is_over:
            return
        self._is_over = True
        atexit.unregister(self.end)
        if sys.excepthook == self._remember:
            sys.excepthook = self._hook
        self.member.leave(self._reason, self._shutdown_seconds)
        if self.coordinator is not None:
            self.coordinator.close()
        if self._sockets is not None:
            self._sockets.close()
        group.become(group.Alone())

    @property
    def has_failed(self) -> bool:
        """Whether this process or another one has failed."""
        return self._reason is not None or self.member.is_broken


def meet_by_sockets(
    coordinator: str, count: int, index: int, devices: int, bind: str | None, times: Times
) -> Job:
    """Meets the other processes at an address, and begins to compute with them.

    Args:
        coordinator: `host:port` of process 0.
        count: The number of processes.
        index: The number of this process.
        devices: The number of devices that its CPU has.
        bind: `host:port` that process 0 listens on; by default all addresses.
        times: The timeouts.

    Raises:
        DistributedSetupError: if the processes do not find each other.
    """
    place = _address(coordinator, "coordinator_address")
    service = None
    if index == 0:
        host, port = _address(bind, "coordinator_bind_address") if bind else ("", place[1])
        service = _coordinator(host, port, count, times)
    sockets = Sockets("")
    try:
        member = Member(
            place, index, count, _info(sockets.port, devices), times.setup, times.silence
        )
    except DistributedSetupError:
        sockets.close()
        if service is not None:
            service.close()
        raise
    sockets.know(member.secret)

    def connect(processes: tuple[int, ...], name: str) -> Transport:
        return SocketTransport(processes, f"{name} {processes}", member, sockets)

    return Job(member, connect, times.shutdown, service, sockets)


def meet_by_mpi(devices: int, times: Times) -> Job:
    """Meets the other processes that `mpirun` has started, and begins to compute with them.

    Args:
        devices: The number of devices that this process's CPU has.
        times: How long to wait.

    Raises:
        DistributedSetupError: if MPI is missing, or the processes do not find each other.
    """
    communicator = world()
    index, count = communicator.Get_rank(), communicator.Get_size()
    service, told = None, None
    hosts = communicator.allgather(socket.gethostname())
    if index == 0:
        service = _coordinator("", 0, count, times)
        told = ["127.0.0.1" if len(set(hosts)) == 1 else _own_address(), service.port]
    host, port = communicator.bcast(told)
    member = Member((host, port), index, count, _info(0, devices), times.setup, times.silence)

    def connect(processes: tuple[int, ...], name: str) -> Transport:
        return MpiTransport(processes, zlib.crc32(f"{name} {processes}".encode()) % _TAGS)

    jobs: list[Job] = []
    # Called after the end of the job, since it is registered before.
    end_if_broken(lambda: jobs[0].has_failed)
    jobs.append(Job(member, connect, times.shutdown, service))
    return jobs[0]


def _coordinator(host: str, port: int, count: int, times: Times) -> Coordinator:
    try:
        return Coordinator(listening(host, port), count, times.silence)
    except OSError as error:
        raise DistributedSetupError(
            f"Process 0 cannot listen at {host or 'any address'}, port {port}: {error.strerror}.",
            "Choose another port for coordinator_address, in all processes.",
        ) from None


def _address(text: str, what: str) -> tuple[str, int]:
    try:
        return address(text, what)
    except ValueError as error:
        raise DistributedSetupError(f"{error}.", "Write it like 10.0.0.1:1234.") from None


def _info(port: int, devices: int) -> dict[str, str | int]:
    return {"devices": devices, "pid": os.getpid(), "host": socket.gethostname(), "port": port}


def _own_address() -> str:
    """Returns the address at which other machines reach this one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # chooses an interface, and sends nothing
            return str(probe.getsockname()[0])
        except OSError:
            return socket.gethostbyname(socket.gethostname())

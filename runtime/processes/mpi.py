"""MPI through mpi4py: carries bytes among processes that `mpirun` has started.

Calls do not block, so that a process that waits notices the loss of another one. Elsewhere: how the
loss is noticed (`coordinator.py`).
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np

from axir.dialect.core.annotations import Foreign, HostArray
from axir.runtime.errors import DistributedSetupError

from .member import Patience

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

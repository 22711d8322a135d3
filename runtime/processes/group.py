"""The processes that compute together, `current()`, and the variables of launchers like `mpirun`.

A process without others is a group of one.
Elsewhere: how several processes find each other (`job.py`).
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from typing import Protocol

from axir.dialect.core.annotations import UserObject


class Group(Protocol):
    """Processes that compute together.

    Attributes:
        index: Which of them this is.
        count: How many there are.
        infos: The information about each process: its number of CPU `devices`.
    """

    index: int
    count: int
    infos: list[dict[str, UserObject]]

    def all_gather(self, content: bytes, name: str) -> list[bytes]:
        """Returns what all processes pass, in their order; each waits for all.

        Args:
            content: This process's bytes.
            name: The purpose of the exchange. Calls with different names do not wait for each
                other; calls with the same name are matched by their order.
        """
        ...


class Alone:
    """A process that computes without others."""

    def __init__(self) -> None:
        self.index = 0
        self.count = 1
        self.infos: list[dict[str, UserObject]] = [{}]

    def all_gather(self, content: bytes, name: str) -> list[bytes]:
        """Returns a list with the argument."""
        return [content]


_current: Group = Alone()


def current() -> Group:
    """Returns the processes that compute together.

    >>> current().index, current().count
    (0, 1)
    """
    return _current


def become(group: Group) -> None:
    """Makes a group the current one."""
    global _current
    _current = group


# Of MPICH and its relatives, and of Open MPI: number of processes, and which this is.
_COUNTS = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS")
_PREFIXES = ("PMI_", "PMIX_", "OMPI_", "PMI2_")
# A device may open another one's handle.
_lock = threading.RLock()


def is_under_mpi() -> bool:
    """Tells whether `mpirun` has started this process."""
    return any(name in os.environ for name in _COUNTS)


@contextlib.contextmanager
def without_launcher_variables() -> Iterator[None]:
    """Hides the variables of launchers of MPI while a block runs.

    IREE sees them, takes it that its devices should use MPI, and fails if it does not find a
    library of it.
    """
    with _lock:
        hidden = {k: v for k, v in os.environ.items() if k.startswith(_PREFIXES)}
        for name in hidden:
            del os.environ[name]
        try:
            yield
        finally:
            os.environ.update(hidden)

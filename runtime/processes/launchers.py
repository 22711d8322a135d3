"""Reads the environment variables of process launchers, such as `mpirun`."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

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

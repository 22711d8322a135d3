"""State of the process that devices and programs depend on: forks, freed memory, library files.

IREE's compiler sessions, devices and contexts own threads. A fork copies the handles but not the
threads, so a child that used or destroyed an inherited handle would wait for a thread that does not
exist. The child therefore abandons all of them and makes new ones when it needs them. Memory is not
affected: a child reads the buffers that its parent made. The compiler runs in helper processes, and
a child starts a new one; if the option `axir_isolate_compiler` keeps the compiler in this process,
it sometimes hangs in the child of a parent that has compiled.

IREE's driver `local-sync` takes the temporary arrays of each call from `malloc`. By default, glibc
returns all but a few megabytes of freed memory to the system, which then allocates each page anew,
cleared: a training step of a small transformer spent two thirds of its time there. So the C library
is told to keep it for the next call.

The system's loader reads libraries only from files. For each program that it loads, IREE 3.13 makes
an empty file with a unique name. It writes the library to another file, named after the first, and
removes that one once the library is loaded; it leaves the empty file behind, open. A process was
refused its thousandth program ("unable to open file"), and folders for temporary files filled with
names.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from axir.dialect.core.config import config

_hooks: list[Callable[[], None]] = []


def call_in_forked_child(hook: Callable[[], None]) -> None:
    """Registers a function that drops inherited handles in a forked child."""
    _hooks.append(hook)


def abandon(handles: object) -> None:
    """Keeps an object alive past the interpreter's end, so that it is never destroyed."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(handles))


def _run_hooks() -> None:
    for hook in _hooks:
        hook()


os.register_at_fork(after_in_child=_run_hooks)


# glibc's names. The trim threshold limits the free memory at the end of the heap. Allocations above
# the mmap threshold get separate pages, which are returned to the system at once; 32 MiB is its
# largest value.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_LARGEST_IN_HEAP = 32 << 20
_MIB = 1 << 20
_LARGEST_INT = (1 << 31) - 1
# If the user sets one of these, glibc's limits stay as they are.
_VARIABLES = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


@functools.cache
def keep_freed_memory() -> bool:
    """Makes the C library keep as much freed memory as the option `axir_kept_memory` says.

    Returns:
        Whether it does: not if the option is 0, an environment variable sets glibc's own limits, or
        the C library lacks such limits.
    """
    mib = config.axir_kept_memory
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if not mib or mallopt is None or any(name in os.environ for name in _VARIABLES):
        return False
    kept = min(mib * _MIB, _LARGEST_INT)
    is_set = mallopt(_M_MMAP_THRESHOLD, min(_LARGEST_IN_HEAP, kept))
    return bool(is_set and mallopt(_M_TRIM_THRESHOLD, kept))


_OPEN_FILES = Path("/proc/self/fd")
_NAME = re.compile(r"/iree_dylib_\w{6}$")


def close_library_files() -> None:
    """Closes and removes the files that loading has left open in this process.

    IREE neither reads nor closes these files again, so they may be removed while another thread
    loads. If the system does not list a process's files under `/proc`, they stay.
    """
    try:
        descriptors = os.listdir(_OPEN_FILES)
    except OSError:
        return
    for descriptor in descriptors:
        # A listed file may have been closed since, by this function in another thread.
        with suppress(OSError):
            path = os.readlink(_OPEN_FILES / descriptor)
            if _NAME.search(path):
                # Whoever removes the name owns the number, which means another file once closed.
                os.unlink(path)
                os.close(int(descriptor))

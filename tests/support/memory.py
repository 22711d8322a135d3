"""The memory of this process: its resident size, and the release of free memory.

Elsewhere: the peak of a run of the tests (`run_report.py`).
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path

_STATUS = Path("/proc/self/statm")
_IS_LINUX = sys.platform == "linux"


def resident_memory() -> int:
    """The resident bytes of this process; 0 if the system does not report them."""
    if not _IS_LINUX:
        return 0
    return int(_STATUS.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def least_growth(action: Callable[[], object], *, calls: int, rounds: int = 5) -> int:
    """The least growth of this process in bytes by `calls` calls of `action`, among `rounds`.

    A leak grows in each round. Other threads and the reserve of the allocator may grow in any one
    of them, whatever `action` does.
    """
    growths = []
    for _ in range(rounds):
        before = resident_memory()
        for _ in range(calls):
            action()
        growths.append(resident_memory() - before)
    return min(growths)


def release_free_memory() -> None:
    """Gives the reserve of the allocator back to the system, if the C library can."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)

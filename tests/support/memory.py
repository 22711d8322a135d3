"""The memory of this process: how much of it is resident, and giving back what is free.

What does not live here: the peak of a run of the tests (`run_report.py`).
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

_STATUS = Path("/proc/self/statm")
_IS_LINUX = sys.platform == "linux"


def resident_memory() -> int:
    """Bytes of this process that are in memory; 0 where the system does not tell."""
    if not _IS_LINUX:
        return 0
    return int(_STATUS.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def release_free_memory() -> None:
    """Gives back to the system what the allocator keeps for later, where the C library can."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)

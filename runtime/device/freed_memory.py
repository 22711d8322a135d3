"""Memory that programs have freed: the C library is told to keep it for the next call.

IREE's driver `local-sync` takes the temporary arrays of each call from `malloc`. By default, glibc
returns all but a few megabytes of freed memory to the system, which then allocates each page anew,
cleared: a training step of a small transformer spent two thirds of its time there.
"""

from __future__ import annotations

import ctypes
import functools
import os

from axir.dialect.core.config import config

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

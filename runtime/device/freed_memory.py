"""What becomes of memory that programs have freed: the C library keeps it for the next call.

IREE's driver `local-sync` takes the temporary arrays of each call from `malloc`. glibc gives freed
memory back to the system by default, a few megabytes excepted, which then hands out each page anew,
cleared: a training step of a small transformer spent two thirds of its time there.
"""

from __future__ import annotations

import ctypes
import functools
import os

from axir.dialect.core.config import config

# glibc's names: what is trimmed is free memory at the end of the heap, and larger pieces than the
# other limit get pages of their own, which are given back at once; 32 MiB is the most it takes.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_LARGEST_IN_HEAP = 32 << 20
_MIB = 1 << 20
_LARGEST_INT = (1 << 31) - 1
# Who sets one of these has an opinion of their own.
_VARIABLES = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


@functools.cache
def keep_freed_memory() -> bool:
    """Has the C library keep as much freed memory as the option `axir_kept_memory` says.

    Returns:
        Whether it does: not where the option is 0, a variable of the environment sets glibc's own
        limits, or the C library has none.
    """
    mib = config.axir_kept_memory
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if not mib or mallopt is None or any(name in os.environ for name in _VARIABLES):
        return False
    kept = min(mib * _MIB, _LARGEST_INT)
    is_set = mallopt(_M_MMAP_THRESHOLD, min(_LARGEST_IN_HEAP, kept))
    return bool(is_set and mallopt(_M_TRIM_THRESHOLD, kept))

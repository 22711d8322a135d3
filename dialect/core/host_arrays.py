"""NumPy arrays: arithmetic without warnings, and memory for other libraries.

axir's arithmetic is IEEE's: divisions by zero and overflows give infinities, silently, in eager
mode as in compiled code. `numpy.errstate` does this too, but costs more than a small operation; the
context variable behind it costs a tenth of a microsecond. If a NumPy release lacks that variable,
`errstate` takes its place.
"""

from __future__ import annotations

import numpy as np

from . import dtypes
from .annotations import (
    Foreign,
    HostArray,
)

try:
    from numpy._core import umath as _umath

    _VARIABLE: Foreign = _umath._extobj_contextvar
    _IGNORE_ALL: Foreign = _umath._make_extobj(all="ignore")
except (ImportError, AttributeError):
    _VARIABLE = None

if _VARIABLE is not None:

    def ignore_floating_point_warnings() -> Foreign:
        """Silences floating-point warnings until the returned token is handed back."""
        return _VARIABLE.set(_IGNORE_ALL)

    def restore_warnings(token: Foreign) -> None:
        """Ends the effect of `ignore_floating_point_warnings`."""
        _VARIABLE.reset(token)

else:

    def ignore_floating_point_warnings() -> Foreign:
        """Silences floating-point warnings until the returned token is handed back."""
        manager = np.errstate(all="ignore")
        manager.__enter__()
        return manager

    def restore_warnings(token: Foreign) -> None:
        """Ends the effect of `ignore_floating_point_warnings`."""
        token.__exit__(None, None, None)


def contiguous(host: HostArray) -> HostArray:
    """Returns an array, or a copy in the order of its elements."""
    return host if host.flags.c_contiguous else np.ascontiguousarray(host)


def printable(host: HostArray) -> HostArray:
    """Returns an array with elements of a dtype that NumPy prints."""
    if host.dtype == dtypes.bfloat16:
        return host.astype(np.float32)
    return host.astype(dtypes.wide(host.dtype)) if dtypes.is_narrow(host.dtype) else host


def writable_view(host: HostArray) -> HostArray:
    """Returns an array in the same memory that counts as writable."""
    if host.flags.writeable:
        return host
    pointer, _ = host.__array_interface__["data"]
    holder = _Memory(pointer, host)
    return np.asarray(holder)


class _Memory:
    """Presents read-only memory as writable to NumPy; keeps its owner alive."""

    def __init__(self, pointer: int, owner: HostArray):
        self.owner = owner
        self.__array_interface__ = {
            **owner.__array_interface__,
            "data": (pointer, False),
        }

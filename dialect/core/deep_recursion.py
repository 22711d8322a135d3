"""Room for deep nesting: nested programs take some of axir's Python frames for each level.

Tracing a `jit` in a `jit` takes ten Python calls, and Python's limit is 1,000: functions nested a
hundred times would raise a `RecursionError` that their depth does not justify. While programs are
made the limit is higher. The limit belongs to the process, so the last thread that makes a program
restores it. Elsewhere: the making of programs (`single_flight.py` raises the limit for all).
"""

from __future__ import annotations

import os
import sys
import threading
from types import TracebackType

# The frames of a thousand levels. A callback through C takes some 200 bytes of C's stack for each
# frame; a thread has 8 MB.
DEEPEST = 12_000


class _DeepRecursion:
    """A context in which Python recurses deeper; threads may enter it, also repeatedly."""

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        """Resets the count, because a forked process has no other threads."""
        self._lock = threading.Lock()
        self._entered = 0
        self._before = 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._entered:
                self._before = sys.getrecursionlimit()
                if self._before < DEEPEST:
                    sys.setrecursionlimit(DEEPEST)
            self._entered += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._lock:
            self._entered -= 1
            # A limit that other code has set meanwhile stays.
            if not self._entered and sys.getrecursionlimit() == DEEPEST:
                sys.setrecursionlimit(self._before)


deep_recursion = _DeepRecursion()
"""`with deep_recursion:` makes room."""


os.register_at_fork(after_in_child=deep_recursion.begin_anew)

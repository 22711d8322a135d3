"""Values that several threads want at once are made once: the other threads wait.

A thread that asks while another one makes the value gets that value, or the exception that ended
its computation. The computation may run the user's code, which may ask for further values. A thread
that would wait for itself, directly or through other waiting threads, makes the value itself
instead, so threads never wait in a circle.

Nested programs take some of axir's Python frames for each level: tracing a `jit` in a `jit` takes
ten Python calls, and Python's limit is 1,000. Functions nested a hundred times would raise a
`RecursionError` that their depth does not justify. While programs are made the limit is higher
(`deep_recursion`). The limit belongs to the process, so the last thread that makes a program
restores it.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Hashable
from types import TracebackType
from typing import TypeVar

from .annotations import Made

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


_T = TypeVar("_T")
_Key = TypeVar("_Key", bound=Hashable)


class _Flight:
    """The computation of a value by a thread."""

    __slots__ = ("failure", "is_complete", "thread", "under_way", "value")

    def __init__(self, thread: int):
        self.thread = thread
        # Held until the computation ends. An event would cost more than most values.
        self.under_way = threading.Lock()
        self.under_way.acquire()
        self.value: Made = None
        # Neither is set if the thread was interrupted: then another thread makes the value.
        self.failure: Exception | None = None
        self.is_complete = False


_flights: dict[Hashable, _Flight] = {}
# The flights that threads wait for, by thread number; written under the lock.
_waiting: dict[int, _Flight] = {}
_lock = threading.Lock()


def single_flight(key: Hashable, make: Callable[[], _T]) -> tuple[_T, bool]:
    """Returns the result of `make`, made once for all threads that ask for it at the same time.

    Args:
        key: Identifies the value while it is made.
        make: Makes it. One of the threads calls it, after checking whether another one has just
            stored the value.

    Returns:
        The value, and whether this thread made it.

    Raises:
        Exception: the exception of `make`, in all these threads. An interrupt, which is no
            `Exception`, only concerns one thread.

    >>> single_flight("six", lambda: 2 * 3)
    (6, True)
    """
    thread = threading.get_ident()
    mine = _Flight(thread)
    while True:
        try:
            flight = _flights.setdefault(key, mine)
            if flight is mine:
                with deep_recursion:
                    mine.value = make()
                mine.is_complete = True
                return mine.value, True
        except Exception as error:
            mine.failure = error
            raise
        finally:
            if _flights.get(key) is mine:
                mine.under_way.release()
                _flights.pop(key, None)  # unless a waiting thread has just removed it
        if not _wait(flight, thread):
            return make(), True
        if _flights.get(key) is flight:  # interrupted before it was taken away
            _flights.pop(key, None)
        if flight.failure is not None:
            raise flight.failure
        if flight.is_complete:
            return flight.value, False


def made_once(
    table: dict[_Key, _T],
    key: _Key,
    make: Callable[[], _T],
    may_share: Callable[[_T], bool] | None = None,
) -> _T:
    """Returns the entry of a table; one thread makes it at the first request.

    Args:
        table: Where values are kept.
        key: The key of the entry.
        make: Makes the value; never returns None.
        may_share: Tells whether a value is kept and serves other threads; if not, each thread makes
            its own.

    >>> table = {}
    >>> made_once(table, "six", lambda: 2 * 3), table
    (6, {'six': 6})
    """
    value = table.get(key)
    if value is not None:
        return value

    def fill() -> _T:
        value = table.get(key)
        if value is None:
            value = make()
            if may_share is None or may_share(value):
                table[key] = value
        return value

    made, is_own = single_flight((id(table), key), fill)
    return made if is_own or may_share is None or may_share(made) else make()


def _wait(flight: _Flight, thread: int) -> bool:
    """Waits for a flight to end; returns False, at once, if it would never end."""
    with _lock:
        follower: _Flight | None = flight
        while follower is not None:
            if follower.thread == thread:
                return False
            follower = _waiting.get(follower.thread)
        _waiting[thread] = flight
    try:
        with flight.under_way:
            pass
    finally:
        with _lock:
            del _waiting[thread]
    return True


def _begin_in_forked_child() -> None:
    # The threads that make values stayed in the parent.
    global _lock
    _flights.clear()
    _waiting.clear()
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_begin_in_forked_child)

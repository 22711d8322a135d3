"""The timeline: activities in this process with their times, kept while a user records it.

`span` is put around activities that take time: phases of the compiler, calls, transfers. Without a
recording it reads one attribute. Elsewhere: listeners to events (`events.py`), the files of
timelines (`axir.profiler`).
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

Details: TypeAlias = Mapping[str, object]


class Event(NamedTuple):
    """An activity.

    Attributes:
        name: Its name.
        category: Its kind: `compiler`, `call`, `dispatch`, `collective`, `transfer`, `cache`,
            `annotation`, `python`.
        start: Its start, in nanoseconds of `time.perf_counter_ns`.
        duration: Its duration, in nanoseconds.
        thread: Number of the thread (`threading.get_ident`), or of a track, which is negative.
        details: Further facts about it, by name.
    """

    name: str
    category: str
    start: int
    duration: int
    thread: int
    details: Details


class Timeline:
    """The activities since `begin`; threads add to it concurrently.

    Attributes:
        is_on: Whether activities are recorded.
        shows_dispatches: Whether compiled programs are to mark their dispatches.
        events: The activities, in the order of their ends.
        began: The start, in nanoseconds of `time.perf_counter_ns`.
        began_at: The same in seconds of `time.time()`.
        thread_names: Names of the threads and tracks that added events.
    """

    def __init__(self) -> None:
        self.is_on = False
        self.shows_dispatches = False
        self._clear()

    def _clear(self) -> None:
        self.events: list[Event] = []
        self.thread_names: dict[int, str] = {}
        self.began = time.perf_counter_ns()
        self.began_at = time.time()

    def begin(self, shows_dispatches: bool) -> None:
        """Starts a recording; discards earlier events."""
        self._clear()
        self.shows_dispatches = shows_dispatches
        self.is_on = True

    def end(self) -> list[Event]:
        """Ends the recording; returns its events."""
        self.is_on = self.shows_dispatches = False
        return self.events

    def add(
        self, name: str, category: str, start: int, end: int, details: Details | None = None
    ) -> None:
        """Adds an activity of the running thread between two times, in nanoseconds."""
        track = _of_thread.track
        thread = threading.get_ident() if track is None else -1 - track[0]
        if thread not in self.thread_names:
            row = threading.current_thread().name if track is None else track[1]
            self.thread_names[thread] = row
        self.events.append(Event(name, category, start, end - start, thread, details or {}))


class _OfThread(threading.local):
    track: tuple[int, str] | None = None


_of_thread = _OfThread()
timeline = Timeline()


@contextlib.contextmanager
def on_track(number: int, name: str) -> Iterator[None]:
    """Records the activities of this thread on a separate track, which threads may share.

    >>> timeline.begin(shows_dispatches=False)
    >>> with on_track(3, "cpu:3"), span("step", "call"):
    ...     pass
    >>> [(event.thread, timeline.thread_names[event.thread]) for event in timeline.end()]
    [(-4, 'cpu:3')]
    """
    before, _of_thread.track = _of_thread.track, (number, name)
    try:
        yield
    finally:
        _of_thread.track = before


class span:
    """A `with` block that the timeline shows, also if it raises.

    >>> timeline.begin(shows_dispatches=False)
    >>> with span("lower", "compiler", function="f"):
    ...     pass
    >>> [(event.name, event.details) for event in timeline.end()]
    [('lower', {'function': 'f'})]
    """

    __slots__ = ("_start", "category", "details", "name")

    def __init__(self, name: str, category: str, **details: object):
        self.name = name
        self.category = category
        self.details = details
        self._start = 0

    def __enter__(self) -> span:
        if timeline.is_on:
            self._start = time.perf_counter_ns()
        return self

    def __exit__(self, *exception: object) -> None:
        if timeline.is_on and self._start:
            now = time.perf_counter_ns()
            timeline.add(self.name, self.category, self._start, now, self.details)

"""The timeline: activities in this process with their times, kept while a user records it.

`span` is put around activities that take time: phases of the compiler, calls, transfers. Without a
recording it reads one attribute. Elsewhere: listeners to events (`timeline.py`), the files of
timelines (`axir.profiler`).

Events of running programs are told to listeners; `axir.monitoring` has their names. One mechanism,
`timed`, measures times, tells them to listeners and writes them to the log. Without listeners it
reads one list.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple, TypeAlias

from .annotations import Returning
from .config import config

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


_LOGGER = logging.getLogger(__name__)

EventListener = Returning[None]
"""`(event, **metadata)`: something happened."""
DurationListener = Returning[None]
"""`(event, seconds, **metadata)`: something took so long."""
SpanListener = Returning[None]
"""`(event, start, end, **metadata)`: something went on between two times, in seconds."""
ScalarListener = Returning[None]
"""`(event, value, **metadata)`: something was measured."""

event_listeners: list[EventListener] = []
duration_listeners: list[DurationListener] = []
span_listeners: list[SpanListener] = []
scalar_listeners: list[ScalarListener] = []

TRACED = "/jax/core/compile/jaxpr_trace_duration"
LOWERED = "/jax/core/compile/jaxpr_to_mlir_module_duration"
COMPILED = "/jax/core/compile/backend_compile_duration"
CACHE_HIT = "/jax/compilation_cache/cache_hits"
CACHE_MISS = "/jax/compilation_cache/cache_misses"
REQUEST = "/jax/compilation_cache/compile_requests_use_cache"
RETRIEVED = "/jax/compilation_cache/cache_retrieval_time_sec"
# In the log, and on the timeline.
_IN_WORDS = {
    TRACED: ("tracing", "trace"),
    LOWERED: ("lowering to StableHLO and legalizing", "lower and legalize"),
    COMPILED: ("compiling", "compile"),
}


def tell_event(event: str, **metadata: str | int) -> None:
    """Tells listeners that something happened."""
    for listener in tuple(event_listeners):
        listener(event, **metadata)


def tell_duration(event: str, seconds: float, **metadata: str | int) -> None:
    """Tells listeners how long something took."""
    for listener in tuple(duration_listeners):
        listener(event, seconds, **metadata)


def tell_span(event: str, start: float, end: float, **metadata: str | int) -> None:
    """Tells listeners the start and the end of an activity."""
    for listener in tuple(span_listeners):
        listener(event, start, end, **metadata)


def tell_scalar(event: str, value: float, **metadata: str | int) -> None:
    """Tells listeners a measured number."""
    for listener in tuple(scalar_listeners):
        listener(event, value, **metadata)


@contextmanager
def timed(event: str, fun_name: str) -> Iterator[None]:
    """Tells listeners, and the log under `jax_log_compiles`, how long a `with` block takes.

    It does not tell listeners of a block that raises. The timeline shows all blocks.

    Args:
        event: `TRACED`, `LOWERED` or `COMPILED`.
        fun_name: Name of the user's function.
    """
    in_log, on_timeline = _IN_WORDS[event]
    if not (duration_listeners or span_listeners or scalar_listeners or config.jax_log_compiles):
        with span(on_timeline, "compiler", function=fun_name):
            yield
        return
    start = time.time()
    tell_scalar(event, start, fun_name=fun_name)
    before = time.perf_counter()
    with span(on_timeline, "compiler", function=fun_name):
        yield
    seconds = time.perf_counter() - before
    tell_duration(event, seconds, fun_name=fun_name)
    tell_span(event, start, start + seconds, fun_name=fun_name)
    if config.jax_log_compiles:
        _LOGGER.warning("Finished %s %s in %.6f s", in_log, fun_name, seconds)

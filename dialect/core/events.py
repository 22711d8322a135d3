"""Events of running programs, told to listeners: `axir.monitoring` has the names.

One mechanism, `timed`, measures times, tells them to listeners and writes them to the log. Without
listeners it reads one list.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from .annotations import Returning
from .config import config
from .timeline import span

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

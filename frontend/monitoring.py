"""Events of running programs, and their listeners: the names of `jax.monitoring`.

axir records the time of tracing, lowering and compiling each function, and whether compiled
programs came from the cache. Libraries and programs record their own events.

>>> def listen(event, **metadata):
...     print(event, metadata)
>>> register_event_listener(listen)
>>> record_event("/my/event", kind="demonstration")
/my/event {'kind': 'demonstration'}
>>> unregister_event_listener(listen)
"""

from __future__ import annotations

from axir.dialect.core import timeline
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.timeline import DurationListener, EventListener, ScalarListener, SpanListener

__all__ = [
    "clear_event_listeners", "record_event", "record_event_duration_secs", "record_event_time_span",
    "record_scalar", "register_event_duration_secs_listener", "register_event_listener",
    "register_event_time_span_listener", "register_scalar_listener",
    "unregister_event_duration_listener", "unregister_event_listener",
    "unregister_event_time_span_listener", "unregister_scalar_listener",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


def record_event(event: str, **kwargs: str | int) -> None:
    """Tells listeners that something happened.

    Args:
        event: Its name, such as `/my_library/saved`.
        **kwargs: What else listeners get, by name.
    """
    timeline.tell_event(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Tells listeners how long something took, in seconds."""
    timeline.tell_duration(event, duration, **kwargs)


def record_event_time_span(
    event: str, start_time: float, end_time: float, **kwargs: str | int
) -> None:
    """Tells listeners from when to when something went on, in seconds of `time.time()`."""
    timeline.tell_span(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Passes a measured value to the listeners."""
    timeline.tell_scalar(event, value, **kwargs)


def register_event_listener(callback: EventListener) -> None:
    """Has `callback(event, **metadata)` called for every event."""
    timeline.event_listeners.append(callback)


def register_event_duration_secs_listener(callback: DurationListener) -> None:
    """Has `callback(event, seconds, **metadata)` called for every duration.

    >>> import axir, axir.numpy as jnp
    >>> heard = []
    >>> def listen(event, seconds, **metadata):
    ...     heard.append(event.rpartition("/")[2])
    >>> register_event_duration_secs_listener(listen)
    >>> _ = axir.jit(lambda x: jnp.sin(x) + 0.25)(1.0)
    >>> unregister_event_duration_listener(listen)
    >>> heard[0]
    'jaxpr_trace_duration'
    """
    timeline.duration_listeners.append(callback)


def register_event_time_span_listener(callback: SpanListener) -> None:
    """Has `callback(event, start, end, **metadata)` called for every span of time."""
    timeline.span_listeners.append(callback)


def register_scalar_listener(callback: ScalarListener) -> None:
    """Has `callback(event, value, **metadata)` called for everything measured."""
    timeline.scalar_listeners.append(callback)


def unregister_event_listener(callback: EventListener) -> None:
    """Has a callback called no more for events; ParameterError if it never was."""
    _unregister(timeline.event_listeners, callback)


def unregister_event_duration_listener(callback: DurationListener) -> None:
    """Has a callback called no more for durations; ParameterError if it never was."""
    _unregister(timeline.duration_listeners, callback)


def unregister_event_time_span_listener(callback: SpanListener) -> None:
    """Has a callback called no more for spans of time; ParameterError if it never was."""
    _unregister(timeline.span_listeners, callback)


def unregister_scalar_listener(callback: ScalarListener) -> None:
    """Removes a callback for measured values; raises ParameterError if it is not registered."""
    _unregister(timeline.scalar_listeners, callback)


def clear_event_listeners() -> None:
    """Has no callback called any more."""
    for listeners in (
        timeline.event_listeners,
        timeline.duration_listeners,
        timeline.span_listeners,
        timeline.scalar_listeners,
    ):
        listeners.clear()


def _unregister(listeners: list[EventListener], callback: EventListener) -> None:
    if callback not in listeners:
        raise ParameterError(
            f"{callback!r} does not listen.", "Unregister what was registered, and once."
        )
    listeners.remove(callback)

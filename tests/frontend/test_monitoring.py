"""Events that programs and axir tell, and the log of compilations."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

import axir
import axir.numpy as jnp
from axir import monitoring
from axir.errors import ParameterError


@pytest.fixture(autouse=True)
def no_listeners() -> Iterator[None]:
    yield
    monitoring.clear_event_listeners()


def test_every_kind_of_event_reaches_its_listeners_alone() -> None:
    heard: list[object] = []
    for name in ("event", "event_duration_secs", "event_time_span", "scalar"):
        register = getattr(monitoring, f"register_{name}_listener")
        register(lambda *args, name=name, **metadata: heard.append((name, args, metadata)))
    monitoring.record_event("/a", kind="x")
    monitoring.record_event_duration_secs("/b", 1.5)
    monitoring.record_event_time_span("/c", 1.0, 2.0)
    monitoring.record_scalar("/d", 7)
    assert heard == [
        ("event", ("/a",), {"kind": "x"}),
        ("event_duration_secs", ("/b", 1.5), {}),
        ("event_time_span", ("/c", 1.0, 2.0), {}),
        ("scalar", ("/d", 7), {}),
    ]


def test_tracing_lowering_and_compiling_are_told_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard: list[tuple[str, object]] = []
    monitoring.register_event_duration_secs_listener(
        lambda event, seconds, fun_name: heard.append((event.rpartition("/")[2], seconds > 0))
    )

    def told(x: axir.Array) -> axir.Array:
        return jnp.sin(x) * 0.8125 + 3.4375

    with axir.log_compiles(), caplog.at_level(logging.WARNING):
        axir.jit(told)(1.0)
    assert [name for name, _ in heard[:2]] == [
        "jaxpr_trace_duration",
        "jaxpr_to_mlir_module_duration",
    ]
    assert all(is_positive for _, is_positive in heard)
    assert "Finished tracing told in" in caplog.text
    caplog.clear()
    axir.jit(lambda x: told(x) + 1)(1.0)
    assert "Finished" not in caplog.text


def test_a_listener_that_never_listened_cannot_be_taken_away() -> None:
    with pytest.raises(ParameterError, match="does not listen"):
        monitoring.unregister_event_listener(print)

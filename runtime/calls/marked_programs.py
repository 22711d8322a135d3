"""Programs whose dispatches stand on the timeline, with the user's lines.

A program that is compiled with marks (`Target.marks_dispatches`) calls back before and after each
dispatch. It waits for each of them in turn, so they take as long as alone; the sum of a call is
more than that of the same program without marks, by 10 to 15 us for each dispatch, and by what
dispatches gain that run side by side. Elsewhere: how marks come into a program
(`compiler/invocation/dispatch_marks.py`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from iree import runtime as iree_runtime

from axir.dialect.core.timeline import timeline
from axir.runtime.compiler.invocation.dispatch_marks import BEGIN, SEPARATOR
from axir.runtime.device.buffers import HalBufferView
from axir.runtime.device.devices import Device


class DispatchMarks:
    """What a program with marks calls, from whatever thread runs it.

    Args:
        device: Where it runs.

    Attributes:
        sink: What IREE takes.
    """

    def __init__(self, device: Device):
        self._device = str(device)
        self._begun = threading.local()
        self.sink = iree_runtime.HalModuleDebugSink(self._read)

    def begin_call(self) -> None:
        """Notes that a call begins: its first dispatch does not begin before."""
        self._begun.at = time.perf_counter_ns()

    def _read(self, key: str, views: Sequence[HalBufferView]) -> None:
        now = time.perf_counter_ns()
        end, name, *lines = key.split(SEPARATOR)
        if end != BEGIN and timeline.is_on:
            start = getattr(self._begun, "at", now)
            timeline.add(name, "dispatch", start, now, {"device": self._device, "lines": lines})
        self._begun.at = time.perf_counter_ns()

"""Programs that put their dispatches on the timeline, with the user's lines.

A program that is compiled with marks (`Target.marks_dispatches`) calls back before and after each
dispatch. It waits for each dispatch in turn, so each takes as long as if it ran without others. The
sum of a call is larger than a call without marks takes: by 10 to 15 us for each dispatch, and by
the gain of dispatches that would run at the same time. Elsewhere: how marks come into a program
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
    """The callback of a program with marks, called from the thread that runs it.

    Args:
        device: Where it runs.

    Attributes:
        sink: The trace sink for IREE.
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

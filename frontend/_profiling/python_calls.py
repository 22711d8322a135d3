"""Calls of Python functions, put on the timeline by the interpreter's own hook.

The hook sees every call and return of every thread, which slows Python down several times, so it is
used only on request.
"""

from __future__ import annotations

import sys
import threading
import time
from types import FrameType

from axir.dialect.core.context import is_user_file
from axir.dialect.core.timeline import timeline


class PythonCalls:
    """Puts calls of Python functions on the timeline, from `begin` to `end`."""

    def __init__(self) -> None:
        self._open = threading.local()

    def begin(self) -> None:
        """Records the calls of this thread, and of threads that start from now on."""
        threading.setprofile(self._see)
        sys.setprofile(self._see)

    def end(self) -> None:
        """Looks no more."""
        sys.setprofile(None)
        threading.setprofile(None)

    def _see(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event not in ("call", "return") or not is_user_file(code.co_filename):
            return
        starts = self._open.__dict__.setdefault("starts", {})
        if event == "call":
            starts[id(frame)] = time.perf_counter_ns()
            return
        start = starts.pop(id(frame), None)
        if start is not None and timeline.is_on:
            line = f"{code.co_filename}:{code.co_firstlineno}"
            now = time.perf_counter_ns()
            timeline.add(
                code.co_qualname if hasattr(code, "co_qualname") else code.co_name,
                "python",
                start,
                now,
                {"line": line},
            )

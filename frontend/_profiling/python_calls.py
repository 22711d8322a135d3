"""The options of a profile, and calls of Python functions, which the interpreter's hook records.

The hook sees every call and return of every thread, which slows Python down several times, so it is
used only on request.
"""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import dataclass, field
from types import FrameType

from axir.dialect.core.annotations import UserObject
from axir.dialect.core.context import is_user_file
from axir.dialect.core.timeline import timeline


@dataclass
class ProfileOptions:
    """The events that a trace shows.

    Attributes:
        host_tracer_level: 0 for no events of this process, 1 for annotations only, 2 for calls,
            phases of compiling and transfers as well.
        device_tracer_level: 0 without dispatches, 1 with them. Programs that are called while they
            are shown are compiled once more, with marks, and kept in the cache.
        python_tracer_level: 1 for the calls of all Python functions outside of axir, which slows
            them down; 0 without.
        duration_ms: Without effect, like the rest: a trace lasts until it is stopped.
        enable_hlo_proto: Without effect.
        include_dataset_ops: Without effect.
        raise_error_on_start_failure: Without effect: errors are always raised.
        repository_path: Without effect.
        session_id: Name of the folder of the trace; by default the time.
        start_timestamp_ns: Without effect.
        advanced_configuration: Without effect.
    """

    host_tracer_level: int = 2
    device_tracer_level: int = 1
    python_tracer_level: int = 0
    duration_ms: int = 0
    enable_hlo_proto: bool = True
    include_dataset_ops: bool = True
    raise_error_on_start_failure: bool = False
    repository_path: str = ""
    session_id: str = ""
    start_timestamp_ns: int = 0
    advanced_configuration: dict[str, UserObject] = field(default_factory=dict)


# Options ------------------------------------------------------------------------------------------


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

"""Trace files read back: planes, lines of events in them, events.

Elsewhere: writing them (`trace_files.py`).
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from axir.dialect.core.annotations import Foreign, UserObject
from axir.dialect.core.errors import ProfileError

Statistics = list[tuple[str, UserObject]]


@dataclass(frozen=True)
class ProfileEvent:
    """Something that went on.

    Attributes:
        name: Its name.
        start_ns: When it began, in nanoseconds from the beginning of the trace.
        duration_ns: How long it took, in nanoseconds.
        stats: Further data: pairs of a name and a value.
    """

    name: str
    start_ns: float
    duration_ns: float
    stats: Statistics = field(default_factory=list)

    @property
    def end_ns(self) -> float:
        """When it ended, in nanoseconds from the beginning of the trace."""
        return self.start_ns + self.duration_ns


@dataclass(frozen=True)
class ProfileLine:
    """The events of a thread.

    Attributes:
        name: Name of the thread.
        events: Its events, in the order of their start.
    """

    name: str
    events: list[ProfileEvent] = field(default_factory=list)


@dataclass(frozen=True)
class ProfilePlane:
    """The events of a group of threads: of Python, or of dispatches.

    Attributes:
        name: Which they are.
        lines: The threads.
        stats: Further data: pairs of a name and a value.
    """

    name: str
    lines: list[ProfileLine] = field(default_factory=list)
    stats: Statistics = field(default_factory=list)


class ProfileData:
    """A trace read from a file.

    >>> import axir, axir.numpy as jnp, tempfile, pathlib
    >>> folder = tempfile.mkdtemp()
    >>> with axir.profiler.trace(folder):
    ...     with axir.profiler.TraceAnnotation("a step", step=3):
    ...         pass
    >>> file = next(pathlib.Path(folder).rglob("*.trace.json.gz"))
    >>> host = ProfileData.from_file(file).find_plane_with_name("Python and axir")
    >>> [(event.name, event.stats) for line in host.lines for event in line.events]
    [('a step', [('step', 3)])]
    """

    def __init__(self, content: Foreign):
        # The compressed input, for writing it to another file; empty if the data were not read.
        self.content = b""
        self._planes: dict[int, ProfilePlane] = {}
        lines: dict[tuple[int, int], ProfileLine] = {}
        for event in content["traceEvents"]:
            key = (event["pid"], event["tid"])
            if event["ph"] == "M" and event["name"] == "process_name":
                self._planes[event["pid"]] = ProfilePlane(event["args"]["name"])
            elif event["ph"] == "M" and event["name"] == "thread_name":
                lines[key] = ProfileLine(event["args"]["name"])
            elif event["ph"] == "X":
                stats = list(event["args"].items())
                start, duration = event["ts"] * 1e3, event["dur"] * 1e3
                lines[key].events.append(ProfileEvent(event["name"], start, duration, stats))
        for (process, _), line in lines.items():
            if line.events:
                self._planes[process].lines.append(line)

    @staticmethod
    def from_file(path: str | os.PathLike[str]) -> ProfileData:
        """Reads a file that `trace` or `stop_trace` wrote.

        Raises:
            OSError: if the file cannot be read.
            ProfileError: if it is no trace file, or damaged.
        """
        return ProfileData.from_bytes(Path(path).read_bytes(), os.fspath(path))

    @staticmethod
    def from_bytes(content: bytes, name: str = "what was recorded") -> ProfileData:
        """Reads the contents of a file.

        Args:
            content: The bytes.
            name: Their name in errors.

        Raises:
            ProfileError: if they are no trace, or damaged.
        """
        try:
            data = ProfileData(json.loads(gzip.decompress(content)))
        except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
            raise ProfileError(
                f"{name} is no trace file of axir, or damaged: {error}.",
                "Read a file `*.trace.json.gz` that stop_trace wrote.",
            ) from error
        data.content = content
        return data

    @property
    def planes(self) -> Iterator[ProfilePlane]:
        """The planes of the trace."""
        return iter(self._planes.values())

    def find_plane_with_name(self, name: str) -> ProfilePlane | None:
        """Returns the plane of a name, or None."""
        return next((plane for plane in self.planes if plane.name == name), None)

"""Timelines as trace files, in the JSON form that Chrome and Perfetto show.

The format is described in "Trace Event Format" (Google, 2016). Each event is a complete one, `X`,
with times in microseconds; metadata events name the rows.
"""

from __future__ import annotations

import gzip
import json
import os
import socket
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

from axir.dialect.core.timeline import Event, Timeline

Json: TypeAlias = dict[str, object]

_HOST, _DEVICE = 1, 2
_PROCESSES = {_HOST: "Python and axir", _DEVICE: "dispatches"}
PERFETTO_FILE = "perfetto_trace.json.gz"


def trace_json(timeline: Timeline) -> Json:
    """Returns a timeline as the content of a trace file."""
    events: list[Json] = []
    for number, name in _PROCESSES.items():
        events.append(_metadata("process_name", number, 0, {"name": name}))
        events.append(_metadata("process_sort_index", number, 0, {"sort_index": number}))
    rows = {thread: row for row, thread in enumerate(timeline.thread_names, 1)}
    for thread, row in rows.items():
        for process in _PROCESSES:
            name = timeline.thread_names[thread]
            events.append(_metadata("thread_name", process, row, {"name": name}))
    for event in sorted(timeline.events, key=lambda event: (event.start, -event.duration)):
        events.append(_complete(event, rows[event.thread], timeline.began))
    return {
        "displayTimeUnit": "ns",
        "metadata": {"process": os.getpid(), "began": timeline.began_at},
        "traceEvents": events,
    }


def _complete(event: Event, row: int, began: int) -> Json:
    details = dict(event.details)
    if details.get("lines"):
        details = {"line": details["lines"][0], **details}  # type: ignore[index]
    return {
        "ph": "X",
        "pid": _DEVICE if event.category == "dispatch" else _HOST,
        "tid": row,
        "ts": (event.start - began) / 1e3,
        "dur": event.duration / 1e3,
        "name": event.name,
        "cat": event.category,
        "args": {name: _plain(value) for name, value in details.items()},
    }


def _metadata(name: str, process: int, row: int, args: Json) -> Json:
    return {"ph": "M", "pid": process, "tid": row, "name": name, "args": args}


def _plain(value: object) -> object:
    if isinstance(value, (list, tuple)):
        return [_plain(x) for x in value]
    return value if isinstance(value, (bool, int, float, str)) or value is None else str(value)


def compressed(content: Json) -> bytes:
    """Returns the bytes of a trace file, compressed by gzip."""
    return gzip.compress(json.dumps(content).encode(), compresslevel=6)


def run_folder(log_dir: str | os.PathLike[str], name: str = "") -> Path:
    """Makes the folder of one trace, `plugins/profile/NAME`; the name is the time by default."""
    root = Path(log_dir) / "plugins" / "profile"
    name = name or time.strftime("%Y_%m_%d_%H_%M_%S")
    number = 0
    while True:
        folder = root / (name if not number else f"{name}_{number}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:  # another one of this name, or second
            number += 1
        else:
            return folder


def write(folder: Path, content: bytes, names: Iterable[str]) -> list[Path]:
    """Writes a trace under each of some names; returns the files, whole or not at all."""
    files = []
    for name in names:
        file, temporary = folder / name, folder / f".{name}.temporary"
        temporary.write_bytes(content)
        temporary.replace(file)
        files.append(file)
    return files


def host_file() -> str:
    """Returns the name of the file of this machine."""
    return f"{socket.gethostname() or 'localhost'}.trace.json.gz"


def slowest(events: Sequence[Event]) -> list[tuple[str, tuple[str, ...], int, float]]:
    """Sums up the dispatches: name, lines, how often, seconds; those that took longest first."""
    totals: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for event in events:
        if event.category == "dispatch":
            lines: tuple[str, ...] = tuple(event.details.get("lines", ()))  # type: ignore[arg-type]
            totals.setdefault((event.name, lines), []).append(event.duration)
    summed = [(*key, len(times), sum(times) * 1e-9) for key, times in totals.items()]
    return sorted(summed, key=lambda row: -row[-1])

"""Parts of the report in separate processes: a crash or a hang costs one item.

A process writes its rows one by one. If it ends before its time, or is silent for too long, the
item it was at gets a row that says so, and another process goes on after that item.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from .rows import Row, add_end, add_rows, read_rows

_POLL = 0.05
_TOLD_LINES = 6


def run_part(
    command: Sequence[str],
    rows_path: Path,
    limit: float,
    patience: float,
    environment: Mapping[str, str] | None = None,
) -> list[Row]:
    """Runs a part until it is finished, or its time is over; returns its rows.

    Args:
        command: The command that runs it. It continues after the items in the file of rows.
        rows_path: Where it writes its rows.
        limit: Most seconds for all of it.
        patience: Most seconds for one item.
        environment: Variables of its processes; by default this process's variables.
    """
    end = time.monotonic() + limit
    log = rows_path.with_suffix(".log")
    while True:
        begun_before = len(read_rows(rows_path)[1])
        code = _run_once(command, rows_path, log, end, patience, environment)
        _, begun, current = read_rows(rows_path)
        if code == 0 and current is None:
            break
        name = current or (begun[-1] if begun else "start")
        if code is None and time.monotonic() >= end:
            text = f"the part's {limit:.0f} s are over"
            add_rows(rows_path, [Row(name if current else "the rest", "not reached", text)])
            break
        if code is None:
            add_rows(rows_path, [Row(name, "hang", f"no answer within {patience:.0f} s")])
        elif current is not None or len(begun) == begun_before:
            add_rows(rows_path, [Row(name, "crash", _end_of(log, code))])
        if current is not None:
            add_end(rows_path, current)
        if len(begun) == begun_before:  # another one would get no further
            break
    return read_rows(rows_path)[0]


def _run_once(
    command: Sequence[str],
    rows_path: Path,
    log: Path,
    end: float,
    patience: float,
    environment: Mapping[str, str] | None,
) -> int | None:
    """Runs one process; returns its exit code, or None if it was ended."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=environment,
        )
    size, since = -1, time.monotonic()
    while (code := process.poll()) is None:
        now = time.monotonic()
        known = rows_path.stat().st_size if rows_path.exists() else 0
        if known != size:
            size, since = known, now
        if now >= end or now - since >= patience:
            break
        time.sleep(_POLL)
    _end_all(process)
    return code


def _end_all(process: subprocess.Popen[bytes]) -> None:
    """Ends a process and those that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def _end_of(log: Path, code: int) -> str:
    """Returns how a process ended, with the end of its output."""
    lines = [x for x in log.read_text(errors="replace").splitlines() if x.strip()]
    how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return " | ".join([how, *lines[-_TOLD_LINES:]])

"""Progress on terminals, and the durations of steps.

Progress appears only on terminals, on stderr, and only for steps longer than a second.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from axir.dialect.core.timeline import timeline
from axir.runtime.calls.compiled_function import begin_timeline

_SILENT_SECONDS = 1.0
_INTERVAL_SECONDS = 0.1
_SHOWN_STEPS = 20
_SIGNS = "|/-\\"


@contextmanager
def progress(what: str) -> Iterator[None]:
    """Shows the current step and its duration until the surrounded code is done."""
    if not sys.stderr.isatty():
        yield
        return
    is_done = threading.Event()
    thread = threading.Thread(target=_show, args=(what, is_done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_done.set()
        thread.join()


def _show(what: str, is_done: threading.Event) -> None:
    start = time.perf_counter()
    if is_done.wait(_SILENT_SECONDS):
        return
    number = 0
    while not is_done.wait(_INTERVAL_SECONDS):
        number += 1
        seconds = time.perf_counter() - start
        click.echo(f"\r{_SIGNS[number % 4]} {what}, {seconds:.0f} s", nl=False, err=True)
    click.echo("\r\x1b[K", nl=False, err=True)


def timed_steps() -> Callable[[], None]:
    """Records steps from now on; returns a function that prints them to stderr, longest first."""
    start = time.perf_counter()
    begin_timeline(shows_dispatches=False)

    def report() -> None:
        whole = time.perf_counter() - start
        durations: Counter[str] = Counter()
        for event in timeline.end():
            durations[event.name] += event.duration
        click.echo(f"{whole:9.3f} s  in all", err=True)
        for name, nanoseconds in durations.most_common(_SHOWN_STEPS):
            click.echo(f"{nanoseconds / 1e9:9.3f} s  {name}", err=True)

    return report

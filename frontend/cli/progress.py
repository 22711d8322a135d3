"""What a terminal shows while something takes long.

Only terminals are shown anything, on stderr, and only what takes longer than a second.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import click

_SILENT_SECONDS = 1.0
_INTERVAL_SECONDS = 0.1
_SIGNS = "|/-\\"


@contextmanager
def progress(what: str) -> Iterator[None]:
    """Shows what is going on, and for how long, until the surrounded code is done."""
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

"""Output of verbs: results, printed or saved as NumPy files, and the progress of long steps."""

from __future__ import annotations

import io
import json
import math
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click
import numpy as np

from axir._programs.files import write_file
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.timeline import timeline
from axir.dialect.text.signature import Signature
from axir.runtime.calls.compiled_function import begin_timeline

from .group import note

_SILENT_SECONDS = 1.0
_INTERVAL_SECONDS = 0.1
_SHOWN_STEPS = 20
_SIGNS = "|/-\\"


@contextmanager
def progress(what: str) -> Iterator[None]:
    """Shows the name of a step, and its time so far, until the block is done."""
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
    """Measures the time of steps from now on; returns a function that prints the longest first."""
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


# Progress -----------------------------------------------------------------------------------------


_SHOWN_ELEMENTS = 1000


def check_outputs(outputs: Sequence[Path], count: int) -> None:
    """Raises `UsageError` if results cannot go to these files."""
    for path in outputs:
        if path.suffix not in (".npy", ".npz"):
            raise click.UsageError(f"--out {path}: results are saved as .npy or .npz.")
    archives = [path for path in outputs if path.suffix == ".npz"]
    if archives and len(outputs) > 1:
        raise click.UsageError(f"--out {archives[0]} takes all results; leave the other --out out.")
    if outputs and not archives and len(outputs) != count:
        raise click.UsageError(
            f"The function has {count} results, and --out names {len(outputs)} files: give --out "
            "once for each, or one .npz for all."
        )


def save_results(
    results: Sequence[np.ndarray], signature: Signature, outputs: Sequence[Path]
) -> None:
    """Writes results to one `.npz`, or each to its `.npy`, atomically."""
    if outputs[0].suffix == ".npz":
        names = [value.name for value in signature.results]
        buffer = io.BytesIO()
        np.savez(buffer, **dict(zip(names, results, strict=True)))  # type: ignore[arg-type]
        write_file(outputs[0], buffer.getvalue())
        note(f"wrote {outputs[0]}: {', '.join(names)}")
        return
    for path, result in zip(outputs, results, strict=True):
        buffer = io.BytesIO()
        np.save(buffer, result, allow_pickle=False)
        write_file(path, buffer.getvalue())
        note(f"wrote {path}: {result.dtype}{list(result.shape)}")


def print_json(results: Sequence[np.ndarray], signature: Signature) -> None:
    """Prints results as JSON: by name, with dtype, shape and elements; complex numbers as pairs.

    Numbers that JSON lacks are texts: "nan", "inf", "-inf".
    """
    found = {}
    for value, result in zip(signature.results, results, strict=True):
        found[value.name] = {
            "dtype": str(result.dtype),
            "shape": list(result.shape),
            "data": _plain(result.tolist()),
        }
    click.echo(json.dumps(found, allow_nan=False))


def _plain(value: object) -> UserObject:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, complex):
        return [_plain(value.real), _plain(value.imag)]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def print_results(results: Sequence[np.ndarray], signature: Signature) -> None:
    """Prints results, one after the other, as `name: type = elements`."""
    for value, result in zip(signature.results, results, strict=True):
        # NumPy does not print bfloat16 with its own precision.
        shown = result.astype(np.float32) if result.dtype == dtypes.bfloat16 else result
        text = np.array2string(shown, separator=", ", threshold=_SHOWN_ELEMENTS)
        gap = "\n" if "\n" in text else " "
        click.echo(f"{value.name}: {value.text} ={gap}{text}")


def is_stream(path: Path) -> bool:
    """Tells whether an output is a stream: stdout for `-`, a device, a pipe."""
    return str(path) == "-" or (path.exists() and not path.is_file() and not path.is_dir())


def write_stream(path: Path, content: bytes) -> None:
    """Writes to stdout for `-`, else to the device or pipe."""
    if str(path) == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:
        with path.open("wb") as file:
            file.write(content)

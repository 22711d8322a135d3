"""The process of one part: tries its items one after the other, and writes their rows.

python -m benchmarks.gpu_report.worker PART ROWS --platform cuda
python -m benchmarks.gpu_report.worker PART ROWS --compile-for sm_90
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np

from axir.runtime import Device

from .devices import chosen_device, stand_in
from .items import Item
from .parts import PARTS
from .rows import Row, add_begun, add_end, add_rows, read_rows

# Tells the parent to continue in another process: this one's device is lost.
LOST = 3
_LONGEST_MESSAGE = 1500


def main() -> int:
    """Runs, or prepares, the part that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part")
    parser.add_argument("rows", type=Path)
    parser.add_argument("--platform", default="cuda")
    parser.add_argument("--compile-for", default="")
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    part = PARTS[options.part]
    device: Device | None = None
    if options.compile_for:
        device = stand_in(options.compile_for)
    elif part.needs_device:
        device = chosen_device(options.platform)
    done = set(read_rows(options.rows)[1])
    for item in part.items(options.tiny):
        if item.name in done:
            continue
        add_begun(options.rows, item.name)
        if options.compile_for:
            rows = [_prepared(item, device)]
        else:
            rows = _tried(item, device)
        add_rows(options.rows, rows)
        add_end(options.rows, item.name)
        is_there = device is not None and not options.compile_for
        if _has_failed(rows) and is_there and _is_lost(device):
            return LOST
    return 0


def _has_failed(rows: list[Row]) -> bool:
    return any(row.verdict == "error" for row in rows)


def _tried(item: Item, device: Device | None) -> list[Row]:
    start = time.perf_counter()
    try:
        rows = item.run(device)
    except Exception as error:
        rows = [Row(item.name, "error", _text_of(error))]
    seconds = time.perf_counter() - start
    return [Row(x.name, x.verdict, x.message, x.seconds or seconds, x.figures) for x in rows]


def _prepared(item: Item, device: Device | None) -> Row:
    start = time.perf_counter()
    try:
        item.prepare(device)
    except Exception as error:
        return Row(item.name, "error", _text_of(error), time.perf_counter() - start)
    return Row(item.name, "told", "compiled", time.perf_counter() - start)


def _text_of(error: Exception) -> str:
    lines = [x.strip() for x in str(error).splitlines() if x.strip()]
    return f"{type(error).__name__}: {' | '.join(lines)}"[:_LONGEST_MESSAGE]


def _is_lost(device: Device) -> bool:
    """Tells whether nothing comes back from the device any more."""
    sent = np.arange(4, dtype=np.float32)
    try:
        return not np.array_equal(device.put(sent).to_numpy(), sent)
    except Exception:
        return True


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # threads of a driver may never rest

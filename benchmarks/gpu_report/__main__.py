"""Makes the report of a GPU: `python -m benchmarks.gpu_report --out FOLDER`.

Each part runs in separate processes, and the report is updated after each stage of parts.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path

from .parts import PARTS, Part
from .rows import Row
from .running import run_part
from .text import write_report

_ROOT = Path(__file__).resolve().parents[2]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs parts; returns 1 if something has to be mended."""
    parser = argparse.ArgumentParser(prog="gpu_report", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="all by default")
    parser.add_argument("--out", type=Path, default=Path("gpu-report"), help="where it goes")
    parser.add_argument("--platform", default="cuda", help="cuda (default), vulkan or cpu")
    parser.add_argument("--compile-for", default="", help="compile alone, for sm_80 or sm_90")
    parser.add_argument("--tiny", action="store_true", help="little, for software devices")
    parser.add_argument("--seconds", type=float, default=460.0, help="most seconds for all (460)")
    options = parser.parse_args(arguments)
    end = time.monotonic() + options.seconds
    chosen = [PARTS[name] for name in options.parts] if options.parts else list(PARTS.values())
    if options.compile_for:
        chosen = [part for part in chosen if part.needs_device]
    found = run_stages(chosen, options, end)
    return int(any(row.is_bad for rows in found.values() for row in rows))


def run_stages(
    parts: Sequence[Part], options: argparse.Namespace, end: float
) -> dict[str, list[Row]]:
    """Runs parts stage by stage, in parallel within a stage; returns their rows.

    Args:
        parts: The parts, by stage.
        options: The command line's.
        end: When all must be through, by the monotonic clock.
    """
    options.out.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[Row]] = {}
    for _, stage in groupby(
        parts, key=lambda part: part.name if options.compile_for else part.stage
    ):
        together = list(stage)
        left = end - time.monotonic()
        if left <= 0:
            break
        with ThreadPoolExecutor(len(together)) as pool:
            runs = [pool.submit(_run, part, options, left) for part in together]
            for part, run in zip(together, runs, strict=True):
                found[part.name] = run.result()
        write_report(options.out, found, list(PARTS.values()))
        for part in together:
            bad = sum(row.is_bad for row in found[part.name])
            left = end - time.monotonic()
            print(f"{part.title}: {len(found[part.name])} rows, {bad} bad; {left:.0f} s left")
            sys.stdout.flush()
    return found


def _run(part: Part, options: argparse.Namespace, left: float) -> list[Row]:
    rows = options.out / f"{part.name}.rows"
    rows.unlink(missing_ok=True)
    command = [sys.executable, "-m", f"{__package__}.worker", part.name, str(rows.resolve())]
    command += ["--platform", options.platform, *(["--tiny"] if options.tiny else [])]
    limit, patience = min(part.limit, left), part.patience
    if options.compile_for:
        command += ["--compile-for", options.compile_for]
        limit, patience = left, left
    return run_part(command, rows, limit, patience, _environment())


def _environment() -> dict[str, str]:
    """Returns the variables of the processes of parts."""
    folders = [str(_ROOT), str(_ROOT / "tests"), os.environ.get("PYTHONPATH", "")]
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, folders)),
        "PYTHONUNBUFFERED": "1",
        "AXIR_COMPILER": "iree",  # which needs nothing but IREE's wheels
    }


if __name__ == "__main__":
    sys.exit(main())

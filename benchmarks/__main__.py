"""Runs the programs in axir and JAX, in processes that take turns, and shows ratios.

Run it by `make bench`, or `python benchmarks [NAME ...]`. Machines are shared and noisy: repeat
before you believe. Elsewhere: tests (nothing here fails a build).
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rich.console import Console

from benchmarks.harness.chart import draw
from benchmarks.harness.history import file_of, kept_runs, print_changes
from benchmarks.harness.measure import measure_all
from benchmarks.harness.program import Program
from benchmarks.harness.report import Run, describe_machine, is_busy, print_tables, progress
from benchmarks.programs import PROGRAMS
from benchmarks.programs.groups import GROUPS

# The processes of the libraries inherit these: one device, and one stream of random bits.
ENVIRONMENT = {"JAX_PLATFORMS": "cpu", "JAX_THREEFRY_PARTITIONABLE": "1"}
WIDTH_WITHOUT_TERMINAL = 120


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    add = parser.add_argument
    add("names", nargs="*", help="programs to run, with wildcards (all by default)")
    groups = [group.name for group in GROUPS]
    add("--group", action="append", choices=groups, help="only this group; may be repeated")
    add("--list", action="store_true", help="print the names of the programs")
    add("--rounds", type=int, default=15, help="rounds of each program (default 15)")
    add("--cold", action="store_true", help="also first calls and memory, in own processes")
    add("--timeout", type=float, default=180, help="seconds that an answer may take (180)")
    add("--json", type=Path, metavar="FILE", help="write the figures")
    add("--png", type=Path, metavar="FILE", help="draw the ratios")
    add("--keep", action="store_true", help="write the figures to benchmarks/history")
    add("--compare", nargs="*", type=Path, metavar="FILE", help="two runs (the last two kept)")
    add("--threshold", type=float, default=1.25, help="factor that --compare tells (1.25)")
    return parser


def _chosen(parser: argparse.ArgumentParser, options: argparse.Namespace) -> list[Program]:
    names: dict[str, None] = {}
    for pattern in options.names or ["*"]:
        found = fnmatch.filter(PROGRAMS, pattern)
        if not found:
            parser.error(f"no program is named {pattern}; --list names them")
        names.update(dict.fromkeys(found))
    programs = [PROGRAMS[name] for name in names]
    return [p for p in programs if options.group is None or p.group in options.group]


def _compare(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    files = options.compare or kept_runs()[-2:]
    if len(files) != 2:
        parser.error("--compare takes two files, or none if benchmarks/history has two")
    before, after = map(Run.read, files)
    print_changes(before, after, options.threshold, _console())


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL)


def _run(options: argparse.Namespace, programs: list[Program]) -> Run:
    machine, progress_console = describe_machine(), Console(stderr=True)
    if is_busy(machine):
        progress_console.print(
            f"[yellow]The machine is busy (load average {machine['load'][0]} on "
            f"{machine['cores']} cores): ratios are rough."
        )
    os.environ.update(ENVIRONMENT)
    with tempfile.TemporaryDirectory(prefix="axir-bench-") as folder:
        os.environ["AXIR_CACHE_DIR"] = folder
        tell = progress(len(programs), progress_console)
        rows = measure_all(programs, options.rounds, options.cold, options.timeout, tell)
    machine["load at the end"] = [round(load, 2) for load in os.getloadavg()]
    return Run(machine, rows)


def main() -> None:
    """Runs the programs that the command line names, or compares two runs."""
    parser = _parser()
    options = parser.parse_args()
    if options.compare is not None:
        _compare(parser, options)
        return
    programs = _chosen(parser, options)
    if options.list:
        print("\n".join(f"{program.group:10} {program.name}" for program in programs))
        return
    run = _run(options, programs)
    print_tables(run, _console())
    for path in (options.json, file_of(run) if options.keep else None):
        if path:
            run.write(path)
            print(f"wrote {path}", file=sys.stderr)
    if options.png:
        draw(run, options.png)
        print(f"wrote {options.png}", file=sys.stderr)


if __name__ == "__main__":
    main()

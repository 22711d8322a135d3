"""First calls: their times compared with JAX's, each in a separate process.

`measure_first_calls` starts `python benchmarks/first_calls.py --child LIBRARY STATE NAME`. States:
`cold`, with an empty cache, after the first call of another program; `first`, with an empty cache,
the first call of a process; `warm`, with the program in axir's disk cache, after the first call of
another program that is there, too. JAX has no cache on disk by default, so `warm` is compared with
its cold call. Arguments are on the device, and the result is waited for. Each process tells

* wall-clock and processor seconds of the first call, including the compiler's helper processes;
  processor time depends less on other load of the machine;
* seconds until calls reach their final speed: one program of axir's may serve while a faster one is
  compiled;
* seconds of a call from then on;
* peak memory of the process and its helpers, including Python and the library.

Elsewhere: the programs (`first_call_programs.py`), and calls after the first of all other programs
(`harness/`).
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import fnmatch
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from first_call_programs import NAMES, build

STATES = ("cold", "first", "warm")
# The largest ratios we mean to allow; JAX's cold call stands against all but `first`.
_GOALS = {"cold": 1.2, "first": 1.2, "warm": 0.2}
_SECONDS_OF_CALLS = 0.2
_HEAD = (
    f"{'':28}{'first call, ms':>24}{'processors, ms':>21}{'settled, s':>12}"
    f"{'call, us':>16}{'memory, MB':>12}\n"
    f"{'program':22}{'state':6}{'axir':>9}{'JAX':>8}{'ratio':>7}{'axir':>8}{'JAX':>6}{'ratio':>7}"
    f"{'axir':>12}{'axir':>9}{'JAX':>7}{'axir':>7}{'JAX':>5}"
)


@dataclass(frozen=True)
class Told:
    """The measurements of a process for one program: see above. Seconds and bytes."""

    first: float
    processors: float
    settled: float
    call: float
    memory: float


@dataclass(frozen=True)
class Result:
    """Medians of the measurements of a program, of axir's and of JAX's processes."""

    name: str
    state: str
    ours: Told
    theirs: Told

    @property
    def ratio(self) -> float:
        """The first call's time by JAX's."""
        return self.ours.first / self.theirs.first

    @property
    def processor_ratio(self) -> float:
        """The same of processors."""
        return self.ours.processors / self.theirs.processors


def measure_first_calls(
    chosen: Iterable[str], states: Iterable[str] = STATES, rounds: int = 3
) -> Iterator[Result]:
    """Yields medians of first calls, of axir and JAX in turn.

    Args:
        chosen: Names of programs.
        states: Which first calls: "cold", "first", "warm".
        rounds: How many processes each median rests on.
    """
    for name in chosen:
        theirs: dict[bool, Told] = {}
        for state in states:
            ours, others = [], []
            with tempfile.TemporaryDirectory() as kept:
                if state == "warm":
                    _run_process(name, "axir", "warm", kept)
                for _ in range(rounds):
                    ours.append(_run_fresh(name, "axir", state, kept))
                    if (state == "first") not in theirs:
                        others.append(_run_fresh(name, "jax", state, kept))
            # JAX's cold call stands against the warm one as well.
            theirs.setdefault(state == "first", _medians(others) if others else ours[0])
            yield Result(name, state, _medians(ours), theirs[state == "first"])


def _medians(told: list[Told]) -> Told:
    return Told(*map(statistics.median, zip(*map(dataclasses.astuple, told), strict=True)))


def _run_fresh(name: str, library: str, state: str, kept: str) -> Told:
    if state == "warm":
        return _run_process(name, library, state, kept)
    with tempfile.TemporaryDirectory() as empty:
        return _run_process(name, library, state, empty)


def _run_process(name: str, library: str, state: str, cache: str) -> Told:
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "AXIR_CACHE_DIR": cache}
    command = [sys.executable, os.path.abspath(__file__), "--child", library, state, name]
    output = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return Told(**json.loads(output.stdout.splitlines()[-1]))


# --- in the process of a program ----------------------------------------------------------------


def _children() -> list[str]:
    found: list[str] = []
    for task in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):  # a thread that has ended
            found += task.read_text().split()
    return found


_of_children: dict[str, float] = {}


def _processor_time() -> float:
    """Returns the seconds that this process, its children and theirs have computed."""
    for child in _children():
        tasks = Path(f"/proc/{child}/task").glob("*/schedstat")
        # Values of an ended process are kept.
        with contextlib.suppress(OSError):
            seconds = sum(int(task.read_text().split()[0]) for task in tasks) / 1e9
            _of_children[child] = max(seconds, _of_children.get(child, 0.0))
    return time.process_time() + sum(_of_children.values())


def _peak_memory() -> int:
    """Returns the peak bytes of this process and of each of its children."""
    peaks = []
    for process in ("self", *_children()):
        lines: list[str] = []
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{process}/status").read_text().splitlines()
        peaks += [int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:")]
    return sum(peaks)


def _tell(name: str, library: str, state: str) -> Told:
    sys.dont_write_bytecode = False  # as in `harness/session.py`
    sys.path.append(str(Path(__file__).parents[1]))
    lib = importlib.import_module(library)
    importlib.import_module(f"{library}.scipy.special")
    importlib.import_module(f"{library}.extend.backend")
    function, arguments = build(name, lib)
    arguments = lib.block_until_ready(lib.tree_util.tree_map(lib.device_put, arguments))
    if state != "first":
        lib.block_until_ready(lib.jit(lambda x: x * 3 - 1)(lib.device_put(np.ones(4, np.float32))))
    start, processors = time.perf_counter(), _processor_time()
    compiled = lib.jit(function)
    lib.block_until_ready(compiled(*arguments))
    first, processors = time.perf_counter() - start, _processor_time() - processors
    settled = first
    if library == "axir":
        waiting = time.perf_counter()
        lib.extend.backend.wait_for_compilers()
        waited = time.perf_counter() - waiting
        settled += waited if waited > 1e-3 else 0.0  # else nothing was compiled any more
    memory = _peak_memory()
    return Told(first, processors, settled, _seconds_of_call(lib, compiled, arguments), memory)


def _seconds_of_call(lib: ModuleType, compiled: Callable[..., Any], arguments: list[Any]) -> float:
    """Returns the median of calls one by one."""
    lib.block_until_ready(compiled(*arguments))
    times: list[float] = []
    while len(times) < 5 or sum(times) < _SECONDS_OF_CALLS:
        start = time.perf_counter()
        lib.block_until_ready(compiled(*arguments))
        times.append(time.perf_counter() - start)
    return statistics.median(times)


# --- the command line ---------------------------------------------------------------------------


def main() -> None:
    """Measures the programs named on the command line, or all, and prints a table."""
    parser = argparse.ArgumentParser(prog="first_calls", description=__doc__)
    parser.add_argument("names", nargs="*", default=["*"], help="programs, with wildcards")
    parser.add_argument("--states", default="cold,warm", help="of cold, first, warm")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="a file for the figures")
    parser.add_argument("--child", nargs=2, metavar=("LIBRARY", "STATE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(dataclasses.asdict(_tell(options.names[0], *options.child))))
        return
    chosen = [name for name in NAMES if any(fnmatch.fnmatch(name, p) for p in options.names)]
    results = []
    print(_HEAD)
    for result in measure_first_calls(chosen, options.states.split(","), options.rounds):
        results.append(result)
        print(_row(result), flush=True)
    for state in options.states.split(","):
        shown = [x for x in results if x.state == state]
        over = sum(x.ratio > _GOALS[state] for x in shown)
        mean = statistics.geometric_mean(x.ratio for x in shown)
        processors = statistics.geometric_mean(max(x.processor_ratio, 0.01) for x in shown)
        print(
            f"{state}: geometric mean {mean:.2f}, of processors {processors:.2f}; "
            f"{over} of {len(shown)} above {_GOALS[state]:g}"
        )
    if options.json:
        options.json.write_text(json.dumps(list(map(dataclasses.asdict, results)), indent=1))


def _row(result: Result) -> str:
    a, b = result.ours, result.theirs
    mark = "*" if result.ratio > _GOALS[result.state] else " "
    return (
        f"{result.name:22}{result.state:6}{a.first * 1e3:9.0f}{b.first * 1e3:8.0f}"
        f"{result.ratio:6.2f}{mark}{a.processors * 1e3:8.0f}{b.processors * 1e3:6.0f}"
        f"{result.processor_ratio:7.2f}"
        f"{a.settled:12.2f}{a.call * 1e6:9.0f}{b.call * 1e6:7.0f}"
        f"{a.memory / 1e6:7.0f}{b.memory / 1e6:5.0f}"
    )


if __name__ == "__main__":
    main()

"""Measures the programs on JAX and on axir, and makes the table of `docs/libraries.md` of it.

    python measure.py --axir PYTHON --jax PYTHON [names of programs, else all]

PYTHON is the interpreter of an environment with the libraries, one with JAX, one with axir in its
place. A program runs in both, on one core, once after the other, or `--rounds` times; the least
time counts. The measurements are kept in `measured.json`, and JAX's results in `expected.json`.
Without the two interpreters, the table is made from the kept figures.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import resource
import subprocess
import tempfile
import time
from pathlib import Path

import libraries
import numpy as np
import record

FOLDER = Path(__file__).parent
FILE = FOLDER / "measured.json"
PAGE = FOLDER.parents[1] / "docs" / "libraries.md"
CALLS = "40"
SECONDS = 900
ADOPTS_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER: helpers that outlive a program count to it
VERSIONS = """
import importlib.metadata as m, json, sys
names = m.packages_distributions()
print(json.dumps({x: m.version(names[x][0]) for x in sys.argv[1:]}))
"""


def used() -> float:
    """Returns the processor time of all child processes that have ended, after waiting for them."""
    try:
        while True:
            os.wait()
    except ChildProcessError:
        pass
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measured(command: list[str]) -> tuple[dict[str, object], dict[str, float]]:
    """Returns a program's results, and its times; raises RuntimeError if it failed."""
    with tempfile.TemporaryDirectory() as cache:
        options = {"JAX_PLATFORMS": "cpu", "AXIR_CACHE_DIR": cache, "ECOSYSTEM_CALLS": CALLS}
        before, begun = used(), time.perf_counter()
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            env=os.environ | options,
        )
        times = {"total": time.perf_counter() - begun}
        times["total_processors"] = used() - before
    lines = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    if done.returncode or "TIMES" not in lines:
        raise RuntimeError(done.stderr[-1500:])
    results = json.loads(lines["RESULTS"])
    del results["implementation"]
    return results, times | json.loads(lines["TIMES"])


def difference(results: dict[str, object], wanted: dict[str, object]) -> float:
    """Returns the largest difference, in multiples of the largest element of its result."""
    worst = 0.0
    for key, value in wanted.items():
        here, there = np.asarray(results[key], float), np.asarray(value, float)
        if here.shape != there.shape or (np.isnan(here) != np.isnan(there)).any():
            return math.inf
        largest = np.max(np.abs(np.nan_to_num(there)), initial=1e-30)
        away = np.max(np.abs(np.nan_to_num(here - there)), initial=0.0)
        worst = max(worst, float(away / largest))
    return worst


def measure(name: str, interpreters: dict[str, str], rounds: int) -> dict[str, object]:
    """Runs a program on both, keeps JAX's results, and returns the times to keep."""
    program = str(FOLDER / "programs" / f"{name}.py")
    commands = {
        "jax": [interpreters["jax"], "-W", "ignore", program],
        "axir": [interpreters["axir"], "-W", "ignore", "-m", "axir.as_jax", program],
    }
    results, times = {}, {"jax": [], "axir": []}
    for _ in range(rounds):
        for side, command in commands.items():
            results[side], took = measured(command)
            times[side].append(took)
    keys = times["jax"][0]
    kept = {key: [min(t[key] for t in times[side]) for side in commands] for key in keys}
    expected = json.loads((FOLDER / "expected.json").read_text())
    if expected.get(name) != results["jax"]:
        record.write({**expected, name: results["jax"]})
    asked = [interpreters["jax"], "-c", VERSIONS, libraries.LIBRARIES[name][0]]
    versions = json.loads(subprocess.run(asked, capture_output=True, check=True).stdout)
    away = difference(results["axir"], results["jax"])
    return {**kept, "difference": away, "version": versions[libraries.LIBRARIES[name][0]]}


KEYS = ("step_processors", "total_processors", "memory")
# On a busy machine, JAX's threads wait for each other and use up processor time, and even more
# wall-clock time. Where the latter is so much more, the ratio means nothing.
WAITING = 1.3


def ratio(row: dict[str, list[float]], key: str) -> float | None:
    """Returns axir's figure in multiples of JAX's, or None where JAX's threads waited."""
    if key == "step_processors" and row["step"][0] > WAITING * row[key][0]:
        return None
    there, here = row[key]
    return here / there


def shown(row: dict[str, list[float]]) -> list[str]:
    """Returns the cells of a row."""
    figures = [ratio(row, key) for key in KEYS]
    return ["-" if figure is None else f"{figure:.2f}" for figure in figures]


def mean(rows: list[dict[str, list[float]]], key: str) -> str:
    """Returns the geometric mean of the ratios, and of how many."""
    figures = [figure for row in rows if (figure := ratio(row, key)) is not None]
    return f"**{math.exp(sum(map(math.log, figures)) / len(figures)):.2f}** ({len(figures)})"


def table(kept: dict[str, dict[str, list[float]]]) -> str:
    """Returns the table of the page."""
    lines = [
        "| library | version | what the program does | step | total | memory | program |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, row in sorted(kept.items()):
        text = (FOLDER / "programs" / f"{name}.py").read_text().split('"""')[1]
        library, does = text.strip().removesuffix(".").split(": ", 1)
        cells = [library, row["version"], does, *shown(row), f"`{name}`"]
        lines.append(f"| {' | '.join(cells)} |")
    means = [mean(list(kept.values()), key) for key in KEYS]
    lines.append(f"| geometric mean, of how many | | | {' | '.join(means)} | |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measures the programs that the command line names, and writes the table."""
    parser = argparse.ArgumentParser(description="Measures programs on JAX and on axir.")
    parser.add_argument("--axir", help="an interpreter with axir in the place of JAX")
    parser.add_argument("--jax", help="an interpreter with JAX")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    ctypes.CDLL(None).prctl(ADOPTS_ORPHANS, 1)
    # On one core no thread waits for another, whatever the machine's load.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    for name in (asked.names or sorted(libraries.LIBRARIES)) if asked.jax and asked.axir else ():
        try:
            row = measure(name, {"jax": asked.jax, "axir": asked.axir}, asked.rounds)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            print(f"{name}: {error}", flush=True)
            continue
        kept = json.loads(FILE.read_text()) if FILE.exists() else {}
        FILE.write_text(json.dumps({**kept, name: row}, indent=1, sort_keys=True) + "\n")
        figures = ", ".join(map(" ".join, zip(KEYS, shown(row), strict=True)))
        print(f"{name}: differs by {row['difference']:.1e}; {figures}", flush=True)
    before, _, rest = PAGE.read_text().partition("<!-- measured -->\n")
    after = rest.partition("<!-- end -->\n")[2]
    made = table(json.loads(FILE.read_text()))
    PAGE.write_text(f"{before}<!-- measured -->\n{made}<!-- end -->\n{after}")


if __name__ == "__main__":
    main()

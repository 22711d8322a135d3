"""A run: the machine, the rows, their table on the terminal, and the file that keeps them."""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.harness.measure import Row

_PACKAGES = ("axir", "jax", "jaxlib", "numpy", "torch", "iree-base-compiler", "iree-base-runtime")
_ROOT = Path(__file__).parents[2]
_ROOMS = ("frontend", "dialect", "passes", "runtime")
# Load by other processes per core above which ratios are unreliable.
BUSY = 0.25
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


@dataclass
class Run:
    """Rows, and where they were measured."""

    machine: dict[str, Any]
    rows: list[Row]

    def write(self, path: Path) -> None:
        """Writes JSON, one row a line."""
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = ",\n".join(json.dumps(_rounded(asdict(row))) for row in self.rows)
        machine = json.dumps(self.machine, indent=1)
        path.write_text(f'{{"machine": {machine},\n"rows": [\n{rows}\n]}}\n', encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Run:
        """Reads what `write` wrote; columns of other versions are left out."""
        content = json.loads(path.read_text(encoding="utf-8"))
        known = {field.name for field in fields(Row)}
        rows = [{k: v for k, v in row.items() if k in known} for row in content["rows"]]
        return cls(content["machine"], [Row(**row) for row in rows])


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    return float(f"{value:.4g}") if isinstance(value, float) else value


def describe_machine() -> dict[str, Any]:
    """Returns the machine, its load, the versions, and the commit that is measured."""
    return {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "commit": _commit(),
        "cpu": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "system": platform.platform(),
        "python": platform.python_version(),
        "load": [round(load, 2) for load in os.getloadavg()],
        "versions": {name: found for name in _PACKAGES if (found := _version(name))},
    }


def is_busy(machine: dict[str, Any]) -> bool:
    """Tells whether others used the machine in the minute before the run."""
    return machine["load"][0] > BUSY * machine["cores"]


def _commit() -> str:
    """Returns the last commit of the installed version, with a mark for uncommitted changes."""
    try:
        commit = _git("log", "-1", "--format=%h", "--", *_ROOMS)
        return commit + ("-changed" if _git("status", "--porcelain", "--", *_ROOMS) else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def geometric_mean(ratios: Iterable[float]) -> float:
    """Returns the geometric mean, NaN of nothing."""
    logs = [math.log(ratio) for ratio in ratios]
    return math.exp(statistics.fmean(logs)) if logs else math.nan


def in_words(seconds: float | None) -> str:
    """Returns a time with its unit; a dash for none.

    Example:
        >>> in_words(0.00123)
        '1.23 ms'
    """
    if seconds is None:
        return "-"
    unit, name = next((unit for unit in _UNITS if seconds >= unit[0]), _UNITS[-1])
    return f"{seconds / unit:.3g} {name}"


def print_tables(run: Run, console: Console) -> None:
    """Prints a table for each group, one of first calls and memory, and what failed."""
    for group in dict.fromkeys(row.group for row in run.rows):
        console.print(_table(group, [row for row in run.rows if row.group == group]))
    cold = [row for row in run.rows if row.cold]
    if cold:
        console.print(_cold_table(cold))
    for row in run.rows:
        if row.failure:
            console.print(f"[red]FAILED[/] {row.name}: {row.failure}", highlight=False)
    compiled = [r.ratio for r in run.rows if r.ratio and r.group in ("kernels", "loops", "models")]
    over = sum(row.is_over for row in run.rows)
    failed = sum(row.failure is not None for row in run.rows)
    console.print(
        f"{len(run.rows)} programs; {over} over their goal; {failed} failed; "
        f"geometric mean of the {len(compiled)} compiled: {geometric_mean(compiled):.2f}"
    )


def _table(group: str, rows: list[Row]) -> Table:
    mean = geometric_mean(row.ratio for row in rows if row.ratio)
    table = Table(title=f"{group}: geometric mean of the ratios {mean:.2f} (lower is better)")
    others = [name for name in ("jax", "numpy", "torch") if any(name in r.times for r in rows)]
    _columns(table, "program", "axir", *others, "ratio", "of all threads", "goal", "")
    for row in rows:
        verdict = "[red]FAILED" if row.failure else "[yellow]over" if row.is_over else "ok"
        times = [in_words(row.times.get(name)) for name in ("axir", *others)]
        ratios = (_ratio(row.ratio), _ratio(row.processor_ratio))
        table.add_row(row.name, *times, *ratios, f"{row.goal:g}", verdict)
    return table


def _cold_table(rows: list[Row]) -> Table:
    table = Table(title="first calls and peak memory, each in a process of its own")
    _columns(table, "program", "cold", "jax", "ratio", "warm", "ratio", "MB", "jax", "ratio")
    for row in rows:
        ours, again, theirs = (row.cold[who] for who in ("axir", "axir again", "jax"))
        table.add_row(
            row.name,
            in_words(ours["seconds"]),
            in_words(theirs["seconds"]),
            _ratio(row.first_ratio),
            in_words(again["seconds"]),
            _ratio(row.warm_ratio),
            *(f"{told['peak'] / 1e6:.0f}" for told in (again, theirs)),
            _ratio(row.memory_ratio),
        )
    return table


def _columns(table: Table, *headings: str) -> None:
    for heading in headings:
        table.add_column(heading, justify="left" if heading in ("program", "") else "right")


def _ratio(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}"


def progress(total: int, console: Console) -> Callable[[Row], None]:
    """Returns a function that prints a line for each row as it comes."""
    count = 0

    def tell(row: Row) -> None:
        nonlocal count
        count += 1
        told = row.failure or f"{_ratio(row.ratio)} ({_ratio(row.processor_ratio)} of all threads)"
        console.print(
            f"{count}/{total} {row.name}: {told}", highlight=False, soft_wrap=True, markup=False
        )

    return tell

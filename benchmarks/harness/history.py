"""Runs that are kept, one file a version, and what became slower between two of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.harness.report import Run

HISTORY = Path(__file__).parents[1] / "history"


@dataclass(frozen=True)
class Change:
    """A program that two runs know; `factor` above 1 is slower in the later one."""

    name: str
    before: float
    after: float
    failure: str | None = None

    @property
    def factor(self) -> float:
        return self.after / self.before


def file_of(run: Run) -> Path:
    """Returns where a run is kept: version, day and commit, in the order of time."""
    machine = run.machine
    commit = re.sub(r"[^\w.-]", "", machine["commit"])
    return HISTORY / f"{machine['versions']['axir']}_{machine['date'][:10]}_{commit}.json"


def kept_runs() -> list[Path]:
    """Returns the files of the history, from the oldest run to the latest."""
    return sorted(HISTORY.glob("*.json"), key=lambda path: Run.read(path).machine["date"])


def changes(before: Run, after: Run) -> list[Change]:
    """Returns the changes of the ratios, from the worst to the best.

    Ratios are compared because both libraries ran on the same machine, so the machine's speed
    cancels out. A program that fails only in the later run comes first.
    """
    old = {row.name: row.ratio for row in before.rows if row.ratio}
    found = [
        Change(row.name, old[row.name], row.ratio or float("inf"), row.failure)
        for row in after.rows
        if row.name in old
    ]
    return sorted(found, key=lambda change: -change.factor)


def print_changes(before: Run, after: Run, threshold: float, console: Console) -> None:
    """Prints what became slower, or faster, by more than a factor."""
    found = changes(before, after)
    for direction, chosen in (
        ("slower", [c for c in found if c.factor > threshold]),
        ("faster", [c for c in reversed(found) if c.factor < 1 / threshold]),
    ):
        table = Table(title=f"{len(chosen)} of {len(found)} programs became {direction}")
        for heading in ("program", "ratio before", "after", "factor", ""):
            justify = "left" if heading in ("program", "") else "right"
            table.add_column(heading, justify=justify)
        for change in chosen:
            figures = (change.before, change.after, change.factor)
            told = [f"{figure:.2f}" for figure in figures]
            table.add_row(change.name, *told, change.failure or "")
        console.print(table)
    for key in ("cpu", "cores"):
        if before.machine[key] != after.machine[key]:
            console.print(f"The {key} differ: {before.machine[key]} and {after.machine[key]}.")

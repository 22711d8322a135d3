"""Results of a part of the report: one row for each tried item, as lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

# From the worst on.
BAD = ("wrong", "crash", "hang", "error", "not reached")
VERDICTS = (*BAD, "refused", "right", "measured", "told")
_BEGUN, _ENDED = "begun", "ended"


@dataclass(frozen=True)
class Row:
    """What became of one item.

    Attributes:
        name: The tried item.
        verdict: One of `VERDICTS`.
        message: The error, or a note.
        seconds: How long it took in all.
        figures: The measurements, by name.
    """

    name: str
    verdict: str
    message: str = ""
    seconds: float = 0.0
    figures: dict[str, float] = field(default_factory=dict)

    @property
    def is_bad(self) -> bool:
        """Whether something has to be mended."""
        return self.verdict in BAD


def add_begun(path: Path, name: str) -> None:
    """Writes that an item begins, so that a crash can be attributed to it."""
    _add(path, {"name": name, "verdict": _BEGUN})


def add_end(path: Path, name: str) -> None:
    """Writes that an item is through."""
    _add(path, {"name": name, "verdict": _ENDED})


def add_rows(path: Path, rows: Iterable[Row]) -> None:
    """Writes the rows."""
    for row in rows:
        _add(path, asdict(row))


def _add(path: Path, content: object) -> None:
    with path.open("a") as file:
        file.write(json.dumps(content) + "\n")


def read_rows(path: Path) -> tuple[list[Row], list[str], str | None]:
    """Returns the rows of a file, the items that were begun, and the one that has no end yet."""
    rows, begun, current = list[Row](), list[str](), None
    lines = path.read_text().splitlines() if path.exists() else []
    for line in lines:
        try:
            content = json.loads(line)
        except ValueError:  # its writer was killed on the way
            continue
        if content["verdict"] == _BEGUN:
            current = content["name"]
            begun.append(current)
        elif content["verdict"] == _ENDED:
            current = None
        else:
            rows.append(Row(**content))
    return rows, begun, current

"""Measurements of models: rows, the file that stores them, and derived figures."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import geometric_mean
from typing import Any

OTHERS = ("eager", "compiled", "onnxruntime")
OURS = ("axir", "cpp")
WAYS = (*OTHERS, *OURS)


@dataclass
class Timing:
    """A way to run a model, measured; seconds of a call.

    Attributes:
        median: Median of all calls.
        least: The shortest call, which other load disturbs least.
        p99: What 99 of 100 calls stay below.
        processor: Of all threads together, the median of the rounds.
        loading: Until the model could be called.
        first: The first call, compiling included.
        error: Largest difference from the expected result, relative to the largest value.
    """

    median: float
    least: float
    p99: float
    processor: float
    loading: float
    first: float
    error: float


@dataclass
class Row:
    """A model at a batch size with a number of threads.

    Attributes:
        model: Its name.
        batch: The batch size.
        threads: The number of threads.
        timings: By the way to run it.
        failures: Reasons for missing timings, by way of running.
        made: Seconds and bytes of one-time costs: import, C++ written and built, its size.
        load: Load average when the row began.
    """

    model: str
    batch: int
    threads: int
    timings: dict[str, Timing] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    made: dict[str, float] = field(default_factory=dict)
    load: float = 0.0

    @property
    def key(self) -> tuple[str, int, int]:
        """The identity of the row."""
        return self.model, self.batch, self.threads

    def fastest(self, ways: Iterable[str], what: str = "median") -> float | None:
        """Returns the least time of some ways; None where none of them ran."""
        found = [getattr(self.timings[way], what) for way in ways if way in self.timings]
        return min(found, default=None)

    def ratio(self, way: str, what: str = "median") -> float | None:
        """Returns a way's time divided by the fastest of the others."""
        other = self.fastest(OTHERS, what)
        if way not in self.timings or not other:
            return None
        return float(getattr(self.timings[way], what) / other)


def write(path: Path, machine: Mapping[str, Any], rows: Iterable[Row]) -> None:
    """Writes JSON, one row a line."""
    lines = ",\n".join(json.dumps(_rounded(asdict(row))) for row in rows)
    text = f'{{"machine": {json.dumps(machine, indent=1)},\n"rows": [\n{lines}\n]}}\n'
    path.write_text(text, encoding="utf-8")


def read(path: Path) -> tuple[dict[str, Any], list[Row]]:
    """Reads what `write` wrote."""
    content = json.loads(path.read_text(encoding="utf-8"))
    rows = [Row(**row) for row in content["rows"]]
    for row in rows:
        row.timings = {way: Timing(**told) for way, told in row.timings.items()}  # type: ignore[arg-type]
    return content["machine"], rows


def mean_ratio(rows: Iterable[Row], way: str, what: str = "median") -> float | None:
    """Returns the geometric mean of a way's ratios."""
    ratios = [ratio for row in rows if (ratio := row.ratio(way, what))]
    return geometric_mean(ratios) if ratios else None


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    return float(f"{value:.4g}") if isinstance(value, float) else value

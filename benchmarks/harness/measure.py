"""A row of the table: the libraries run a program in turn; medians, and whether they agree."""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.harness.program import Program
from benchmarks.harness.session import FirstCall, Prepared
from benchmarks.harness.workers import Worker, WorkerError

# Seconds after which a program has had enough rounds.
MAX_SECONDS = 15.0
TOLERANCES = {"float64": 1e-9, "float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}


@dataclass
class Row:
    """The measurements of a program; times in seconds, memory in bytes.

    Attributes:
        times: Medians by library.
        ratio: Median over the rounds of axir's time by the other's.
        processor_times: Medians by library of the time of all threads together.
        processor_ratio: The same ratio of processor times, which depend least on other load of the
            machine.
        first: First call in the process that runs all programs: tracing and compiling.
        error: Largest difference from the other library, relative to the largest value.
        failure: Why the row does not count; None if it does.
        load: Load average when the row began.
        cold: First calls in separate processes: axir, JAX, and axir with a filled cache.
    """

    name: str
    group: str
    goal: float
    other: str
    times: dict[str, float] = field(default_factory=dict)
    ratio: float | None = None
    processor_times: dict[str, float] = field(default_factory=dict)
    processor_ratio: float | None = None
    first: dict[str, float] = field(default_factory=dict)
    error: float | None = None
    failure: str | None = None
    load: float = 0.0
    cold: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def is_over(self) -> bool:
        """Whether the ratio is above the goal."""
        return self.ratio is not None and self.ratio > self.goal

    @property
    def first_ratio(self) -> float | None:
        """The cold first call of axir divided by JAX's, from separate processes."""
        return self._cold_ratio("axir")

    @property
    def warm_ratio(self) -> float | None:
        """The first call of axir with a filled cache by JAX's cold one."""
        return self._cold_ratio("axir again")

    @property
    def memory_ratio(self) -> float | None:
        """The peak memory of axir's warm process divided by JAX's."""
        return self._cold_ratio("axir again", "peak")

    def _cold_ratio(self, who: str, what: str = "seconds") -> float | None:
        return self.cold[who][what] / self.cold["jax"][what] if self.cold else None


def measure(program: Program, workers: Mapping[str, Worker], rounds: int) -> Row:
    """Runs a program in the processes of its libraries, in turn, and compares the results."""
    row = Row(program.name, program.group, program.goal, program.other, load=os.getloadavg()[0])
    libraries = [name for name in program.libraries if name in workers]
    try:
        prepared = {name: _ask(workers[name], "prepare", program.name) for name in libraries}
        row.first = {name: told.first for name, told in prepared.items()}
        row.error = compare(program, prepared["axir"].values, prepared[program.other].values)
        _time(row, prepared, workers, rounds)
        for name in libraries:
            workers[name].drop()
    except (WorkerError, WrongValue) as error:
        row.failure = f"{type(error).__name__}: {error}"
        for name in libraries:
            workers[name].close()
    return row


def _ask(worker: Worker, *request: str) -> Any:
    try:
        return worker.ask(*request)
    except WorkerError as error:
        raise WorkerError(f"{worker.library}: {error}") from error


def _time(
    row: Row, prepared: Mapping[str, Prepared], workers: Mapping[str, Worker], rounds: int
) -> None:
    seconds = sum(told.once * told.repeats for told in prepared.values())
    rounds = max(3, min(rounds, int(MAX_SECONDS / max(seconds, 1e-3))))
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in prepared}
    for index in range(rounds):
        for name in prepared if index % 2 == 0 else reversed(prepared):
            times[name].append(_ask(workers[name], "time", prepared[name].repeats))
    row.times, row.ratio = _medians(times, row.other, 0)
    row.processor_times, row.processor_ratio = _medians(times, row.other, 1)


def _medians(
    times: Mapping[str, list[tuple[float, float]]], other: str, clock: int
) -> tuple[dict[str, float], float]:
    columns = {name: [told[clock] for told in column] for name, column in times.items()}
    ratios = (ours / theirs for ours, theirs in zip(columns["axir"], columns[other], strict=True))
    return {name: statistics.median(c) for name, c in columns.items()}, statistics.median(ratios)


class WrongValue(Exception):
    """The libraries return different values."""


def compare(program: Program, ours: list[np.ndarray], theirs: list[np.ndarray]) -> float:
    """Returns the largest error relative to the largest value of its array."""
    if len(ours) != len(theirs):
        raise WrongValue(f"{len(ours)} results instead of {len(theirs)}")
    errors = [0.0]
    for index, (our, their) in enumerate(zip(ours, theirs, strict=True)):
        if our.shape != their.shape or (program.jax and our.dtype != their.dtype):
            raise WrongValue(
                f"result {index} is {our.dtype}{list(our.shape)} "
                f"instead of {their.dtype}{list(their.shape)}"
            )
        if program.check is not None:
            our, their = program.check(our), program.check(their)
        error, tolerance = relative_error(our, their), program.tolerance
        if tolerance is None:
            tolerance = tolerance_of(our.dtype)
        if not error <= tolerance:
            raise WrongValue(f"result {index} differs by {error:.2g} of the largest value")
        errors.append(error)
    return max(errors)


def tolerance_of(dtype: np.dtype) -> float:
    """Returns the largest relative error of a long sum in a dtype; integers are exact."""
    name = {"complex64": "float32", "complex128": "float64"}.get(dtype.name, dtype.name)
    return TOLERANCES.get(name, 0.0)


def relative_error(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Returns the largest difference by the largest finite value; NaN must meet NaN."""
    if ours.size == 0 or np.array_equal(ours, theirs):
        return 0.0
    wide = np.complex128 if ours.dtype.kind == "c" else np.float64
    ours, theirs = ours.astype(wide), theirs.astype(wide)
    finite = np.isfinite(theirs)
    if not np.array_equal(ours[~finite], theirs[~finite], equal_nan=True):
        return float("inf")
    if not finite.any():
        return 0.0
    difference = np.max(np.abs(ours[finite] - theirs[finite]))
    return float(difference / max(np.max(np.abs(theirs[finite])), 1e-30))


def _measure_first_calls(row: Row, program: Program, timeout: float) -> None:
    """Adds first calls and memory of processes that do nothing else.

    axir runs twice, with an empty disk cache and with the cache filled by the first process.
    """
    try:
        with _empty_cache():
            told = {name: _alone("axir", program, timeout) for name in ("axir", "axir again")}
        told["jax"] = _alone("jax", program, timeout)
    except WorkerError as error:
        row.failure = f"first call: {error}"
    else:
        row.cold = {name: asdict(first) for name, first in told.items()}


def _alone(library: str, program: Program, timeout: float) -> FirstCall:
    worker = Worker(library, timeout)
    try:
        return worker.ask("first_call", program.name)
    finally:
        worker.close()


@contextmanager
def _empty_cache() -> Iterator[None]:
    before = os.environ["AXIR_CACHE_DIR"]
    with tempfile.TemporaryDirectory(prefix="axir-bench-") as folder:
        os.environ["AXIR_CACHE_DIR"] = folder
        try:
            yield
        finally:
            os.environ["AXIR_CACHE_DIR"] = before


def measure_all(
    programs: list[Program],
    rounds: int,
    cold: bool,
    timeout: float,
    tell: Callable[[Row], None],
) -> list[Row]:
    """Measures programs one after the other, and tells each row as soon as it is known."""
    libraries = sorted({name for program in programs for name in program.libraries})
    workers = {name: Worker(name, timeout) for name in libraries if _is_installed(name)}
    rows = []
    try:
        for program in programs:
            row = measure(program, workers, rounds)
            if cold and program.cold and row.failure is None:
                _measure_first_calls(row, program, timeout)
            rows.append(row)
            tell(row)
    except KeyboardInterrupt:  # the rows so far are shown and written
        print("interrupted", file=sys.stderr)
    finally:
        for worker in workers.values():
            worker.close()
    return rows


def _is_installed(library: str) -> bool:
    return find_spec(library) is not None

"""How two programs are timed against each other: in turn, by medians."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Case:
    """A comparison.

    Attributes:
        make: Returns the two programs, ours and JAX's, warmed up by nobody yet.
        goal: Largest ratio we mean to allow; None for cases without one.
        unit: What the figures are, after division by `scale`.
        scale: Operations in one run, so that figures are per operation.
        seconds: Whether the programs return their own seconds (for whole processes).
    """

    make: Callable[[], tuple[Callable[[], Any], Callable[[], Any]]]
    goal: float | None = None
    unit: str = "us"
    scale: float = 1.0
    seconds: bool = False


@dataclass(frozen=True)
class Result:
    """Medians of a comparison, in the case's unit."""

    name: str
    unit: str
    ours: float
    theirs: float
    ratio: float
    goal: float | None


_FACTOR = {"us": 1e6, "ms": 1e3, "s": 1.0}


def compare(name: str, case: Case, rounds: int) -> Result:
    """Times both programs in turn; the ratio is the median of the rounds' ratios."""
    programs = case.make()
    repeats = [_calibrate(program, case) for program in programs]
    times: tuple[list[float], list[float]] = ([], [])
    for index in range(rounds):
        order = (0, 1) if index % 2 == 0 else (1, 0)
        for which in order:
            times[which].append(_time(programs[which], repeats[which], case))
    ours, theirs = (statistics.median(column) for column in times)
    ratio = statistics.median(a / b for a, b in zip(*times, strict=True))
    factor = _FACTOR[case.unit] / case.scale
    return Result(name, case.unit, ours * factor, theirs * factor, ratio, case.goal)


def _time(program: Callable[[], Any], repeats: int, case: Case) -> float:
    if case.seconds:
        return float(program())
    start = time.perf_counter()
    for _ in range(repeats):
        program()
    return (time.perf_counter() - start) / repeats


def _calibrate(program: Callable[[], Any], case: Case) -> int:
    """Warms up, and returns how many runs take about 20 ms."""
    if case.seconds:
        return 1
    for _ in range(8):
        program()
    start = time.perf_counter()
    program()
    once = max(time.perf_counter() - start, 1e-7)
    return max(1, min(20000, int(0.02 / once)))

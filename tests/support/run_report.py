"""What a run of the tests cost: a pytest plugin that lists the slowest files at the end.

Each test's report carries the number of compilations that it took, so this works with the workers
of pytest-xdist. Counted is each run of the compiler for this process, in a helper, in the process
itself, or by `compile_module` of `stablehlo_runner`; not what programs that tests start compile,
nor what the cache answers. What does not live here: how long single tests take (`--durations`).
"""

from __future__ import annotations

import dataclasses
import functools
import os
import resource
import sys
from collections import defaultdict
from collections.abc import Callable, Generator
from typing import Any

import pytest

_SLOWEST = 10
_PROPERTY = "cost"
_BYTES_PER_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclasses.dataclass
class Cost:
    """What tests took: seconds, runs of the compiler, and bytes by which their process grew."""

    seconds: float = 0.0
    compilations: int = 0
    memory: int = 0


@dataclasses.dataclass
class Report:
    """Costs by file, and the peak of the memory by worker."""

    files: defaultdict[str, Cost] = dataclasses.field(default_factory=lambda: defaultdict(Cost))
    memory: dict[str, int] = dataclasses.field(default_factory=dict)


_compilations = 0
_reported = 0
_report = Report()


def counted(compiler: Callable[..., Any]) -> Callable[..., Any]:
    """A function that runs the compiler, with its calls counted."""

    @functools.wraps(compiler)
    def call(*args: Any, **options: Any) -> Any:
        global _compilations
        _compilations += 1
        return compiler(*args, **options)

    return call


def pytest_configure(config: pytest.Config) -> None:
    """Has this process count its compilations, if it is one that runs tests."""
    if not config.getoption("numprocesses", None):
        from axir.runtime.compiler.helpers import HelperPool
        from axir.runtime.compiler.invocation.invoker import Invoker

        for owner in (HelperPool, Invoker):
            owner.compile = counted(owner.compile)  # type: ignore[method-assign]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Writes on the report of a test's phase what was compiled since the one before it."""
    global _reported
    report = yield
    count, _reported = _compilations - _reported, _compilations
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _BYTES_PER_UNIT
    report.user_properties.append((_PROPERTY, (count, worker, memory)))
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Adds up the costs by file, in the process that reports."""
    cost = _report.files[report.nodeid.partition("::")[0]]
    cost.seconds += report.duration
    for name, value in report.user_properties:
        if name == _PROPERTY:
            count, worker, memory = value
            cost.compilations += count
            cost.memory += memory - _report.memory.get(worker, memory)
            _report.memory[worker] = memory


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Lists the slowest files."""
    if not _report.files:
        return
    costs = _report.files.values()
    sums = zip(*map(dataclasses.astuple, costs), strict=True)
    total = Cost(*map(sum, sums))
    terminalreporter.section("slowest files")
    ranked = sorted(_report.files.items(), key=lambda item: -item[1].seconds)
    for name, cost in [*ranked[:_SLOWEST], (f"all {len(ranked)} files", total)]:
        terminalreporter.line(
            f"{cost.seconds:8.1f} s  {cost.compilations:5} compilations  "
            f"{cost.memory / 1e6:+6.0f} MB  {name}"
        )
    peaks = ", ".join(f"{peak / 1e9:.1f} GB" for peak in _report.memory.values())
    terminalreporter.line(f"Largest memory of the processes that ran tests: {peaks}")

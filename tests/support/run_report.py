"""The costs of a run of the tests: a pytest plugin that lists the slowest files at the end.

Each test's report carries its costs, so this works with the workers of pytest-xdist. It counts each
run of the compiler for this process, in a helper, in the process itself, or by `compile_module` of
`stablehlo_runner`. It does not count runs in programs that tests start, nor hits of the cache.
`--file-costs PATH` writes the table of all files. Elsewhere: how long single tests take
(`--durations`).

It also tells how many programs were proven to read the right memory, and how many were refused. A
test with a refused program fails, unless it has the mark `makes_wrong_programs`. `compile_module`
of `stablehlo_runner` runs `iree-compile`, which proves nothing.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

_SLOWEST = 10
_PROPERTY = "cost"
_MARKER = "makes_wrong_programs"
_REFUSED = (
    "IREE made a program that would read something else in memory than it means: the log says "
    f"which (level WARNING). A test that wants that is marked with `{_MARKER}`."
)
_BYTES_PER_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclasses.dataclass
class Cost:
    """The costs of tests.

    Attributes:
        seconds: Seconds by the clock.
        processor: Processor seconds of their process, without the compiler's helpers.
        compiling: Seconds by the clock that they waited for the compiler.
        compilations: Runs of the compiler.
        memory: Bytes by which their process grew.
        proven: Programs that are proven to read the right memory.
        unknown: Programs without a proof or a refusal.
        refused: Programs that would read the wrong memory.
        provoked: Refused programs that a test wants.
    """

    seconds: float = 0.0
    processor: float = 0.0
    compiling: float = 0.0
    compilations: int = 0
    memory: int = 0
    proven: int = 0
    unknown: int = 0
    refused: int = 0
    provoked: int = 0

    def __add__(self, other: Cost) -> Cost:
        """The sum of both costs."""
        pairs = zip(dataclasses.astuple(self), dataclasses.astuple(other), strict=True)
        return Cost(*(one + another for one, another in pairs))

    def __str__(self) -> str:
        """A line of the table."""
        return (
            f"{self.seconds:8.1f} s  {self.processor:8.1f} s here  "
            f"{self.compilations:5} compilations in {self.compiling:7.1f} s  "
            f"{self.memory / 1e6:+6.0f} MB"
        )


@dataclasses.dataclass
class Report:
    """Costs by file, and the peak of the memory by worker."""

    files: defaultdict[str, Cost] = dataclasses.field(default_factory=lambda: defaultdict(Cost))
    memory: dict[str, int] = dataclasses.field(default_factory=dict)


_used = Cost()
_reported = Cost()
_report = Report()


def counted(compiler: Callable[..., Any]) -> Callable[..., Any]:
    """A function that runs the compiler, with its calls counted."""

    @functools.wraps(compiler)
    def call(*args: Any, **options: Any) -> Any:
        start = time.perf_counter()
        try:
            return compiler(*args, **options)
        finally:
            _used.compilations += 1
            _used.compiling += time.perf_counter() - start

    return call


def looked_at(compiler: Callable[..., Any]) -> Callable[..., Any]:
    """A method that runs the compiler, and counts the proofs about its programs."""
    from axir.runtime.compiler.invocation.stream_passes import UNPROVEN, WrongMemoryError

    @functools.wraps(compiler)
    def call(owner: Any, source: Any, flags: Any, report: Any, *options: Any) -> Any:
        told: list[str] = []

        def listen(text: str) -> None:
            told.append(text)
            report(text)

        try:
            made = compiler(owner, source, flags, listen, *options)
        except WrongMemoryError:
            _used.refused += 1
            raise
        if made is not None:
            is_unknown = any(text.startswith(UNPROVEN) for text in told)
            _used.unknown += is_unknown
            _used.proven += not is_unknown
        return made

    return call


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option for the table of all files."""
    parser.addoption("--file-costs", metavar="PATH", help="write what each file cost to PATH")


def pytest_configure(config: pytest.Config) -> None:
    """Lets this process count its compilations, if it runs tests."""
    config.addinivalue_line("markers", f"{_MARKER}: has the compiler make what must be refused")
    if not config.getoption("numprocesses", None):
        from axir.runtime.compiler.helpers import HelperPool
        from axir.runtime.compiler.invocation.invoker import Invoker

        for owner in (HelperPool, Invoker):
            for name in ("compile", "compile_object"):
                setattr(owner, name, counted(looked_at(getattr(owner, name))))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Writes the costs since the phase before on the report of a test's phase."""
    global _reported
    report = yield
    if report.when == "teardown":  # reading these takes a third of a millisecond in a busy process
        _used.processor = time.process_time()
        _used.memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _BYTES_PER_UNIT
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    cost = _used + _negative(_reported)
    cost.seconds = report.duration
    if item.get_closest_marker(_MARKER):
        cost.provoked = cost.refused
    elif cost.refused:
        report.outcome = "failed"
        report.longrepr = f"{report.longrepr or ''}\n{_REFUSED}"
    _reported = dataclasses.replace(_used)
    report.user_properties.append((_PROPERTY, (worker, _used.memory, *dataclasses.astuple(cost))))
    return report


def _negative(cost: Cost) -> Cost:
    return Cost(*(-value for value in dataclasses.astuple(cost)))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Adds up the costs by file, in the process that reports."""
    file = report.nodeid.partition("::")[0]
    for name, value in report.user_properties:
        if name == _PROPERTY:
            worker, memory, *cost = value
            _report.files[file] += Cost(*cost)
            _report.memory[worker] = memory


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Lists the slowest files, and writes the table of all if asked to."""
    if not _report.files:
        return
    terminalreporter.section("slowest files")
    ranked = sorted(_report.files.items(), key=lambda item: -item[1].seconds)
    total = sum(_report.files.values(), Cost())
    lines = [f"{cost}  {name}" for name, cost in [*ranked, (f"all {len(ranked)} files", total)]]
    for line in [*lines[:-1][:_SLOWEST], lines[-1]]:
        terminalreporter.line(line)
    peaks = ", ".join(f"{peak / 1e9:.1f} GB" for peak in _report.memory.values())
    terminalreporter.line(f"Largest memory of the processes that ran tests: {peaks}")
    terminalreporter.line(
        f"Reads in memory what it means: proven of {total.proven} programs, unknown of "
        f"{total.unknown}, refused {total.refused - total.provoked}, and {total.provoked} that "
        "tests had made wrong"
    )
    if path := config.getoption("--file-costs"):
        Path(path).write_text("".join(f"{line}\n" for line in lines))

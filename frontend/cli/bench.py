"""`axir bench`: how long a call takes, and where the time goes."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import click

from axir._devices.placement import block_until_ready
from axir._profiling.trace_files import slowest
from axir._programs.compiled_modules import Program
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.timeline import timeline
from axir.runtime.calls.compiled_function import begin_timeline

from .bundles import BundleProgram, chosen
from .group import Verb, module_argument, verbose_option
from .inputs import read_inputs
from .run import open_for_running, program_options

_SECONDS = 1.0
_FEWEST_CALLS = 10
_PROFILED_CALLS = 100
_SHOWN_DISPATCHES = 20


class Dispatch(NamedTuple):
    """A kernel in a call.

    Attributes:
        name: Its name in the compiler.
        lines: `file:line` of the operations it computes, the most informative first.
        times: How often it runs in a call.
        seconds: The total time, including 10 to 15 us of overhead for each.
    """

    name: str
    lines: tuple[str, ...]
    times: int
    seconds: float


@click.command(cls=Verb)
@module_argument
@click.argument("inputs", nargs=-1, metavar="[INPUT]...")
@program_options
@click.option(
    "--repeat", type=click.IntRange(min=1), help="Calls to time; by default for about a second."
)
@click.option(
    "--warm-up", type=click.IntRange(min=0), default=10, show_default=True, help="Calls before."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--profile", is_flag=True, help="Print the slowest dispatches, too, with the lines they are of."
)
@verbose_option
def bench(
    file: Path,
    inputs: tuple[str, ...],
    function: str | None,
    device: str | None,
    shapes: dict[str, tuple[int | str, ...]],
    repeat: int | None,
    warm_up: int,
    as_json: bool,
    profile: bool,
) -> None:
    """Time calls of the module in FILE (.axir, .mlir, .mlirbc, .vmfb): the median, after a warm-up.

    INPUTs are given as for `axir run`; missing arguments are random numbers.

    Examples:
      axir bench model.vmfb
      axir bench model.mlir x=@x.npy --repeat 1000 --json
      axir bench model.mlir --profile
    """
    if profile and str(file) == "-":
        raise ParameterError(
            "--profile reads the module twice, which stdin is not for.", "Save it first.", ""
        )
    program = open_for_running(file, device, inputs, shapes=shapes)
    marked: Program | BundleProgram | None = None
    if profile:
        marked = open_for_running(file, device, inputs, marks_dispatches=True, shapes=shapes)
    function = chosen(program.signatures, function)
    values = read_inputs(inputs, program.signature(function), function, fills_missing=True)
    for _ in range(warm_up):
        program.run(values, function)
    times: list[float] = []
    start = time.perf_counter()
    while not _is_done(len(times), repeat, time.perf_counter() - start):
        before = time.perf_counter()
        program.run(values, function)
        times.append(time.perf_counter() - before)
    dispatches = None if marked is None else _profile(marked, values, function, len(times))
    _report(times, function, as_json, dispatches)


def _profile(
    program: Program | BundleProgram, values: Sequence[ConcreteArray], function: str, calls: int
) -> list[Dispatch]:
    """Returns the dispatches of a call, on the average of some calls, the slowest first."""
    begin_timeline(shows_dispatches=True)
    try:
        block_until_ready(program.run(values, function))
        timeline.events.clear()  # the first call also compiles
        count = max(1, min(calls, _PROFILED_CALLS))
        for _ in range(count):
            block_until_ready(program.run(values, function))
    finally:
        events = timeline.end()
    return [
        Dispatch(name, lines, round(times / count), seconds / count)
        for name, lines, times, seconds in slowest(events)
    ]


def _is_done(calls: int, repeat: int | None, seconds: float) -> bool:
    if repeat is not None:
        return calls >= repeat
    return calls >= _FEWEST_CALLS and seconds >= _SECONDS


def _report(
    times: list[float], function: str, as_json: bool, dispatches: list[Dispatch] | None
) -> None:
    ordered = sorted(times)
    figures = {
        "median": statistics.median(ordered),
        "fastest": ordered[0],
        "90th percentile": ordered[min(len(ordered) - 1, round(0.9 * len(ordered)))],
    }
    if as_json:
        seconds = {name.replace(" ", "_"): value for name, value in figures.items()}
        report = {"function": function, "calls": len(times), "seconds": seconds}
        if dispatches is not None:
            report["dispatches"] = [dispatch._asdict() for dispatch in dispatches]
        click.echo(json.dumps(report))
        return
    text = ", ".join(f"{name} {_duration(value)}" for name, value in figures.items())
    click.echo(f"@{function}: {text} ({len(times):,} calls)")
    if dispatches is not None:
        _print_dispatches(dispatches)


def _print_dispatches(dispatches: list[Dispatch]) -> None:
    """Prints a table, with shares of the time that all dispatches take one after the other."""
    whole = sum(dispatch.seconds for dispatch in dispatches)
    if not dispatches:
        click.echo("No dispatches: the program computes nothing on the device.")
        return
    click.echo(f"{len(dispatches)} dispatches, {_duration(whole)} one after the other:")
    for dispatch in dispatches[:_SHOWN_DISPATCHES]:
        share = f"{dispatch.seconds / whole:.0%}"
        times = f" x{dispatch.times}" if dispatch.times != 1 else ""
        where = ", ".join(dispatch.lines) or "no line"
        click.echo(f"{share:>5} {_duration(dispatch.seconds):>8}  {dispatch.name}{times}  {where}")
    rest = dispatches[_SHOWN_DISPATCHES:]
    if rest:
        click.echo(f"      {_duration(sum(d.seconds for d in rest)):>8}  {len(rest)} more")


def _duration(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"

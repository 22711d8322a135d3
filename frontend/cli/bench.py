"""`axir bench`: how long a call takes."""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path

import click

from .bundles import chosen
from .group import Verb, module_argument, verbose_option
from .inputs import read_inputs
from .run import open_for_running, program_options

_SECONDS = 1.0
_FEWEST_CALLS = 10


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
@verbose_option
def bench(
    file: Path,
    inputs: tuple[str, ...],
    function: str | None,
    device: str | None,
    repeat: int | None,
    warm_up: int,
    as_json: bool,
) -> None:
    """Time calls of the module in FILE (.axir, .mlir, .mlirbc, .vmfb): the median, after a warm-up.

    INPUTs are those of `axir run`; arguments that are not given are random numbers.

    Examples:
      axir bench model.vmfb
      axir bench model.mlir x=@x.npy --repeat 1000 --json
    """
    program = open_for_running(file, device, inputs)
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
    _report(times, function, as_json)


def _is_done(calls: int, repeat: int | None, seconds: float) -> bool:
    if repeat is not None:
        return calls >= repeat
    return calls >= _FEWEST_CALLS and seconds >= _SECONDS


def _report(times: list[float], function: str, as_json: bool) -> None:
    ordered = sorted(times)
    figures = {
        "median": statistics.median(ordered),
        "fastest": ordered[0],
        "90th percentile": ordered[min(len(ordered) - 1, round(0.9 * len(ordered)))],
    }
    if as_json:
        seconds = {name.replace(" ", "_"): value for name, value in figures.items()}
        click.echo(json.dumps({"function": function, "calls": len(times), "seconds": seconds}))
        return
    text = ", ".join(f"{name} {_duration(value)}" for name, value in figures.items())
    click.echo(f"@{function}: {text} ({len(times):,} calls)")


def _duration(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"

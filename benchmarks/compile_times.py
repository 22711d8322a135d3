"""First calls against the number of operations: whether compile time grows linearly.

    python benchmarks/compile_times.py --png compile_times.png
    python benchmarks/compile_times.py --kinds chain,fan --elements 1,100 --steps 10,100,1000

Each point is a separate process, in which another program has run before. It shows the processor
seconds of the first call, including the compiler's helper process, with an empty cache, in axir and
in JAX. A line ends where a point takes longer than `--limit`. Elsewhere: first calls of usual
programs (`first_calls.py`).
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from first_calls import _processor_time

Program = Callable[[Any, Any], Any]
Times = dict[tuple[str, int], dict[str, list[tuple[int, float]]]]
LIBRARIES = ("axir", "jax")


def _chain(lib: ModuleType, steps: int) -> Program:
    def chain(x: Any, y: Any) -> Any:
        for _ in range(steps):
            x = lib.numpy.sin(x) + y
        return x

    return chain


def _coupled(lib: ModuleType, steps: int) -> Program:
    """Each value is read twice."""

    def coupled(x: Any, y: Any) -> Any:
        for _ in range(steps):
            x, y = lib.numpy.sin(y) + x, x * y
        return x + y

    return coupled


def _fan(lib: ModuleType, steps: int) -> Program:
    """Many read one value."""
    return lambda x, y: sum(lib.numpy.sin(x * (number + 1)) for number in range(steps)) * y


def _tree(lib: ModuleType, steps: int) -> Program:
    def tree(x: Any, y: Any) -> Any:
        level = [x * (number + 1) + y for number in range(steps)]
        while len(level) > 1:
            pairs = zip(level[::2], level[1::2], strict=False)
            level = [a * b for a, b in pairs] + (level[-1:] if len(level) % 2 else [])
        return level[0]

    return tree


def _reductions(lib: ModuleType, steps: int) -> Program:
    def reductions(x: Any, y: Any) -> Any:
        for _ in range(steps):
            x = x - lib.numpy.mean(x * y)
        return x

    return reductions


def _results(lib: ModuleType, steps: int) -> Program:
    return lambda x, y: [x * (number + 1) + y for number in range(steps)]


KINDS: dict[str, Callable[[ModuleType, int], Program]] = {
    "chain": _chain,
    "coupled": _coupled,
    "fan": _fan,
    "tree": _tree,
    "reductions": _reductions,
    "results": _results,
}


def _first_call(library: str, kind: str, elements: int, steps: int) -> float:
    lib = importlib.import_module(library)
    shape = () if elements == 1 else (elements,)
    x, y = (lib.device_put(np.full(shape, number, np.float32)) for number in (0.5, 0.25))
    lib.block_until_ready(lib.jit(lambda x: x * 3 - 1)(x))
    start = _processor_time()
    lib.block_until_ready(lib.jit(KINDS[kind](lib, steps))(x, y))
    return _processor_time() - start


def _measured(library: str, kind: str, elements: int, steps: int, limit: float) -> float | None:
    """Returns the seconds of a point, None if it takes longer than the limit."""
    point = [library, kind, str(elements), str(steps)]
    with tempfile.TemporaryDirectory() as empty:
        environment = os.environ | {"JAX_PLATFORMS": "cpu", "AXIR_CACHE_DIR": empty}
        command = [sys.executable, os.path.abspath(__file__), "--child", *point]
        try:
            output = subprocess.run(
                command, env=environment, check=True, capture_output=True, text=True, timeout=limit
            )
        except subprocess.TimeoutExpired:
            return None
    return float(output.stdout.split()[-1])


def measure(kinds: list[str], elements: list[int], steps: list[int], limit: float) -> Times:
    """Returns the seconds of all points, and prints them on the way."""
    times: Times = {}
    for kind in kinds:
        for size in elements:
            lines = times[kind, size] = {library: [] for library in LIBRARIES}
            for library, line in lines.items():
                for count in steps:
                    seconds = _measured(library, kind, size, count, limit)
                    shown = "over the limit" if seconds is None else f"{seconds:8.2f} s"
                    print(f"{kind:12}{size:>8}{count:>7} {library:6}{shown}", flush=True)
                    if seconds is None:
                        break
                    line.append((count, seconds))
    return times


def draw(times: Times, path: Path) -> None:
    """Draws a picture for each kind, of lines for each size and library."""
    from matplotlib import pyplot  # late: only drawing needs it

    kinds = list(dict.fromkeys(kind for kind, _ in times))
    figure, axes = pyplot.subplots(1, len(kinds), figsize=(3.2 * len(kinds), 3.4), sharey=True)
    for place, kind in zip(np.atleast_1d(axes), kinds, strict=True):
        for number, (size, lines) in enumerate(
            (size, lines) for (other, size), lines in times.items() if other == kind
        ):
            for library, style in zip(LIBRARIES, ("o-", "x--"), strict=True):
                if lines[library]:
                    label = f"{library}, {size:,}"
                    place.loglog(
                        *zip(*lines[library], strict=True), style, color=f"C{number}", label=label
                    )
        place.set_title(kind)
        place.set_xlabel("steps")
        place.grid(alpha=0.3)
    np.atleast_1d(axes)[0].set_ylabel("seconds of processors")
    np.atleast_1d(axes)[0].legend(fontsize="x-small")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def main() -> None:
    """Measures the programs named on the command line, and draws the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--elements", default="1,100,100000", help="of the arrays")
    parser.add_argument("--steps", default="10,50,250,1000,5000")
    parser.add_argument("--limit", type=float, default=60, help="seconds of the clock for a point")
    parser.add_argument("--png", type=Path)
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        library, kind, elements, steps = options.child
        print(_first_call(library, kind, int(elements), int(steps)))
        return
    elements, steps = (
        [int(x) for x in text.split(",")] for text in (options.elements, options.steps)
    )
    times = measure(options.kinds.split(","), elements, steps, options.limit)
    if options.png:
        draw(times, options.png)


if __name__ == "__main__":
    main()

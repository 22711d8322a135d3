"""axir and JAX side by side in one process, as ratios.

Run it by `make bench`, or `python benchmarks [NAME ...]`.

Each case runs both in turn, many times, and compares medians, because the machines are shared and
noisy: repeat before you believe. What does not live here: tests (nothing here fails a build).
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from cases import CASES
from measure import Result, compare


def _print_table(results: list[Result]) -> None:
    from rich.console import Console
    from rich.table import Table

    title = "axir against JAX, or NumPy in numpy-* (medians; ratio = axir / other, lower is better)"
    table = Table(title=title)
    for heading in ("case", "unit", "axir", "other", "ratio", "goal", ""):
        table.add_column(heading, justify="left" if heading in ("case", "unit", "") else "right")
    for r in results:
        verdict = "" if r.goal is None else "ok" if r.ratio <= r.goal else "over"
        goal = "" if r.goal is None else f"{r.goal:g}"
        table.add_row(
            r.name, r.unit, f"{r.ours:.3g}", f"{r.theirs:.3g}", f"{r.ratio:.2f}", goal, verdict
        )
    Console().print(table)


def main() -> None:
    """Runs the cases named on the command line, or all."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help="cases to run, with wildcards (all by default)")
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    parser.add_argument("--json", metavar="FILE", help="also write the figures to a file")
    parser.add_argument("--rounds", type=int, default=15, help="rounds of each case (default 15)")
    options = parser.parse_args()
    if options.list:
        print("\n".join(CASES))
        return
    chosen = [
        name
        for pattern in options.names or ["*"]
        for name in fnmatch.filter(CASES, pattern) or [pattern]
    ]
    unknown = [name for name in chosen if name not in CASES]
    if unknown:
        parser.error(f"no case named {', '.join(unknown)}; the cases are {', '.join(CASES)}")
    results = []
    for name in chosen:
        print(f"{name} ...", file=sys.stderr, flush=True)
        results.append(compare(name, CASES[name], options.rounds))
    _print_table(results)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump([r.__dict__ for r in results], file, indent=1)


if __name__ == "__main__":
    main()

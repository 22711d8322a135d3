"""`axir diff`: how two modules or bundles differ."""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import click
import numpy as np

from axir._bundles.bundle import Bundle
from axir._bundles.exported import Exported
from axir._bundles.manifest import key_text
from axir.dialect.core import dtypes
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.extended_dtypes import words_of

from .bundles import module_of_function, open_functions
from .group import Verb, verbose_option
from .inspect import operations

_CONTEXT_LINES = 1


@click.command(cls=Verb)
@click.argument("first", metavar="FILE", type=click.Path(path_type=Path))
@click.argument("second", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--text", "shows_text", is_flag=True, help="Print the lines that differ, too.")
@click.pass_context
@verbose_option
def diff(
    context: click.Context, first: Path, second: Path, as_json: bool, shows_text: bool
) -> None:
    """Compare two bundles, or modules of jaxpr (.axir, .mlir, .mlirbc).

    Functions are compared by their arguments, results and ops, parameters by their values. Exit
    code 1 tells that there are differences.

    Examples:
      axir diff before.axir after.axir
      axir diff model.mlir simplified.mlir --text
    """
    one, other = open_functions(first), open_functions(second)
    found = {
        "functions": _functions(one, other),
        "parameters": _parameters(one.parameters, other.parameters),
        "programs": _programs(one, other),
    }
    found = {group: changes for group, changes in found.items() if changes}
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        for group, changes in found.items():
            click.echo(group)
            for name, lines in changes.items():
                for line in lines:
                    click.echo(f"  {name}: {line}")
        if shows_text:
            _print_texts(one, other)
    context.exit(1 if found else 0)


def _functions(one: Bundle, other: Bundle) -> dict[str, list[str]]:
    found = _presence(one, other)
    for name in one:
        if name in other:
            lines = _changes(one[name], other[name])
            if lines:
                found[name] = lines
    return found


def _presence(one: Mapping[str, object], other: Mapping[str, object]) -> dict[str, list[str]]:
    """Returns the names that only one of them has."""
    found = {name: ["only in the first"] for name in one if name not in other}
    found.update({name: ["only in the second"] for name in other if name not in one})
    return found


def _changes(one: Exported, other: Exported) -> list[str]:
    lines = []
    for what in ("arguments", "results"):
        before = [f"{v.name}: {v.text}" for v in getattr(one.signature, what)]
        after = [f"{v.name}: {v.text}" for v in getattr(other.signature, what)]
        if before != after:
            lines.append(f"{what} ({', '.join(before)}) became ({', '.join(after)})")
    facts = zip(_facts(one).items(), _facts(other).values(), strict=True)
    lines += [f"{what} {x} became {y}" for (what, x), y in facts if x != y]
    counts, others = operations(one.function), operations(other.function)
    lines += [
        f"{op} {counts[op]} became {others[op]}"
        for op in sorted(counts | others)
        if counts[op] != others[op]
    ]
    if not lines and _lines(one) != _lines(other):
        lines.append("the same ops, put together in another way")
    return lines


def _facts(exported: Exported) -> dict[str, str]:
    sizes = exported.batch.sizes if exported.batch else None
    return {
        "parameters": ", ".join(sorted(exported.parameters)),
        "rows": "fixed" if sizes is None else ", ".join(map(str, sizes)) or "any",
        "sizes": _told_sizes(exported),
        "trees": f"{exported.signature.in_tree} -> {exported.signature.out_tree}",
    }


def _told_sizes(exported: Exported) -> str:
    if exported.open is None:
        return "fixed"
    return "; ".join(map(key_text, exported.open.sizes)) or "any"


def _parameters(
    one: Mapping[str, ConcreteArray], other: Mapping[str, ConcreteArray]
) -> dict[str, list[str]]:
    found = _presence(one, other)
    for name, x in one.items():
        if name not in other:
            continue
        y = other[name]
        if x.type is not y.type:
            found[name] = [f"{x.type} became {y.type}"]
        elif not np.array_equal(
            words_of(x.host()).view(np.uint8), words_of(y.host()).view(np.uint8)
        ):
            found[name] = [_distance(x, y)]
    return found


def _distance(x: ConcreteArray, y: ConcreteArray) -> str:
    if not dtypes.is_inexact(x.dtype):
        count = int((x.host() != y.host()).sum())
        return f"{count:,} of {x.size:,} elements differ"
    wide = np.result_type(np.float64, np.complex64 if dtypes.is_complex(x.dtype) else np.float64)
    with np.errstate(all="ignore"):
        distance = np.abs(x.host().astype(wide) - y.host().astype(wide))
    count = int((distance > 0).sum())
    largest = float(np.nanmax(distance, initial=0.0))
    return f"{count:,} of {x.size:,} elements differ, by up to {largest:.3g}"


def _programs(one: Bundle, other: Bundle) -> dict[str, list[str]]:
    def targets(bundle: Bundle) -> Counter[str]:
        return Counter(
            " ".join(e.target[key] for key in ("platform", "cpu", "machine") if key in e.target)
            for e in bundle.programs
        )

    return _presence(targets(one), targets(other))


def _lines(exported: Exported) -> list[str]:
    return str(module_of_function(exported)).splitlines()


def _print_texts(one: Bundle, other: Bundle) -> None:
    for name in one:
        if name in other:
            pair = _lines(one[name]), _lines(other[name])
            lines = difflib.unified_diff(*pair, name, name, lineterm="", n=_CONTEXT_LINES)
            for line in lines:
                click.echo(line)

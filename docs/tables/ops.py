"""The page of the ops: for each op of the table where its rules live.

A rule that a family makes is a closure; it is named by the function that makes it.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from axir.dialect.program.op_table import OPS
from axir.dialect.program.operation import RULES, Unsupported
from axir.dialect.program.parameters import describe
from axir.dialect.program.primitive import Primitive

from .declarations import DECLARED
from .markdown import ROOT, Place, link, source_path, summary, table

TEXT = """\
# Ops and their rules

*Generated from the op table by `make docs`.*

The ops of the dialect `jaxpr`, by the file that declares them. A column tells which function is the
rule: one of the same file, or `file.function`. Families make rules for their members: `family._jvp`
is the function that makes them. A dash marks a rule that cannot exist, for the reason below the
table. There the parameters are listed, too, with their types; an op always has all of them.
`python docs/generate.py --lines FOLDER` writes it with a link to the line of each rule.
[CONTRIBUTING](../CONTRIBUTING.md#adding-an-op) says what each rule is for.
"""
# Fields shown in separate columns or below the table, and fields computed by `Primitive`.
_SHOWN_APART = {*RULES, "name", "op_name", "parameters", "_applications"}


def page(with_lines: bool) -> str:
    """Returns the page: a table for each file that declares ops."""
    files: dict[str, list[Primitive]] = defaultdict(list)
    for name, primitive in sorted(OPS.items()):
        files[DECLARED[name].path].append(primitive)
    return TEXT + "".join(_section(path, ops, with_lines) for path, ops in sorted(files.items()))


def _section(path: str, ops: list[Primitive], with_lines: bool) -> str:
    module = next(m for m in list(sys.modules.values()) if _is_at(m, path))
    rows = [_row(primitive, path, with_lines) for primitive in ops]
    text = f"\n## {link(path.removeprefix('dialect/ops/'), path)}\n\n{summary(module)}\n\n"
    below = _parameters(ops) + _impossible(ops)
    return text + table(["op", *RULES, "further"], rows) + (f"\n{below}" if below else "")


def rules_of(primitive: Primitive) -> list[str]:
    """Returns an op's name, and for each rule the function that is it."""
    path = DECLARED[primitive.name].path
    cells = (_cell(getattr(primitive, rule), path, False) for rule in RULES)
    return [f"`{primitive.name}`", *cells]


def _is_at(module: Any, path: str) -> bool:
    return getattr(module, "__file__", None) == str(ROOT / path)


def _row(primitive: Primitive, path: str, with_lines: bool) -> list[str]:
    line = DECLARED[primitive.name].line
    name = f"`{primitive.name}`"
    first = link(name, path, line) if with_lines else name
    cells = (_cell(getattr(primitive, rule), path, with_lines) for rule in RULES)
    return [first, *cells, ", ".join(_further(primitive))]


def _further(primitive: Primitive) -> list[str]:
    """Returns the fields that the declaration sets in addition to the rules."""
    further = {field.name for field in dataclasses.fields(Primitive)} - _SHOWN_APART
    usual = Primitive(primitive.name)
    return sorted(
        f"`{name}`" for name in further if getattr(primitive, name) != getattr(usual, name)
    )


def _cell(rule: Any, path: str, with_lines: bool) -> str:
    if rule is None:
        return ""
    if isinstance(rule, Unsupported):
        return "-"
    function = _unwrapped(rule)
    code = getattr(function, "__code__", None)
    if code is None or not code.co_filename.startswith(str(ROOT)):
        module = getattr(function, "__module__", None) or "numpy"
        return f"`{module}.{getattr(function, '__name__', '?')}`"
    place = Place(source_path(code.co_filename), code.co_firstlineno)
    name = function.__qualname__.partition(".<locals>")[0].replace("<lambda>", "lambda")
    if place.path != path:
        name = f"{place.path.rpartition('/')[2].removesuffix('.py')}.{name}"
    return link(f"`{name}`", *place) if with_lines else f"`{name}`"


def _unwrapped(rule: Callable[..., Any]) -> Any:
    while True:
        if isinstance(rule, functools.partial):
            rule = rule.func
        elif inspect.ismethod(rule):
            rule = rule.__func__
        elif hasattr(rule, "__wrapped__"):
            rule = rule.__wrapped__
        else:
            return rule


def _parameters(ops: list[Primitive]) -> str:
    """Returns the types of parameters, one line for ops with the same ones."""
    declared: dict[str, list[str]] = defaultdict(list)
    for primitive in ops:
        named = (primitive.parameters or {}).items()
        listing = ", ".join(f"`{name}: {describe(kind)}`" for name, kind in named)
        declared[listing].append(f"`{primitive.name}`")
    return "".join(
        f"- parameters of {', '.join(names)}: {listing}\n"
        for listing, names in declared.items()
        if listing
    )


def _impossible(ops: list[Primitive]) -> str:
    """Returns why rules cannot exist, one line for each reason."""
    reasons: dict[tuple[str, str], list[str]] = defaultdict(list)
    for primitive in ops:
        for rule in RULES:
            unsupported = getattr(primitive, rule)
            if isinstance(unsupported, Unsupported):
                reason = unsupported.reason.replace(primitive.name, "it", 1)
                reasons[rule, reason].append(f"`{primitive.name}`")
    lines = [
        f"- no `{rule}` of {', '.join(names)}: {reason}\n"
        for (rule, reason), names in reasons.items()
    ]
    return "".join(lines)

"""The position of an op in the text that its module was parsed from.

The locations of ops name the lines of Python that they come from. An editor of the text needs the
line of the text, but MLIR drops it if a location is written. So the text is parsed again without
its locations, only for an error.
"""

from __future__ import annotations

import re
from pathlib import Path

from iree.compiler import ir

from axir.dialect.core.context import context, describe_location
from axir.dialect.core.memo import ByIdentity

_SKIPPED = r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"|//[^\n]*'
_TOKEN = re.compile(rf"{_SKIPPED}|^\#\w+ = loc\(|\bloc\(", re.MULTILINE)
_PARENTHESIS = re.compile(rf"{_SKIPPED}|[()]")

_sources: ByIdentity[ir.Module, tuple[str, Path | str]] = ByIdentity()


def remember_source(module: ir.Module, name: str, source: Path | str) -> None:
    """Keeps the source of a parsed module: a file, or the text itself."""
    _sources.keep(module, (name, source))


def place_in_text(module: ir.Module, op: ir.Operation) -> str | None:
    """Returns `name:line` of an op, or None if it has no line or its location says the same."""
    found = _sources.get(module)
    if found is None:
        return None
    name, source = found
    try:
        text = source.read_text() if isinstance(source, Path) else source
        again = ir.Module.parse(without_locations(text), context=context())
    except (OSError, ValueError, ir.MLIRError):
        return None
    before, after = _ops_of(module), _ops_of(again)
    if [inner.name for inner in before] != [inner.name for inner in after]:
        return None  # the module was transformed, or the file was written again
    line = after[before.index(op)].location.start_line
    place = f"{name}:{line}"
    return None if describe_location(op.location) in (place, f"line {line}") else place


def _ops_of(module: ir.Module) -> list[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def without_locations(text: str) -> str:
    """Returns MLIR text without its locations; each op keeps its line.

    >>> without_locations('return %0 : f32 loc("a.py":1:0)')
    'return %0 : f32 '
    """
    parts = []
    position = 0
    while found := _TOKEN.search(text, position):
        if found[0].endswith("loc("):
            end = _closing(text, found.end())
            parts += [text[position : found.start()], "\n" * text.count("\n", found.start(), end)]
        else:
            end = found.end()
            parts.append(text[position:end])
        position = end
    return "".join([*parts, text[position:]])


def _closing(text: str, position: int) -> int:
    """Returns the position behind the parenthesis that closes the one before `position`."""
    depth = 1
    for found in _PARENTHESIS.finditer(text, position):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if depth == 0:
            return found.end()
    return len(text)

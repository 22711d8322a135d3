"""Tables and links to the source, shared by the generated pages."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]


class Place(NamedTuple):
    """Where something stands in the source."""

    path: str
    line: int


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table in Markdown."""
    lines = [" | ".join(_escaped(cell) for cell in row) for row in (header, *rows)]
    lines.insert(1, " | ".join(["---"] * len(header)))
    return "".join(f"| {line} |\n" for line in lines)


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")


def source_path(file: str | Path) -> str:
    """Returns the path of a source file within the repository."""
    return Path(file).resolve().relative_to(ROOT).as_posix()


def link(text: str, path: str, line: int | None = None) -> str:
    """Returns a link from a page in docs/ to a file of the repository."""
    return f"[{text}]({os.path.join('..', path)}{f'#L{line}' if line else ''})"


def summary(documented: ModuleType | type) -> str:
    """Returns the first sentence of a docstring."""
    paragraph = (inspect.getdoc(documented) or "").split("\n\n")[0]
    return " ".join(paragraph.split())

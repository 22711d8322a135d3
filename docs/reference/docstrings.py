"""Markdown from docstrings of Google's form.

Docstrings have backticks as Markdown has; sections become lists, examples become blocks of code.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any

SECTION = re.compile(r"^(Args|Attributes|Raises|Returns|Yields):$")
ENTRY = re.compile(r"^(\*{0,2}[\w., *]+?): +(\S.*)$")
TITLES = {"Args": "Arguments"}
CODE = re.compile(r"(`+[^`]*`+)")


def markdown(documented: Any) -> str:
    """Returns a docstring as Markdown."""
    return "\n".join(_converted((inspect.getdoc(documented) or "").splitlines())) + "\n"


def summary(documented: Any) -> str:
    """Returns the first sentence of a docstring, as Markdown."""
    paragraph = (inspect.getdoc(documented) or "").split("\n\n")[0]
    return escaped(" ".join(paragraph.split()))


def escaped(text: str) -> str:
    """Returns text in which Markdown finds no marks but backticks."""
    parts = CODE.split(text)
    return "".join(
        part if index % 2 else re.sub(r"([*_<\[\]|$~#])", r"\\\1", part)
        for index, part in enumerate(parts)
    )


def _converted(lines: list[str]) -> Iterator[str]:
    blocks = _blocks(lines)
    for kind, block in blocks:
        if kind == "section":
            title = block[0].rstrip(":")
            yield from ("", f"**{TITLES.get(title, title)}**", "")
            yield from _entries(textwrap.dedent("\n".join(block[1:])).splitlines())
        elif kind == "code":
            language = "pycon" if block[0].lstrip().startswith(">>>") else "text"
            yield from ("", f"```{language}", *block, "```", "")
        else:
            yield from map(escaped, block)


def _blocks(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yields sections, blocks of code (examples, and indented text after ::) and text."""
    index = 0
    while index < len(lines):
        line, start = lines[index], index
        index += 1
        if SECTION.match(line):
            while index < len(lines) and (not lines[index].strip() or lines[index][0] == " "):
                index += 1
            yield "section", lines[start:index]
        elif line.startswith(">>>"):
            while index < len(lines) and lines[index].strip():
                index += 1
            yield "code", lines[start:index]
        elif line.startswith("    "):
            while index < len(lines) and (not lines[index].strip() or lines[index][0] == " "):
                index += 1
            yield "code", textwrap.dedent("\n".join(lines[start:index])).rstrip().splitlines()
        else:
            yield "text", [line.removesuffix("::") + ":" if line.endswith("::") else line]


def _entries(lines: list[str]) -> Iterator[str]:
    """Yields a list of the entries of a section: names and descriptions."""
    for line in lines:
        entry = ENTRY.match(line)
        if entry and not line.startswith(" "):
            yield f"- `{entry[1]}`: {escaped(entry[2])}"
        else:
            yield f"  {escaped(line.strip())}" if line.startswith(" ") else escaped(line)
    yield ""

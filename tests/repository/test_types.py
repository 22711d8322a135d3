"""Counts the mentions of `Any` in each room: they may become fewer, and never more.

Objects that pass through unread, and objects without a type, have specific names in
`dialect/core/annotations.py`; rules and drivers have theirs in `dialect/program/rules.py`.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from support.source_imports import source_files

ROOT = Path(__file__).parents[2]
# The allowed number of mentions in each room; it must be lowered if mentions are removed.
ALLOWED = {
    "dialect/builders": 0,
    "dialect/core": 0,
    "dialect/ops": 78,
    "dialect/program": 0,
    "dialect/text": 0,
    "passes": 1,  # the test whether an option of a pass takes anything
    "runtime": 0,
    "frontend": 1,
}
# Names that are `Any`, with imports and `Any` itself, and how often all rooms say them. The type
# `object` says the same of what is passed on, and is checked: code must ask before it uses more.
HIDDEN = re.compile(r"\b(UserObject|UserFunction|PyTree|Param|Options|Foreign|Made|Any)\b")
HIDDEN_ALLOWED = 3300
# The files that declare names for types.
DECLARATIONS = ("dialect/core/annotations.py", "dialect/program/rules.py")


def mentions(source: str) -> int:
    """Returns the number of mentions of `Any` in a text, without imports."""
    tree = ast.parse(source)
    names = sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(tree))
    attributes = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    return names + sum(
        node.attr == "Any" and isinstance(node.value, ast.Name) and node.value.id == "typing"
        for node in attributes
    )


def counted(room: str) -> int:
    files = (ROOT / room).rglob("*.py")
    return sum(
        mentions(path.read_text())
        for path in files
        if str(path.relative_to(ROOT)) not in DECLARATIONS
    )


@pytest.mark.parametrize("room", ALLOWED)
def test_a_room_says_any_no_more_often(room: str) -> None:
    found = counted(room)
    assert found <= ALLOWED[room], "Name the type, or one of dialect/core/annotations.py."
    assert found == ALLOWED[room], "Fewer than the table allows: write the smaller number there."


def test_names_that_are_any_become_fewer() -> None:
    found = sum(len(HIDDEN.findall(path.read_text())) for path in source_files())
    assert found <= HIDDEN_ALLOWED, "Say `object`, a protocol or a union, or a type variable."


def test_every_folder_is_counted() -> None:
    packages = {str(path.parent.relative_to(ROOT)) for path in (ROOT / "dialect").glob("*/*.py")}
    assert packages <= set(ALLOWED)


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("from typing import Any", 0),
        ("def f(x: Any) -> list[Any]: ...", 2),
        ("import typing\nX: typing.Any = 1", 1),
        ("f: 'Callable[..., int]'", 0),
        ("Anything = 1", 0),
    ],
)
def test_mentions_are_counted(source: str, count: int) -> None:
    assert mentions(source) == count

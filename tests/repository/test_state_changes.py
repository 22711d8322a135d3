"""The state of threads and the memos of functions are changed in one place each."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("frontend", "runtime", "passes", "dialect")
STATE = "dialect/core/state.py"
MEMO = "dialect/core/memo.py"


def found_in_rooms(find: Callable[[ast.AST], Iterator[int]], owner: str, word: str) -> list[str]:
    """Returns the places that `find` finds in files with a word, except the allowed file."""
    paths = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
    assert ROOT / owner in paths
    return [
        f"{path.relative_to(ROOT)}:{line}"
        for path in paths
        if path != ROOT / owner and word in path.read_text()
        for line in find(ast.parse(path.read_text()))
    ]


def changes_of_state(tree: ast.AST) -> Iterator[int]:
    """Yields the lines that set fields of the state of a thread."""
    names = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("state")
        for alias in node.names
        if alias.name == "state"
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            is_changed = not isinstance(node.ctx, ast.Load) or node.attr == "__dict__"
            if is_changed and is_state(node.value, names):
                yield node.lineno
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            if node.func.id in ("setattr", "delattr", "vars") and is_state(node.args[0], names):
                yield node.lineno


def is_state(node: ast.expr, names: set[str]) -> bool:
    if isinstance(node, ast.Attribute):  # by way of the module
        return (
            node.attr == "state" and isinstance(node.value, ast.Name) and node.value.id == "state"
        )
    return isinstance(node, ast.Name) and node.id in names


def uses_of_memos(tree: ast.AST) -> Iterator[int]:
    """Yields the lines that read or write the `derived` memo of an object."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "derived":
            if isinstance(node.ctx, ast.Load):
                yield node.lineno


def test_the_state_changes_in_its_own_module():
    assert found_in_rooms(changes_of_state, STATE, "state") == []


def test_memos_are_used_by_the_mark_derived_alone():
    assert found_in_rooms(uses_of_memos, MEMO, ".derived") == []


IMPORT = "from axir.dialect.core.state import state\n"


@pytest.mark.parametrize(
    "source",
    [
        IMPORT + "state.origin = None",
        IMPORT + "state.level += 1",
        IMPORT + "before, state.origin = state.origin, None",
        IMPORT + "for state.origin in (): pass",
        IMPORT + "with f() as state.origin: pass",
        IMPORT + "setattr(state, 'origin', None)",
        IMPORT + "state.__dict__.update(origin=None)",
        IMPORT + "vars(state)['origin'] = None",
        "from axir.dialect.core.state import state as now\nnow.origin = None",
        "from .state import state\nstate.origin = None",
        "from axir.dialect.core import state\nstate.state.origin = None",
    ],
)
def test_a_change_of_state_is_found(source):
    assert list(changes_of_state(ast.parse(source))) == [2]


def test_reading_the_state_is_no_change():
    source = IMPORT + "ambient = state.ambient\nother.state.step = 1"
    assert not list(changes_of_state(ast.parse(source)))


@pytest.mark.parametrize(
    "source", ["f.derived['key'] = 1", "f.derived.get('key')", "made_once(f.derived, 'key', make)"]
)
def test_a_use_of_a_memo_is_found(source):
    assert list(uses_of_memos(ast.parse(source))) == [1]

"""The page of the error classes: their docstrings, and the ways out that the code offers."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import axir
from axir.dialect.core.option_kinds import ConfigError
from axir.errors import AxirError

from .markdown import ROOT, link, source_path, summary, table

TEXT = """\
# Classes of errors

*Generated from the classes and from where they are raised by `make docs`.*

Each class derives from `AxirError` and from the exception of Python that a user of NumPy or JAX
would catch. A message says what happened, the user's line, and the way out; `…` stands for what a
message fills in. Classes with more than {limit} different ways out are raised for many causes, each
with its own; where none is given here, it is made of the values at hand.

"""
LIMIT = 4
EXPLAINED = ROOT / "docs/errors.md"
ROOMS = ("frontend", "runtime", "passes", "dialect")


def page() -> str:
    """Returns the page: one table, a row for each class."""
    for module in pkgutil.walk_packages(axir.__path__, "axir."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    offered = _ways_out()
    classes = {ConfigError, *_subclasses(AxirError), *_subclasses(ConfigError)}
    rows = [
        [_name(found), _python_bases(found), summary(found), _offer(offered, found)]
        for found in sorted(classes, key=lambda found: found.__name__)
    ]
    header = ["class", "is also", "when", "ways out"]
    return TEXT.format(limit=LIMIT) + table(header, rows)


def _subclasses(base: type) -> set[type]:
    below: set[type] = set(base.__subclasses__())
    return below.union(*map(_subclasses, below))


def _name(found: type) -> str:
    return link(f"`{found.__name__}`", source_path(inspect.getfile(found)))


def _python_bases(found: type) -> str:
    builtin = [
        base
        for base in found.__mro__
        if base.__module__ == "builtins" and base not in (object, Exception, BaseException)
    ]
    nearest = [
        base for base in builtin if not any(b is not base and issubclass(b, base) for b in builtin)
    ]
    return ", ".join(f"`{base.__name__}`" for base in nearest)


def _offer(offered: dict[str, set[str]], found: type) -> str:
    name = found.__name__
    if f"\n## {name}\n" in EXPLAINED.read_text():
        return f"[at length]({EXPLAINED.name}#{name.lower()})"
    texts = offered[name]
    is_made = any(not any(map(str.isalpha, text)) for text in texts)  # composed elsewhere
    if is_made or len(texts) > LIMIT:
        return "each message has its own"
    return " · ".join(sorted(texts))


def _ways_out() -> dict[str, set[str]]:
    """Returns by class name the ways out that the source spells out."""
    offered: dict[str, set[str]] = defaultdict(set)
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            for name, text in _raised_in(path):
                offered[name].add(text)
    return offered


def _raised_in(path: Path) -> Iterator[tuple[str, str]]:
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for call in ast.walk(node):
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "super().__init__":
                    yield from ((node.name, text) for text in _way_out(call))
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            yield from ((name, text) for text in _way_out(node))


def _way_out(call: ast.Call) -> Iterator[str]:
    named = [keyword.value for keyword in call.keywords if keyword.arg == "way_out"]
    for node in named or call.args[1:2]:
        text = " ".join(_text(node).split())
        if text.endswith((".", "?")):
            yield text


def _text(node: ast.expr) -> str:
    """Returns the text of a string literal, empty for other expressions."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) or "…" for part in node.values)
    return ""

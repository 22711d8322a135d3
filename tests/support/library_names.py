"""The names of JAX's that libraries use, read from their sources, and the ones that axir lacks.

`python -m support.library_names FOLDER` in `tests/` reads a folder with the sources of a library in
each subfolder, as `pip install --no-deps --target FOLDER/NAME NAME` makes them. It collects the
imports of `jax`, `jax._src` and `jaxlib`, and the attributes of these. It looks for each name under
`axir.as_jax`, and in the installed JAX: names that JAX itself lacks (any more, or yet) do not
count.

A use is a pair of library and name, counted once.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

PACKAGES = ("jax", "jaxlib")
# A name is found if modules and attributes lead to it. The others are printed.
RESOLVE = """
import importlib, json, sys, warnings
warnings.simplefilter("ignore")

def found(name):
    parts = name.split(".")
    value = importlib.import_module(parts[0])
    for count, part in enumerate(parts[1:], 2):
        try:
            value = getattr(value, part)
        except Exception as error:
            if getattr(error, "__class__", None).__name__ == "AcceleratorOnlyError":
                return True
            try:
                value = importlib.import_module(".".join(parts[:count]))
            except Exception:
                return False
    return True

print(json.dumps([name for name in json.load(sys.stdin) if not found(name)]))
"""


class _Names(ast.NodeVisitor):
    """Collects the names of JAX's that a file uses."""

    def __init__(self) -> None:
        self.used: set[str] = set()
        self._places: dict[str, str] = {}

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.name.partition(".")[0] in PACKAGES:
                self.used.add(alias.name)
                local = alias.asname or alias.name.partition(".")[0]
                self._places[local] = alias.name if alias.asname else local

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        if node.level or module.partition(".")[0] not in PACKAGES:
            return
        for alias in node.names:
            if alias.name != "*":
                self.used.add(f"{module}.{alias.name}")
                self._places[alias.asname or alias.name] = f"{module}.{alias.name}"

    def visit_Attribute(self, node: ast.Attribute) -> None:
        chain: list[str] = []
        inner: ast.expr = node
        while isinstance(inner, ast.Attribute):
            chain.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name) and inner.id in self._places:
            self.used.add(".".join([self._places[inner.id], *reversed(chain)]))
        else:
            self.visit(inner)


def names_in(source: str) -> set[str]:
    """Returns the names of JAX's that a source imports, and the names that it uses of these.

    Imports count wherever they stand, so they are read first.
    """
    tree = ast.parse(source)
    names = _Names()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names.visit(node)
    names.visit(tree)
    return names.used


def names_of_library(folder: Path) -> set[str]:
    """Returns the names of JAX's that the sources in a folder use."""
    used: set[str] = set()
    for path in folder.rglob("*.py"):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # an attribute of the library's own strings
                used |= names_in(path.read_text())
        except (SyntaxError, UnicodeDecodeError):
            continue
    return used


def libraries_by_name(folder: Path) -> dict[str, set[str]]:
    """Returns for each name the libraries that use it."""
    users: dict[str, set[str]] = defaultdict(set)
    for library in sorted(path for path in folder.iterdir() if path.is_dir()):
        for name in names_of_library(library):
            users[name].add(library.name)
    return dict(users)


def missing(names: list[str], *options: str) -> set[str]:
    """Returns the names that a Python with some options does not find."""
    finished = subprocess.run(
        [sys.executable, *options, "-c", RESOLVE],
        input=json.dumps(names),
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(finished.stdout.splitlines()[-1]))


def lacking(users: dict[str, set[str]]) -> Iterator[tuple[str, set[str]]]:
    """Yields the names that JAX has and axir lacks; names used by most libraries come first."""
    names = sorted(users)
    of_jax = set(names) - missing(names)
    for name in sorted(missing(names, "-m", "axir.as_jax") & of_jax, key=lambda n: -len(users[n])):
        yield name, users[name]


def report(folder: Path) -> None:
    """Prints the missing names, and the share of uses that axir supports."""
    users = libraries_by_name(folder)
    absent = missing(sorted(users))
    found = list(lacking(users))
    for name, libraries in found:
        print(f"{len(libraries):3d} {name}: {', '.join(sorted(libraries))}")
    total = sum(len(libraries) for name, libraries in users.items() if name not in absent)
    lost = sum(len(libraries) for _, libraries in found)
    print(
        f"{len(set().union(*users.values()))} libraries, {len(users) - len(absent)} names that JAX "
        f"has, {total} uses: {1 - lost / max(total, 1):.1%} are there"
    )


if __name__ == "__main__":
    report(Path(sys.argv[1]))

"""Checks the form of docstrings, and that the name of an error is unique."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.source_imports import statements

ROOT = Path(__file__).parents[2]
FOLDERS = ("frontend", "runtime", "passes", "dialect", "docs")
SECTION = re.compile(r"(Args|Attributes|Examples?|Raises|Returns|Yields):")
# A function's summary describes its action, not its result. Some decorators make another thing.
OF_THINGS = ("property", "continuous", "discrete", "of_vectors")
NO_VERB = re.compile(r"(An?|How|The|True|What|Where|Whether) ")


def sources() -> list[Path]:
    return sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


def documented(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Yields nodes with a docstring, except commands: their docstrings are printed as help."""
    for node in (tree, *(statement for statement, *_ in statements(tree))):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)):
            text = ast.get_docstring(node)
            if text is not None and not is_decorated(node, "command", "group"):
                yield node, text


def is_decorated(node: ast.AST, *names: str) -> bool:
    decorators = map(ast.unparse, getattr(node, "decorator_list", ()))
    return any(name in decorator for decorator in decorators for name in names)


def faults(tree: ast.Module) -> Iterator[str]:
    """Yields the faults of the docstrings of a module."""
    for node, text in documented(tree):
        line = getattr(node, "lineno", 1)
        is_function = isinstance(node, ast.FunctionDef) and not is_decorated(node, *OF_THINGS)
        if is_function and NO_VERB.match(text):
            yield f"line {line}: {text.splitlines()[0]!r} begins with no verb"
        lines = text.splitlines()
        for heading, content in itertools.pairwise(lines):
            if SECTION.fullmatch(heading) and not re.match(r" {4}\S", content):
                yield f"line {line}: the section {heading!r} is not indented by four"


@pytest.fixture(scope="module")
def trees() -> Iterator[dict[Path, ast.Module]]:
    """The sources, parsed once because it takes seconds; the tests of one file share a worker."""
    parsed = {path: ast.parse(path.read_text()) for path in sources()}
    yield parsed
    parsed.clear()


def test_docstrings_have_one_form(trees: dict[Path, ast.Module]) -> None:
    found = [
        f"{path.relative_to(ROOT)}, {fault}"
        for path, tree in trees.items()
        for fault in faults(tree)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ('def f():\n    """The sum of all."""', "no verb"),
        ('class C:\n    def f(self):\n        """Whether it holds."""', "no verb"),
        ('def f():\n    """Sums.\n\n    Args:\n      x: a number.\n    """', "indented"),
        ('"""Numbers.\n\nRaises:\n  Error: always.\n"""', "indented"),
    ],
)
def test_another_form_is_found(source: str, fault: str) -> None:
    (found,) = faults(ast.parse(source))
    assert fault in found


def test_the_form_is_allowed() -> None:
    source = '''
    class C:
        """The number.

        Attributes:
            x: its value.
        """

        @property
        def f(self):
            """The sum of all."""

        def g(self):
            """Returns the sum.

            Args:
                x: a number.
            """
    '''
    assert list(faults(ast.parse("if True:\n" + source))) == []


def test_no_two_errors_share_a_name(trees: dict[Path, ast.Module]) -> None:
    places: dict[str, list[str]] = {}
    for path, tree in trees.items():
        for node, *_ in statements(tree):
            if isinstance(node, ast.ClassDef) and node.name.endswith(("Error", "Warning")):
                places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert len(places) > 50
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}

"""Runs the examples in docstrings, in README.md and in docs/.

pytest's own doctest collection would import `dialect/core/types.py` as `dialect.core.types`, a
second copy of `axir.dialect.core.types`; so the modules are imported here under the names that
users know.
"""

from __future__ import annotations

import doctest
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from axir._made_modules import MadeModule

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "frontend": "axir",
    "dialect": "axir.dialect",
    "passes": "axir.passes",
    "runtime": "axir.runtime",
}
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
# The number of devices is fixed once per process: these pages begin with it.
IN_OWN_PROCESS = ("devices.md",)
FENCED_EXAMPLES = re.compile(r"^```(?:python|pycon)\n(>>> .*?)^```$", re.MULTILINE | re.DOTALL)


def modules_with_examples() -> Iterator[str]:
    for folder, package in PACKAGES.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = [package, *path.relative_to(ROOT / folder).with_suffix("").parts]
            if ">>> " in path.read_text():
                yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def documents_with_examples() -> Iterator[Path]:
    for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]):
        if FENCED_EXAMPLES.search(path.read_text()):
            yield path


def examples_of_module(name: str) -> list[doctest.DocTest]:
    """Returns the examples of a module, and of those that it makes without a file."""
    module = importlib.import_module(name)
    made = [value for value in vars(module).values() if isinstance(value, MadeModule)]
    finder = doctest.DocTestFinder()
    found = [test for each in (module, *made) for test in finder.find(each, each.__name__)]
    return [test for test in found if test.examples]


def examples_of_document(path: Path) -> doctest.DocTest:
    """Returns all examples of a document as one test, since a later one may use an earlier one.

    The text between examples becomes blank, which keeps the line numbers.
    """
    text = path.read_text()
    blanked = ["\n" if character == "\n" else " " for character in text]
    for block in FENCED_EXAMPLES.finditer(text):
        blanked[block.start(1) : block.end(1)] = block.group(1)
    return doctest.DocTestParser().get_doctest(
        "".join(blanked), {"__name__": "__main__"}, path.name, str(path), 0
    )


def failures(test: doctest.DocTest) -> str:
    """Runs the examples; returns a report of those that fail, empty when all pass."""
    report: list[str] = []
    doctest.DocTestRunner(optionflags=OPTIONS, verbose=False).run(test, out=report.append)
    return "".join(report)


@pytest.mark.parametrize("name", list(modules_with_examples()))
def test_examples_in_docstrings(name: str) -> None:
    tests = examples_of_module(name)
    assert tests, f"{name} has examples that doctest does not find: is there a >>> in a comment?"
    report = "".join(failures(test) for test in tests)
    assert not report, report


@pytest.mark.parametrize("path", list(documents_with_examples()), ids=lambda path: path.name)
def test_examples_in_documents(path: Path) -> None:
    if path.name in IN_OWN_PROCESS:
        command = [sys.executable, __file__, str(path)]
        report = subprocess.run(command, capture_output=True, text=True, timeout=300).stdout
    else:
        report = failures(examples_of_document(path))
    assert not report, report


def test_a_wrong_example_fails(tmp_path: Path) -> None:
    document = tmp_path / "wrong.md"
    document.write_text("Text.\n\n```python\n>>> 1 + 1\n3\n```\n\n```pycon\n>>> 2 + 2\n4\n```\n")
    report = failures(examples_of_document(document))
    assert "line 4" in report
    assert "Expected:\n    3\nGot:\n    2\n" in report
    assert "2 + 2" not in report


if __name__ == "__main__":
    print(failures(examples_of_document(Path(sys.argv[1]))), end="")

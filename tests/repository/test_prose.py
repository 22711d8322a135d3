"""Checks that docstrings are plain English, by the rate of the turns of phrase that are not.

Here: the limit, and a message that lists the sentences of the worst files.
Elsewhere: the patterns (`tests/support/mannerisms.py`), the form of docstrings
(`test_docstrings.py`), the rule with examples (`CONTRIBUTING.md`, "Plain English").
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.mannerisms import MANNERISMS, Prose

ROOT = Path(__file__).parents[2]
ROOMS = ("dialect", "passes", "runtime", "frontend")
# Mannerisms in 1,000 words of docstrings. The limit only ever falls.
LIMIT = 1.0
LISTED_FILES = 5


def rate(modules: Mapping[Path, Prose]) -> float:
    """Returns the mannerisms in 1,000 words."""
    words = sum(prose.words for prose in modules.values())
    return 1000 * sum(prose.mannerisms for prose in modules.values()) / words


def report(modules: Mapping[Path, Prose], limit: float) -> str:
    """Returns the rate, the limit, and the sentences of the files with most mannerisms."""
    worst = sorted(modules, key=lambda path: -modules[path].mannerisms)[:LISTED_FILES]
    lines = [
        f"docstrings have {rate(modules):.1f} mannerisms in 1,000 words; the limit is {limit}",
        'see "Plain English" in CONTRIBUTING.md; the files with most of them:',
    ]
    for path in worst:
        lines.append(f"{path}: {modules[path].mannerisms}")
        lines.extend(f"    {sentence}" for sentence in modules[path].sentences())
    return "\n".join(lines)


def test_docstrings_are_plain_english() -> None:
    paths = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
    modules = {
        path.relative_to(ROOT): Prose.of_module(ast.parse(path.read_text())) for path in paths
    }
    assert len(modules) > 500
    assert rate(modules) <= LIMIT, report(modules, LIMIT)


@pytest.mark.parametrize(
    ("kind", "sentence"),
    dict(
        zip(
            MANNERISMS,
            (
                "Is as fast as that of JAX.",
                "Returns arrays whose shapes agree.",
                "Waits for whoever holds the lock.",
                "Writes what is there.",
                "Returns the shape, and likewise the dtype.",
                "Has a thread of its own.",
                "Copies, for it is changed.",
                "Returns None where there is no file.",
            ),
            strict=True,
        )
    ).items(),
)
def test_a_mannerism_is_found(kind: str, sentence: str) -> None:
    prose = Prose.of_module(ast.parse(f'def f():\n    """{sentence}"""'))
    assert prose.mannerisms > 0, kind
    assert list(prose.sentences()) == [sentence]


def test_plain_sentences_and_examples_have_no_mannerism() -> None:
    source = '''
    """Returns the sum of the operands.

    The axes are removed. An example:

    >>> print("that of", whose)
    """
    '''
    prose = Prose.of_module(ast.parse("if True:\n" + source))
    assert (prose.mannerisms, list(prose.sentences())) == (0, [])
    prose = Prose.of_module(ast.parse('"""Returns the sum.\n\n>>> f("whose")\n"""'))
    assert (prose.words, prose.mannerisms) == (3, 0)


def test_the_message_lists_the_sentences_of_the_worst_files() -> None:
    def module(text: str) -> Prose:
        return Prose((text,))

    modules = {
        Path("good.py"): module("Returns the sum."),
        Path("bad.py"): module("Returns the sum. Waits for whoever\nholds it, for it is busy."),
    }
    lines = report(modules, 1.0).splitlines()
    assert lines[0].endswith("in 1,000 words; the limit is 1.0")
    assert lines[2:4] == ["bad.py: 2", "    Waits for whoever holds it, for it is busy."]

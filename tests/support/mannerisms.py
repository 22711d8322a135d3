"""Counts turns of phrase that make docstrings hard to read.

Here: the patterns, their count in a docstring, and the sentences that contain them.
Elsewhere: the limit and the message of the test (`tests/repository/test_prose.py`), the rule
in words (`CONTRIBUTING.md`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

_AFTER_WHAT = "is|are|was|has|does|must|may|a|an|the|it|they|nobody|somebody|[a-z]+s"
_AFTER_FOR = "it|its|the|a|they|there|that|this|these|what|who|each|IREE"
MANNERISMS = {
    '"that of" or "those of" in place of the noun': r"\b(?:that|those) of\b",
    "a relative clause with whose, whom or of which": r"\b(?:whose|whom|of which)\b",
    "a person in place of the caller or the thread": (
        r"\b(?:who|whoever|nobody|somebody|anybody)\b"
    ),
    '"what" as a noun': rf"\b[Ww]hat (?:{_AFTER_WHAT})\b",
    "a bookish connective": r"\b(?:besides|likewise|thereof|hence|thus)\b",
    '"alone" or "of its own" in place of "only" or "separate"': (
        r"\b(?:alone|by itself|by themselves|of (?:its|their) own)\b"
    ),
    '", for it" in place of "because"': rf", for (?:{_AFTER_FOR})\b",
    '"there is none" in place of "if absent"': (
        r"\b(?:there is no|there are none|has none|is none|of none)\b"
    ),
}
_PATTERNS = tuple(map(re.compile, MANNERISMS.values()))
_EXAMPLE_LINE = re.compile(r"^\s*(?:>>>|\.\.\.).*$", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n\s*\n")


@dataclass(frozen=True)
class Prose:
    """The docstrings of one module, without the code of their examples."""

    docstrings: tuple[str, ...]

    @classmethod
    def of_module(cls, tree: ast.Module) -> Prose:
        """Returns the docstrings of a module, its classes and its functions."""
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        nodes = (node for node in ast.walk(tree) if isinstance(node, documented))
        texts = (ast.get_docstring(node) for node in nodes)
        return cls(tuple(_EXAMPLE_LINE.sub("", text) for text in texts if text))

    @property
    def words(self) -> int:
        """The number of words."""
        return sum(len(re.findall(r"\w+", text)) for text in self.docstrings)

    @property
    def mannerisms(self) -> int:
        """The number of mannerisms; one sentence may contain several."""
        return sum(map(_count, self.docstrings))

    def sentences(self) -> Iterator[str]:
        """Yields each sentence that contains a mannerism, on one line."""
        for text in self.docstrings:
            for sentence in _SENTENCE_END.split(text):
                if _count(sentence):
                    yield " ".join(sentence.split())


def _count(text: str) -> int:
    return sum(len(pattern.findall(text)) for pattern in _PATTERNS)

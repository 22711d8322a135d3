"""Names of `jax._src.pretty_printer`: texts as documents, which `format` and `str` write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Doc", "concat", "nil", "text"]


@dataclass(frozen=True)
class Doc:
    """A text in one line."""

    content: str = ""

    def format(self) -> str:
        """Returns the text."""
        return self.content

    def __str__(self) -> str:
        return self.content

    def __add__(self, other: Doc) -> Doc:
        return Doc(self.content + other.content)


def text(s: str, annotation: str | None = None) -> Doc:
    """Returns a text as a document."""
    return Doc(s)


def concat(docs: Sequence[Doc]) -> Doc:
    """Returns documents in sequence."""
    return Doc("".join(doc.content for doc in docs))


def nil() -> Doc:
    """Returns the empty document."""
    return Doc()

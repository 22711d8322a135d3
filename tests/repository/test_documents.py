"""Checks what documents promise about files: relative links and generated tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\((?!https?://|mailto:|#)([^)#\s]+)")
INLINE_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def documents() -> list[Path]:
    folders = ("docs", "benchmarks", "examples")
    nested = (path for folder in folders for path in (ROOT / folder).rglob("*.md"))
    return sorted([*ROOT.glob("*.md"), *nested])


def broken_links(path: Path) -> Iterator[str]:
    text = INLINE_CODE.sub("", path.read_text())
    for target in LINK.findall(text):
        if not (path.parent / target).exists():
            yield target


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files(path: Path) -> None:
    assert not list(broken_links(path))


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    document = tmp_path / "a.md"
    document.write_text("[here](a.md) [web](https://example.org) [gone](gone.md#part) `[x](y)`\n")
    assert list(broken_links(document)) == ["gone.md"]

"""Checks the promises of documents about files: relative links and generated pages."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\((?!https?://|mailto:|#)([^)#\s]+)")
LINK_TO_LINE = re.compile(r"\[(`[^`]*`)\]\(([^)#]+)#L(\d+)\)")
LINK_TO_NAME = re.compile(r"\[`(?:\w+\.)*(\w+)`\]\(([^)#\s]+\.py)\)")
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


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_names_stand_in_the_files_they_link_to(path: Path) -> None:
    for name, target in LINK_TO_NAME.findall(path.read_text()):
        assert re.search(rf"\b{name}\b", (path.parent / target).read_text()), (name, target)


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    document = tmp_path / "a.md"
    document.write_text("[here](a.md) [web](https://example.org) [gone](gone.md#part) `[x](y)`\n")
    assert list(broken_links(document)) == ["gone.md"]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Returns the generated pages, with links to the lines of rules."""
    folder = tmp_path_factory.mktemp("pages")
    command = [sys.executable, ROOT / "docs/generate.py", "--lines", folder]
    subprocess.run(command, check=True, timeout=120)
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_generated_pages_are_those_of_the_tables(pages: dict[str, str]) -> None:
    assert set(pages) == {"error_classes.md", "ops.md", "options.md", "passes.md"}
    for name, text in pages.items():
        written = (ROOT / "docs" / name).read_text()
        assert written == LINK_TO_LINE.sub(r"\1", text), f"{name} is out of date; run: make docs"


def test_the_page_of_ops_tells_where_every_rule_is(pages: dict[str, str]) -> None:
    from axir.dialect.program.op_table import OPS

    rows = [line for line in pages["ops.md"].splitlines() if line.startswith("| [`")]
    assert {row[4 : row.index("`]")] for row in rows} == set(OPS)
    rules = [row[row.index(" | ") :] for row in rows]
    places = {match.groups() for row in rules for match in LINK_TO_LINE.finditer(row)}
    assert len(places) > len(OPS)
    for name, path, line in places:
        source = (ROOT / "docs" / path).read_text().splitlines()
        assert re.search(r"\b(def|lambda)\b|^\s*@", source[int(line) - 1]), (name, path, line)
        assert re.search(rf"\b{name.strip('`').rpartition('.')[2]}\b", "\n".join(source)), name

"""The sources of the site, without running Sphinx: pages, valid links, the reference."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Of these, the last have classes, members of enumerations and objects as defaults.
NAMES = (
    "axir.numpy.sum",
    "axir.lax.sin",
    "axir.custom_jvp",
    "axir.numpy.concatenate",
    "axir.numpy.frombuffer",
    "axir.lax.rng_bit_generator",
    "axir.experimental.checkify.checkify",
)
LINK = re.compile(r"\]\((?!https?://|mailto:|#)([^)#\s]+)")
CODE = re.compile(r"^(`{3,}).*?^\1$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of the sources, with a reference of a few names."""
    folder = tmp_path_factory.mktemp("site") / "source"
    command = [sys.executable, ROOT / "docs/make_site.py", folder, *NAMES]
    subprocess.run(command, check=True, timeout=300)
    return folder


def broken_links(folder: Path) -> Iterator[tuple[str, str]]:
    for path in folder.rglob("*.md"):
        # Words of links may be code; then only the end of a link is left, which is checked.
        for target in LINK.findall(CODE.sub("", path.read_text())):
            if not (path.parent / target).exists():
                yield path.relative_to(folder).as_posix(), target


def test_links_lead_to_pages_of_the_site(site: Path) -> None:
    assert not list(broken_links(site))


def test_every_page_stands_in_the_contents(site: Path) -> None:
    index = (site / "index.md").read_text()
    for page in (ROOT / "docs").glob("*.md"):
        assert f"\ndocs/{page.stem}\n" in index
        assert (site / "docs" / page.name).exists()
    assert "\nreference/axir.numpy\n" in index


def test_a_function_shows_its_call_as_a_program(site: Path) -> None:
    page = (site / "reference/axir.lax/sin.md").read_text()
    assert page.startswith("---\norphan: true\n---\n\n# `axir.lax.sin`\n")
    for part in ("sin a", "stablehlo.sine", "| `sin` |", "Defined in [`dialect/ops/"):
        assert part in page
    assert ">>> " in (site / "reference/axir.numpy/sum.md").read_text()
    assert (site / "reference/axir.numpy.md").read_text().count("](axir.numpy/sum.md)") == 1


def test_signatures_are_code(site: Path) -> None:
    """Sphinx warns of signatures that it cannot read, and a warning ends `make site`."""
    pages = list((site / "reference").glob("*/*.md"))
    assert len(pages) == len(NAMES)
    for page in pages:
        (signature, *_) = re.findall(r"^```python\n(.*?)\n```$", page.read_text(), re.M | re.DOTALL)
        ast.parse(f"def {signature}: ...")


def test_a_class_shows_its_methods(site: Path) -> None:
    page = (site / "reference/axir/custom_jvp.md").read_text()
    assert "## `defjvp`" in page
    assert "## A call as a program" not in page


def test_docstrings_become_markdown() -> None:
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        from reference.docstrings import markdown, summary
    finally:
        sys.path.remove(str(ROOT / "docs"))

    def documented() -> None:
        """Adds x * y to `a_b`.

        Args:
            x: An array, as
                long as y.
            *others: More.

        >>> 1 + 1
        2

        Written::

            a
              b
        """

    assert summary(documented) == "Adds x \\* y to `a_b`."
    assert markdown(documented).split("\n\n", 1)[1] == (
        "\n**Arguments**\n\n- `x`: An array, as\n  long as y.\n- `*others`: More.\n\n"
        "\n```pycon\n>>> 1 + 1\n2\n```\n\n\nWritten:\n\n\n```text\na\n  b\n```\n\n"
    )

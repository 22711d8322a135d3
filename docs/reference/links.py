"""Links of pages: on a site everything that a page links to is a page.

Links to files of the source become links to pages that show them, links to folders to lists of
their files.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from pathlib import Path

from tables.markdown import ROOT

FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
# A link, possibly with code as its text; or code, in which nothing is a link.
LINK_OR_CODE = re.compile(
    r"(?P<words>\[(?:[^\]\[`]|`[^`]*`)*\]\()(?!https?://|mailto:|#)(?P<target>[^)#\s]+)"
    r"(?P<rest>(?:#[^)\s]*)?\))|`[^`\n]*`"
)
LANGUAGES = {".py": "python", ".cpp": "cpp", ".hpp": "cpp", ".toml": "toml", ".sh": "bash"}
KEPT = {".md", ".png", ".svg"}


class Site:
    """The pages of a site while they are written.

    Attributes:
        folder: The output folder; paths of pages are relative to the repository.
        shown: Files and folders of the repository that pages link to.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.shown: set[str] = set()

    def write(self, path: str, text: str) -> None:
        """Writes a page."""
        place = self.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def copy_page(self, path: str) -> None:
        """Writes a page of the repository, with links that hold on the site."""

        def linked(found: re.Match[str]) -> str:
            if found["target"] is None:
                return found[0]
            return found["words"] + self.target(found["target"], path) + found["rest"]

        parts = FENCED.split((ROOT / path).read_text())
        for index, part in enumerate(parts):
            is_code = index % 2 == 1
            parts[index] = _as_lexed(part) if is_code else LINK_OR_CODE.sub(linked, part)
        self.write(path, "".join(parts))

    def target(self, link: str, page: str) -> str:
        """Returns where a link of a page leads on the site."""
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
        if path.startswith("source/") or Path(path).suffix in KEPT:
            return link
        self.shown.add(path)
        return posixpath.relpath(f"source/{path}.md", posixpath.dirname(page) or ".")

    def write_sources(self) -> Iterable[str]:
        """Writes pages for all that was linked to; returns their paths."""
        written = set()
        while self.shown - written:
            path = min(self.shown - written)
            written.add(path)
            self.write(f"source/{path}.md", self._source(path))
        return sorted(f"source/{path}.md" for path in written)

    def _source(self, path: str) -> str:
        place = ROOT / path
        if place.is_dir():
            files = sorted(file for file in place.rglob("*") if file.suffix in LANGUAGES)
            rows = [f"- `{file.relative_to(place)}`\n" for file in files]
            return f"---\norphan: true\n---\n\n# `{path}`\n\n{''.join(rows)}"
        language = LANGUAGES.get(place.suffix, "text")
        return (
            f"---\norphan: true\n---\n\n# `{path}`\n\n`````{language}\n{place.read_text()}\n`````\n"
        )


def _as_lexed(code: str) -> str:
    """Returns a block of code with the language that its highlighting is for."""
    return code.replace("```python\n>>>", "```pycon\n>>>").replace("```mlir", "```text")

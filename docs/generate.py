"""Rewrites the pages that are generated from tables in the code; `make docs` runs it.

Usage: generate.py [--lines] [FOLDER]. The pages in this folder name files and functions, and so
stay true while lines move. With --lines the page of ops links to the line of each rule as well, for
reading and for publishing. What each page says is the business of the modules in `tables/`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tables import errors, ops, options, passes

FOLDER = Path(__file__).parent


def main() -> None:
    """Writes every generated page."""
    parser = argparse.ArgumentParser(description="Writes the pages that are made of tables.")
    parser.add_argument("--lines", action="store_true", help="link to the line of each rule")
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    pages = {
        "error_classes.md": errors.page(),
        "ops.md": ops.page(asked.lines),
        "options.md": options.page(),
        "passes.md": passes.page(),
    }
    for name, text in pages.items():
        (asked.folder / name).write_text(text)


if __name__ == "__main__":
    main()

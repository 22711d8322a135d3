"""Rewrites the documents that are generated from tables in the code; `make docs` runs it."""

from __future__ import annotations

from pathlib import Path

from axir.dialect.options import options_table

OPTIONS_TEXT = """\
# Options

*Generated from `dialect/options.py` by `make docs`.*

An option is set for the whole process by `axir.config.update(name, value)`, for one thread by
`with axir.config(name=value):`, and before start by an environment variable. Where two variables
are named, the first one wins. `axir.config.<name>` reads the value.

"""


def main() -> None:
    """Writes every generated document."""
    folder = Path(__file__).parent
    (folder / "options.md").write_text(OPTIONS_TEXT + options_table())


if __name__ == "__main__":
    main()

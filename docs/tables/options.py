"""The page of the options: the table of `dialect/core/options.py`."""

from __future__ import annotations

from axir.dialect.core.option_kinds import SYNONYMS
from axir.dialect.core.options import OPTIONS
from axir.dialect.core.options_without_effect import WITHOUT_EFFECT

from .markdown import table

TEXT = """\
# Options

*Generated from `dialect/core/options.py` by `make docs`.*

An option is set for the whole process by `axir.config.update(name, value)`, for one thread by
`with axir.config(name=value):`, and before start by an environment variable. Where two variables
are named, the first one wins. `axir.config.<name>` reads the value.

"""


HEADER = ["option", "default", "legal values", "environment", "meaning"]


def page() -> str:
    """Returns the page."""
    rows = [
        [
            f"`{option.name}`",
            f"`{option.default!r}`",
            f"`{option.legal_values}`",
            ", ".join(f"`{variable}`" for variable in option.environment),
            option.help,
        ]
        for option in OPTIONS.values()
        if option.has_effect
    ]
    synonyms = [[f"`{name}`", f"`{meant}`"] for name, meant in SYNONYMS.items()]
    return (
        TEXT
        + table(HEADER, rows)
        + "\n## JAX's names of axir's options\n\n"
        + table(["name", "option"], synonyms)
        + "\n## Options of JAX without effect\n\nThey are taken since programs set them.\n\n"
        + table(["reason", "options"], _without_effect())
    )


def _without_effect() -> list[list[str]]:
    return [
        [reason, ", ".join(f"`{name}`" for name in defaults)]
        for reason, defaults in WITHOUT_EFFECT.items()
    ]

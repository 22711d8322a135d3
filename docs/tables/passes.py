"""The page of the passes, from the registry and the dataclasses of the passes."""

from __future__ import annotations

import dataclasses
import inspect
from collections import defaultdict

from axir.passes.framework.base import Pass
from axir.passes.framework.registry import find_pass, pass_names
from axir.passes.legalize.buffers.dispatch_rows import ROWS

from .markdown import link, source_path, table

TEXT = """\
# Passes

*Generated from the registry of passes by `make docs`.*

A pass is named in pipelines, `axir opt -p 'vmap{axis_size=5,in_axes=0},simplify'`, and
`axir passes NAME` prints its algorithm, the IR before and after, and what it requires. An option
without a value here must be given.
"""

ROWS_TEXT = """
## Rows of `separate-dispatches`

Each row is a pair of operations that IREE computes wrongly in one dispatch. The pass
[`separate-dispatches`](../passes/legalize/buffers/separate_dispatches.py) puts a barrier between
the two. `axir opt -p 'separate-dispatches{row=slice-before-sort}'` runs one row. The
[table](../passes/legalize/buffers/dispatch_rows.py) has the smallest module for each row.

"""


def page() -> str:
    """Returns the page: the passes of each folder, and the rows of `separate-dispatches`."""
    folders: dict[str, list[list[str]]] = defaultdict(list)
    for name in pass_names():
        found = find_pass(name)
        path = source_path(inspect.getfile(found))
        row = [link(f"`{name}`", path), _options(found), found.summary()]
        folders[path.rpartition("/")[0]].append(row)
    sections = [
        f"\n## `{folder}/`\n\n{table(['pass', 'options', 'what it does'], rows)}"
        for folder, rows in sorted(folders.items())
    ]
    return TEXT + "".join(sections) + ROWS_TEXT + _dispatch_rows()


def _dispatch_rows() -> str:
    rows = [
        [
            f"`{row.name}`",
            ", ".join(f"`{name}`" for name in row.at.split()),
            ", ".join(row.on) or "all",
            row.fact.replace("|", r"\|"),
        ]
        for row in ROWS
    ]
    return table(["row", "looks at", "platforms", "fact"], rows)


def _options(found: type[Pass]) -> str:
    return ", ".join(f"`{field.name}{_default(field)}`" for field in dataclasses.fields(found))


def _default(field: dataclasses.Field[object]) -> str:
    if field.default is not dataclasses.MISSING:
        return f"={field.default!r}"
    if field.default_factory is not dataclasses.MISSING:
        return f"={field.default_factory()!r}"
    return ""

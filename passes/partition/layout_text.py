"""Meshes and layouts in the text form that options of a pass have."""

from __future__ import annotations

import re
from collections.abc import Sequence

from axir.dialect.program.meshes.layouts import Layout, MeshAxes
from axir.passes.framework.errors import OptionValueError

_AXIS = re.compile(r"\s*(\w+)\s*=\s*(\d+)\s*")


def read_mesh(text: str) -> MeshAxes:
    """Reads names and extents of axes.

    >>> read_mesh("data=4, model=2")
    (('data', 4), ('model', 2))
    """
    found = [_AXIS.fullmatch(entry) for entry in text.split(",")]
    if not all(found):
        raise OptionValueError(
            f"partition: the mesh {text!r} is no list of axes.", 'Write mesh="data=4, model=2".'
        )
    return tuple((match[1], int(match[2])) for match in found if match is not None)


def read_layouts(text: str | None) -> list[Layout | None] | None:
    """Reads layouts, separated by semicolons; their dimensions by commas.

    A dimension is `-`, the name of an axis, or several joined by `*`; `?` leaves a layout open.

    >>> read_layouts("data, -; -, data*model; ?; ")
    [(('data',), ()), ((), ('data', 'model')), None, ()]
    """
    return None if text is None else [_layout(entry.strip()) for entry in text.split(";")]


def _layout(text: str) -> Layout | None:
    if text == "?":
        return None
    return tuple(map(_names, text.split(","))) if text else ()


def _names(text: str) -> tuple[str, ...]:
    text = text.strip()
    return () if text == "-" else tuple(name.strip() for name in text.split("*"))


def write_layouts(layouts: Sequence[Layout]) -> str:
    """Writes layouts as `read_layouts` reads them.

    >>> write_layouts([(("data",), ()), ()])
    'data, -; '
    """
    return "; ".join(
        ", ".join("*".join(map(str, names)) or "-" for names in layout) for layout in layouts
    )

"""Text about partitioned programs: meshes and layouts as options, communication as a report.

Here: options of the pass, read, checked and written, and the collectives of a partitioned program
with the user's lines.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from axir.dialect.core.context import describe_location
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.effects import names_in
from axir.dialect.program.equation import Equation
from axir.dialect.program.function import Function, functions_of
from axir.dialect.program.meshes.layouts import (
    Layout,
    LayoutError,
    MeshAxes,
    check_layout,
    device_count,
    local_shape,
)
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


def checked_layouts(
    what: str,
    layouts: Sequence[Layout | None] | None,
    types: Sequence[ShapedArray],
    axes: MeshAxes,
) -> tuple[Layout | None, ...]:
    """Returns layouts, one for each type; raises if one does not fit the mesh or its type."""
    found = (None,) * len(types) if layouts is None else tuple(layouts)
    if len(found) != len(types):
        raise LayoutError(
            f"partition: there are {len(found)} layouts for {len(types)} {what}s.",
            "Give one for each: those of the captures of a function follow its inputs'.",
        )
    for number, (layout, t) in enumerate(zip(found, types, strict=True)):
        if layout is not None:
            check_layout(f"{what.capitalize()} {number}", layout, t.ndim, axes)
            local_shape(t.shape, layout, axes, f"{what.capitalize()} {number}")
    return found


def write_layouts(layouts: Sequence[Layout]) -> str:
    """Writes layouts as `read_layouts` reads them.

    >>> write_layouts([(("data",), ()), ()])
    'data, -; '
    """
    return "; ".join(
        ", ".join("*".join(map(str, names)) or "-" for names in layout) for layout in layouts
    )


# Bytes that a device receives for each byte of its operand, by the number of devices. An all-reduce
# is a reduce-scatter and a gather of its results.
_RECEIVED = {
    "psum": lambda n: 2 * (n - 1) / n,
    "joined_psum": lambda n: 2 * (n - 1) / n,
    "pmax": lambda n: 2 * (n - 1) / n,
    "pmin": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: n - 1,
    "reduce_scatter": lambda n: (n - 1) / n,
    "all_to_all": lambda n: (n - 1) / n,
    "ppermute": lambda n: 1,
}


@dataclass(frozen=True)
class Communication:
    """A collective of a program.

    Attributes:
        op: Its name.
        axes: The axes of the mesh along which it works.
        operand: Type of the part that each device gives, as text.
        received: Bytes that each device receives.
        times: The number of executions, as far as lengths of loops are known.
        line: The user's line, if known.
    """

    op: str
    axes: tuple[Hashable, ...]
    operand: str
    received: int
    times: int
    line: str | None


def communications(function: Function, axes: MeshAxes, times: int = 1) -> list[Communication]:
    """Returns the collectives of a program of parts, and of the functions it calls, in order.

    Args:
        function: The program of one device.
        axes: The axes of the mesh.
        times: The number of executions of the program.
    """
    return list(_found(function, axes, times))


def _found(function: Function, axes: MeshAxes, times: int) -> Iterator[Communication]:
    for equation in function.equations:
        if equation.primitive.name in _RECEIVED:
            yield _communication(equation, axes, times)
        passes = equation.params.get("length", 1)
        for inner in functions_of(equation.params):
            yield from _found(inner, axes, times * passes)


def _communication(equation: Equation, axes: MeshAxes, times: int) -> Communication:
    names = tuple(name for name, _ in axes if name in names_in(equation))
    operands = [v.type for v in equation.operands]
    held = sum(t.size * t.dtype.itemsize for t in operands)
    return Communication(
        equation.primitive.name,
        names,
        ", ".join(map(str, operands)),
        round(held * _RECEIVED[equation.primitive.name](device_count(names, axes))),
        times,
        describe_location(equation.location),
    )

"""Memory layouts of arrays: row-major order is the only one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from axir._trees import tree
from axir.dialect.core.annotations import PyTree, Tree, UserFunction, UserObject
from axir.dialect.core.errors import ParameterError

__all__ = ["Format", "Layout", "explicit_layout", "with_layout_constraint"]


def __dir__() -> list[str]:
    return __all__


@dataclass(frozen=True)
class Layout:
    """An order of the elements of an array in memory.

    Attributes:
        major_to_minor: The axes, from the one along which neighbours are farthest apart.
        tiling: Blocks in which elements lie together; none by default.
        sub_byte_element_size_in_bits: Size of elements that are smaller than a byte; 0 for others.

    Raises:
        ParameterError: if the axes are no permutation.

    >>> Layout((0, 1)).major_to_minor
    (0, 1)
    """

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "major_to_minor", tuple(self.major_to_minor))
        if sorted(self.major_to_minor) != list(range(len(self.major_to_minor))):
            raise ParameterError(
                f"Layout: {self.major_to_minor} does not name each axis once.",
                "Pass a permutation of range(ndim).",
            )


@dataclass(frozen=True)
class Format:
    """The placement and the memory layout of an array.

    Attributes:
        layout: The order of the elements, or None for any.
        sharding: Where the array is, or None for anywhere.
    """

    layout: Layout | None = None
    sharding: UserObject = None


def with_layout_constraint(x: Tree, layouts: Tree) -> PyTree:
    """Asks for a layout of arrays in a program, which returns them row by row in any case.

    The layout of a program's values is not visible: the compiler chooses it.

    Args:
        x: A tree of arrays.
        layouts: A layout, or a tree of them that is a prefix of `x`.

    Raises:
        ParameterError: if a layout is for arrays of another number of axes.
    """
    places = tree.broadcast_prefix(layouts, x, "layouts")
    for leaf, layout in zip(tree.leaves(x), places, strict=True):
        if layout is not None and len(layout.major_to_minor) != leaf.ndim:
            raise ParameterError(
                f"with_layout_constraint: {layout} is for arrays of {len(layout.major_to_minor)} "
                f"axes, but one of shape {leaf.shape} came."
            )
    return x


def explicit_layout(
    f: Callable[..., object] | None = None, /, *, in_layouts: Tree | None = None
) -> UserFunction:
    """Returns a function that requests layouts for its arguments; see `with_layout_constraint`.

    Args:
        f: The function; without it, this is a decorator with options.
        in_layouts: A layout, or a tree of them that is a prefix of the tuple of arguments.

    Raises:
        ParameterError: by a call, if a layout is for arrays of another number of axes.
    """
    if f is None:
        return functools.partial(explicit_layout, in_layouts=in_layouts)
    function = f

    @functools.wraps(function)
    def asked(*args: object) -> UserObject:
        return function(*(args if in_layouts is None else with_layout_constraint(args, in_layouts)))

    return asked

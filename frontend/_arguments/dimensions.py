"""Symbolic dimensions: extents that are not known when a function is exported.

What does not live here: what becomes of them (`frontend/_bundles/batching.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn, TypeAlias

from axir.dialect.core.annotations import UserObject
from axir.dialect.core.errors import AxirError, ParameterError, ShapeError

Extent: TypeAlias = "int | SymbolicDim"


class SymbolicDimError(AxirError, ValueError):
    """A symbolic dimension was used as a number."""


class SymbolicDim:
    """An extent that is not known; equal to those of the same name.

    Args:
        name: What it is called.

    >>> SymbolicDim("b") == SymbolicDim("b"), SymbolicDim("b")
    (True, b)
    """

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SymbolicDim) and self.name == other.name

    def __hash__(self) -> int:
        return hash(("SymbolicDim", self.name))

    def __repr__(self) -> str:
        return self.name

    def _no_number(self, *others: UserObject) -> NoReturn:
        raise SymbolicDimError(
            f"The extent {self.name} is not known: it is no number to compute with.",
            "A symbolic dimension stands first in shapes that are given to axir.export; the "
            "function itself is traced for a row.",
        )

    __int__ = __index__ = __bool__ = __float__ = _no_number
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _no_number
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __neg__ = _no_number
    __lt__ = __le__ = __gt__ = __ge__ = _no_number


def is_symbolic_dim(extent: UserObject) -> bool:
    """Tells whether an extent is symbolic.

    >>> [is_symbolic_dim(extent) for extent in symbolic_shape("b, 3")]
    [True, False]
    """
    return isinstance(extent, SymbolicDim)


def symbolic_shape(text: str, *, like: Sequence[int] | None = None) -> tuple[Extent, ...]:
    """Returns the shape that a text describes: numbers, and a name for an extent that is open.

    Args:
        text: Extents separated by commas, perhaps in parentheses. `_` stands for the extent of
            `like` in its place, `...` for those that are left.
        like: A shape.

    Returns:
        Integers, and a `SymbolicDim` for a name.

    Raises:
        ParameterError: if the text is no such list, or `like` does not fit it.

    >>> symbolic_shape("b, 784")
    (b, 784)
    >>> symbolic_shape("(b, ...)", like=(8, 28, 28))
    (b, 28, 28)
    """
    stripped = text.strip()
    if stripped.startswith("(") and stripped.endswith(")"):
        stripped = stripped[1:-1]
    words = [word.strip() for word in stripped.split(",")]
    if words[-1] == "":  # a comma in the end, or nothing
        words.pop()
    if "..." in words:
        at = words.index("...")
        words[at : at + 1] = ["_"] * (len(_given(like, text)) - len(words) + 1)
    if "_" in words and len(_given(like, text)) != len(words):
        raise ParameterError(
            f"symbolic_shape: {text!r} has {len(words)} extents, like={like} {len(like or ())}.",
            "Write as many, or ... for the rest.",
        )
    return tuple(_extent(word, n, like, text) for n, word in enumerate(words))


def _given(like: Sequence[int] | None, text: str) -> Sequence[int]:
    if like is None:
        raise ParameterError(
            f"symbolic_shape: {text!r} leaves extents out, and like is not given.",
            "Pass the shape that they are taken from: symbolic_shape('b, ...', like=x.shape).",
        )
    return like


def _extent(word: str, position: int, like: Sequence[int] | None, text: str) -> Extent:
    if word == "_":
        return _given(like, text)[position]
    if word.isdecimal():
        return int(word)
    if word.isidentifier():
        return SymbolicDim(word)
    raise ParameterError(
        f"symbolic_shape: {word!r} in {text!r} is neither a number nor a name.",
        "Only the leading dimension can be open, and it stands alone: 'b, 3'.",
    )


def open_dimension(shapes: Sequence[Sequence[Extent]]) -> SymbolicDim | None:
    """Returns the symbolic dimension that stands first in some shapes; None if there is none.

    Raises:
        ShapeError: if there are two, or one stands elsewhere.
    """
    found = {extent for shape in shapes for extent in shape if isinstance(extent, SymbolicDim)}
    if any(isinstance(extent, SymbolicDim) for shape in shapes for extent in shape[1:]):
        raise ShapeError(
            "export: a symbolic dimension stands behind another dimension.",
            "Only the leading dimension of an argument can be open; export other extents as "
            "numbers.",
        )
    if len(found) > 1:
        names = ", ".join(sorted(dim.name for dim in found))
        raise ShapeError(
            f"export: the arguments have several symbolic dimensions: {names}.",
            "One leading dimension can be open, the same for all arguments that have it.",
        )
    return found.pop() if found else None

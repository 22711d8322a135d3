"""Shapes with symbolic dimensions: their notation, and the sizes of their names in a call."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from axir.dialect.core.annotations import Extent
from axir.dialect.core.errors import ParameterError, ShapeError
from axir.dialect.core.symbolic.texts import Constraint, SymbolicScope, expressions, read_expression
from axir.dialect.core.symbolic_dims import SymbolicDim, is_same, names_of, value_of


def symbolic_shape(
    shape_spec: str,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[int] | None = None,
) -> tuple[Extent, ...]:
    """Returns the shape that a text describes: numbers, names, and expressions of these.

    Args:
        shape_spec: Extents separated by commas, perhaps in parentheses: `b`, `2*b + 1`,
            `floordiv(t, 2)`, `mod(t, 2)`, `max(b, t)`. `_` stands for the extent of `like` in its
            place, `...` for the remaining ones.
        constraints: Constraints on the names: `"b >= 8"`, `"mod(t, 4) == 0"`. They belong to the
            dimensions of this shape, and so to functions that are exported with them.
        scope: Constraints that several shapes share, and to which `constraints` are added. The
            constraints of an exported function stay as they are: the shape has them and its own.
        like: A shape.

    Returns:
        Integers, and a `SymbolicDim` for each symbolic extent.

    Raises:
        ParameterError: if the text is not such a list, or `like` does not fit it.

    >>> symbolic_shape("b, 784")
    (b, 784)
    >>> symbolic_shape("(b, 2*t + 1, ...)", like=(8, 28, 28))
    (b, 2*t + 1, 28)
    """
    words = expressions(shape_spec)
    if any(_is_ellipsis(word) for word in words):
        at = next(n for n, word in enumerate(words) if _is_ellipsis(word))
        missing = len(_given(like, shape_spec)) - len(words) + 1
        words[at : at + 1] = [ast.Name("_")] * missing
    is_open = any(isinstance(word, ast.Name) and word.id == "_" for word in words)
    if is_open and len(_given(like, shape_spec)) != len(words):
        raise ParameterError(
            f"symbolic_shape: {shape_spec!r} has {len(words)} extents, like={like} "
            f"{len(like or ())}.",
            "Write as many, or ... for the rest.",
        )
    if constraints:
        scope = (scope or SymbolicScope()).adding(constraints)
    return tuple(
        _given(like, shape_spec)[number]
        if isinstance(word, ast.Name) and word.id == "_"
        else read_expression(word, shape_spec, scope)
        for number, word in enumerate(words)
    )


def _given(like: Sequence[int] | None, text: str) -> Sequence[int]:
    if like is None:
        raise ParameterError(
            f"symbolic_shape: {text!r} leaves extents out, and like is not given.",
            "Pass the shape that they are taken from: symbolic_shape('b, ...', like=x.shape).",
        )
    return like


def _is_ellipsis(word: ast.expr) -> bool:
    return isinstance(word, ast.Constant) and word.value is ...


def constraints_of(shapes: Sequence[Sequence[Extent]]) -> list[Constraint]:
    """Returns the constraints on the dimensions of some shapes."""
    scopes = {
        id(extent.scope): extent.scope
        for shape in shapes
        for extent in shape
        if isinstance(extent, SymbolicDim) and isinstance(extent.scope, SymbolicScope)
    }
    return list(dict.fromkeys(c for scope in scopes.values() for c in scope.constraints))


def solved(
    name: str,
    arguments: Sequence[str],
    wanted: Sequence[Sequence[Extent]],
    found: Sequence[Sequence[int]],
    constraints: Sequence[Constraint] = (),
) -> dict[str, int]:
    """Returns the sizes of the names in shapes, given the shapes of a call's arguments.

    Algorithm: as long as there is one, take an extent that is linear in a single unknown name, and
    solve it; then compare all extents.

    Args:
        name: The function's name.
        arguments: The names of its arguments.
        wanted: Their shapes, with symbolic dimensions.
        found: The shapes in the call.
        constraints: The constraints on the sizes.

    Raises:
        ShapeError: if no sizes of the names give these shapes, or a constraint does not hold.
    """
    for argument, shape, given in zip(arguments, wanted, found, strict=True):
        if len(shape) != len(given):
            raise ShapeError(
                f"{name}: the argument {argument!r} has shape {tuple(given)}, must have "
                f"{_text(shape)}.",
                f"Pass an array with {len(shape)} dimensions.",
            )
    sizes = sizes_in(wanted, found)
    unknown = {n for shape in wanted for extent in shape for n in names_of(extent)} - set(sizes)
    if unknown:
        raise ShapeError(
            f"{name}: the dimension {min(unknown)} does not follow from the shapes of arguments.",
            "Let it stand alone, or with a factor, in the shape of some argument.",
        )
    known = ", ".join(f"{n} = {size}" for n, size in sorted(sizes.items()))
    for argument, shape, given in zip(arguments, wanted, found, strict=True):
        _check_shape(name, argument, shape, given, sizes, known)
    check_sizes(name, sizes, constraints)
    return sizes


def check_sizes(name: str, sizes: Mapping[str, int], constraints: Sequence[Constraint]) -> None:
    """Raises a `ShapeError` if sizes are not positive, or a constraint does not hold."""
    known = ", ".join(f"{n} = {size}" for n, size in sorted(sizes.items()))
    for n, size in sizes.items():
        if size < 1:
            raise ShapeError(f"{name}: the dimension {n} is {size}.", "It must be at least 1.")
    for each in constraints:
        if not each.holds(sizes):
            raise ShapeError(
                f"{name}: the constraint {each.text!r} does not hold with {known}.",
                "Pass arrays of other sizes, or export the function without it.",
            )


def sizes_in(wanted: Sequence[Sequence[Extent]], found: Sequence[Sequence[int]]) -> dict[str, int]:
    """Returns the sizes of the names that follow from shapes, as far as they do.

    >>> sizes_in([symbolic_shape("2*b, t")], [(6, 5)])
    {'b': 3, 't': 5}
    """
    pairs = [p for w, f in zip(wanted, found, strict=True) for p in zip(w, f, strict=True)]
    sizes: dict[str, int] = {}
    while True:
        solutions = (_solution(extent, size, sizes) for extent, size in pairs)
        new = next((x for x in solutions if x is not None), None)
        if new is None:
            return sizes
        sizes[new[0]] = new[1]


def _check_shape(
    name: str,
    argument: str,
    shape: Sequence[Extent],
    given: Sequence[int],
    sizes: Mapping[str, int],
    known: str,
) -> None:
    for extent, size in zip(shape, given, strict=True):
        value = value_of(extent, sizes)
        if not is_same(value, size):
            with_sizes = f" with {known} {extent} is {value}, not" if known else ""
            raise ShapeError(
                f"{name}: the argument {argument!r} has shape {tuple(given)}, was exported with "
                f"{_text(shape)}:{with_sizes or f' {extent} is not'} {size}.",
                "Pass arrays whose shapes fit each other.",
            )


def _text(shape: Sequence[Extent]) -> str:
    return f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"


def _solution(extent: Extent, size: int, sizes: Mapping[str, int]) -> tuple[str, int] | None:
    """Solves an extent for its only unknown name; returns the name and its size, or None.

    The extent must be linear in the name.
    """
    unknown = set(names_of(extent)) - set(sizes)
    if len(unknown) != 1:
        return None
    (name,) = unknown
    assert isinstance(extent, SymbolicDim)
    within = [p for p in extent.terms if name in SymbolicDim(terms={p: 1}).names()]
    if any(p.count(name) != 1 or not all(isinstance(x, str) for x in p) for p in within):
        return None
    start, following = (value_of(extent, {**sizes, name: n}) for n in (0, 1))
    slope = following - start
    return (name, (size - start) // slope) if slope else None


def rows_in(shapes: Sequence[Sequence[Extent]]) -> SymbolicDim | None:
    """Returns the single name that occurs only as the first extent of shapes; else None.

    Such a dimension may be one of rows. Under constraints it is not, because then sizes matter.

    >>> rows_in([symbolic_shape("b, 3"), (2,)]), rows_in([symbolic_shape("b, b")])
    (b, None)
    """
    found = {extent for shape in shapes for extent in shape if isinstance(extent, SymbolicDim)}
    behind = {extent for shape in shapes for extent in shape[1:] if isinstance(extent, SymbolicDim)}
    is_simple = len(found) == 1 and not behind and all(extent.is_name for extent in found)
    return found.pop() if is_simple and not constraints_of(shapes) else None

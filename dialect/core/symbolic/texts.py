"""Symbolic dimensions as texts, and the constraints on their names.

An extent is written `2*b + 1`; constraints on its names stand behind a bar:
`b | b >= 8, mod(t, 4) == 0`. Elsewhere: shapes as users write them, and the sizes of names in a
call (`frontend/_arguments/symbolic_shapes.py`).
"""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from axir.dialect.core.annotations import Extent
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.symbolic_dims import SymbolicDim, names_of, operation, value_of

from .terms import OPERATIONS

_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Extent, Extent], bool]] = {
    ast.GtE: operator.ge,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.Lt: operator.lt,
    ast.Eq: operator.eq,
}
_SIGNS: Mapping[type[ast.cmpop], str] = {
    ast.GtE: ">=",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.Lt: "<",
    ast.Eq: "==",
}
_ARITHMETIC: Mapping[type[ast.operator], Callable[[Extent, Extent], Extent]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}


# Texts come from other people's files: without limits, powers and texts may have any size.
_MOST_POWER = 16
_MOST_LETTERS = 2000
_MOST_BITS = 64
_MOST_TERMS = 1000


@dataclass(frozen=True)
class Constraint:
    """A comparison that holds in all calls."""

    text: str
    comparison: type[ast.cmpop]
    left: Extent
    right: Extent

    @property
    def is_equality(self) -> bool:
        """Whether it says that two extents are equal."""
        return self.comparison is ast.Eq

    @property
    def names(self) -> set[str]:
        """The names in the constraint."""
        return {*names_of(self.left), *names_of(self.right)}

    @property
    def sign(self) -> str:
        """The sign of the comparison."""
        return _SIGNS[self.comparison]

    @property
    def positive(self) -> list[Extent]:
        """The extents that are not negative according to the constraint."""
        if self.is_equality:
            return [self.left - self.right, self.right - self.left]
        if self.comparison in (ast.GtE, ast.Gt):
            difference = self.left - self.right
        else:
            difference = self.right - self.left
        return [difference - (self.comparison in (ast.Gt, ast.Lt))]

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Tells whether the comparison holds for sizes of the names."""
        compare = _COMPARISONS[self.comparison]
        return compare(value_of(self.left, sizes), value_of(self.right, sizes))


class SymbolicScope:
    """Constraints on symbolic dimensions; `symbolic_shape(..., scope=...)` adds to them.

    Args:
        constraints_str: Comparisons such as `"b >= 8"`, `"mod(t, 4) == 0"`, `"m == 2*n"`.

    Attributes:
        constraints: The constraints.
        is_shared: Whether all extents with these constraints share it, so that it never gets
            others.

    Raises:
        ParameterError: if a text is not a comparison.

    >>> SymbolicScope(["b >= 8"]).constraints[0].text
    'b >= 8'
    """

    is_shared = False

    def __init__(self, constraints_str: Sequence[str] = ()):
        self.constraints: tuple[Constraint, ...] = tuple(map(constraint, constraints_str))

    @property
    def texts(self) -> tuple[str, ...]:
        """The constraints as texts."""
        return tuple([c.text for c in self.constraints])

    def adding(self, constraints_str: Sequence[str]) -> SymbolicScope:
        """Adds constraints; returns the scope with them: itself, or a new scope if it is shared.

        Raises:
            ParameterError: if a text is not a comparison.
        """
        if not constraints_str:
            return self
        if self.is_shared:
            return SymbolicScope((*self.texts, *constraints_str))
        self.constraints += tuple(map(constraint, constraints_str))
        return self


def constraint(text: str) -> Constraint:
    """Parses a text as a comparison.

    Raises:
        ParameterError: if the text does not have this form.
    """
    try:
        (found,) = expressions(text)
    except (ParameterError, ValueError):
        found = None
    match found:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARISONS:
            return Constraint(
                text, type(op), read_expression(left, text), read_expression(right, text)
            )
    raise ParameterError(
        f"symbolic_shape: the constraint {text!r} is no comparison of two extents.",
        "Write 'b >= 8', 'mod(t, 4) == 0' or 'm == 2*n'.",
    )


def expressions(text: str) -> list[ast.expr]:
    """Returns the expressions of a list of extents, perhaps in parentheses.

    Raises:
        ParameterError: if a text is not a list of extents.
    """
    if len(text) > _MOST_LETTERS:
        raise _no_extent(f"{text[:20]}...", f"{text[:20]}...")
    try:
        found = ast.parse(f"[{text.replace('^', '**')}]", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _no_extent(text, text) from None
    if not isinstance(found, ast.List):
        raise _no_extent(text, text)
    match found.elts:
        case [ast.Tuple(elts=elements)]:
            return elements
    return found.elts


def read_expression(word: ast.expr, text: str, scope: SymbolicScope | None = None) -> Extent:
    """Evaluates an expression as an extent.

    Args:
        word: The expression.
        text: The text that contains it, as shown in the error.
        scope: The constraints on its names.

    Raises:
        ParameterError: if it is not an extent.
    """
    try:
        return _read(word, text, scope)
    except RecursionError:
        raise _no_extent(f"{text[:20]}...", f"{text[:20]}...") from None


def _read(word: ast.expr, text: str, scope: SymbolicScope | None) -> Extent:
    match word:
        case ast.Constant(value=number) if type(number) is int:
            return number
        case ast.Name(id=name):
            return SymbolicDim(name, scope=scope)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return _read(inner, text, scope) * -1
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            a, b = _read(left, text, scope), _read(right, text, scope)
            if not isinstance(op, ast.Pow) or _is_small_power(a, b):
                return _ARITHMETIC[type(op)](a, b)
        case ast.Call(func=ast.Name(id=name), args=[left, right]) if name in OPERATIONS:
            return operation(name, _read(left, text, scope), _read(right, text, scope))
    raise _no_extent(ast.unparse(word), text)


def _is_small_power(base: Extent, power: Extent) -> bool:
    """Tells whether a power is small enough: powers of powers soon exceed the memory."""
    if not isinstance(power, int) or not 0 <= power <= _MOST_POWER:
        return False
    if isinstance(base, int):
        return base.bit_length() * power <= _MOST_BITS
    degree = max(map(len, base.terms), default=0)
    return degree * power <= _MOST_POWER and len(base.terms) ** power <= _MOST_TERMS


def _no_extent(word: str, text: str) -> ParameterError:
    return ParameterError(
        f"symbolic_shape: {word!r} in {text!r} is no extent.",
        "Write numbers, names, and what is computed of them by + - * // %, floordiv, mod, max and "
        "min: 'b, 2*t + 1, 3'.",
    )


@functools.lru_cache(1024)
def scope_of(texts: tuple[str, ...]) -> SymbolicScope | None:
    """Returns the one scope with given constraints; None without any.

    >>> scope_of(("b >= 8",)) is scope_of(("b >= 8",))
    True
    """
    if not texts:
        return None
    scope = SymbolicScope(texts)
    scope.is_shared = True
    return scope


def write_extent(dimension: Extent) -> str:
    """Returns an extent with the constraints on its names.

    >>> write_extent(read_extent("2*b + 1 | b >= 8"))
    '2*b + 1 | b >= 8'
    """
    constraints = getattr(dimension, "constraints", ())
    return f"{dimension} | {', '.join(constraints)}" if constraints else str(dimension)


@functools.lru_cache(4096)
def read_extent(text: str) -> Extent:
    """Parses an extent that `write_extent` wrote.

    Raises:
        ParameterError: if the text does not have this form.
    """
    written, _, conditions = text.partition("|")
    texts = tuple(map(ast.unparse, expressions(conditions))) if conditions.strip() else ()
    words = expressions(written)
    if len(words) != 1:
        raise _no_extent(written, text)
    return read_expression(words[0], text, scope_of(texts))


def with_constraints(dimension: Extent, texts: tuple[str, ...]) -> Extent:
    """Returns an extent with its constraints replaced by given ones.

    >>> with_constraints(SymbolicDim("b"), ("b >= 8",)) >= 8
    True
    """
    if not isinstance(dimension, SymbolicDim):
        return dimension
    return read_extent(
        " | ".join([str(dimension), ", ".join(texts)] if texts else [str(dimension)])
    )

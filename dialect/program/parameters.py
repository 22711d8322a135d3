"""Types of the parameters that ops declare, and tests of values against them.

A declaration maps names to types in Python's own notation: `bool`, `int`, `float`, `str`,
`numpy.dtype`, `Function`, tuples and named tuples of these, unions, and `Hashable` for values that
users choose, such as names of axes. Elsewhere: the text of values (`dialect/text`).
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Hashable, Iterator
from typing import Annotated, TypeAlias, TypeVar

import numpy as np

from axir.dialect.core.annotations import Foreign, Param
from axir.dialect.core.symbolic_dims import SymbolicDim

from .function import DeferredFunction, Function

Ints = tuple[int, ...]
AxisName = Hashable
# A function that is first called by differentiation; it may contain the op itself.
Deferrable = Function | DeferredFunction

# A type in the notation of annotations; type checkers have no type for it.
AnyKind: TypeAlias = Foreign

Kind = TypeVar("Kind")
_UNPRINTED = "unprinted"
# A parameter that a printed jaxpr leaves out.
Unprinted = Annotated[Kind, _UNPRINTED]


def alternatives(kind: AnyKind) -> tuple[AnyKind, ...]:
    """Returns the types that a union unites, or the type itself.

    >>> alternatives(int | None)
    (<class 'int'>, <class 'NoneType'>)
    """
    origin: AnyKind = typing.get_origin(kind)
    if origin is Annotated:
        return alternatives(kind.__origin__)
    is_union = origin in (typing.Union, types.UnionType)
    return typing.get_args(kind) if is_union else (kind,)


def is_printed(kind: AnyKind) -> bool:
    """Tells whether a jaxpr shows a parameter."""
    return _UNPRINTED not in getattr(kind, "__metadata__", ())


def is_named_tuple(kind: AnyKind) -> bool:
    """Tells whether a type is a class of named tuples.

    >>> is_named_tuple(Ints)
    False
    """
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")


def leaves(kind: AnyKind) -> Iterator[AnyKind]:
    """Yields the types that a type consists of.

    >>> list(leaves(tuple[tuple[int, str], ...] | None))
    [<class 'int'>, <class 'str'>, <class 'NoneType'>]
    """
    for alternative in alternatives(kind):
        items = [item for item in typing.get_args(alternative) if item is not ...]
        if typing.get_origin(alternative) is not tuple:
            yield alternative
        for item in items:
            yield from leaves(item)


def fits(kind: AnyKind) -> Callable[[Param], bool]:
    """Returns the test whether a value is of a type.

    An int also fits a float, but a bool does not fit a number.

    >>> fits(Ints)((0, 1)), fits(Ints)((0, True)), fits(float)(1)
    (True, False, True)
    """
    choices = alternatives(kind)
    if len(choices) > 1:
        checks = [fits(choice) for choice in choices]
        return lambda value: any(check(value) for check in checks)
    (kind,) = choices
    origin: AnyKind = typing.get_origin(kind)
    if origin is tuple:
        return _fits_tuple(typing.get_args(kind))
    if kind in (int, float):
        # An unknown extent may stand in place of an integer.
        numbers = (int, float) if kind is float else (int, SymbolicDim)
        return lambda value: isinstance(value, numbers) and not isinstance(value, bool)
    return lambda value: isinstance(value, origin or kind)


def _fits_tuple(items: tuple[AnyKind, ...]) -> Callable[[Param], bool]:
    checks = [fits(item) for item in items if item is not ...]
    if items[-1:] == (...,):
        return lambda value: isinstance(value, tuple) and all(map(checks[0], value))
    return lambda value: (
        isinstance(value, tuple)
        and len(value) == len(checks)
        and all(check(item) for check, item in zip(checks, value, strict=True))
    )


_NAMES: dict[AnyKind, str] = {type(None): "None", np.dtype: "dtype", ...: "..."}


def describe(kind: AnyKind) -> str:
    """Returns a type in the notation of annotations.

    >>> describe(Ints | None), describe(tuple[np.dtype, ...])
    ('tuple[int, ...] | None', 'tuple[dtype, ...]')
    """
    choices = alternatives(kind)
    if len(choices) > 1:
        return " | ".join(map(describe, choices))
    (kind,) = choices
    origin: AnyKind = typing.get_origin(kind)
    items = typing.get_args(kind)
    if origin is tuple:
        return f"tuple[{', '.join(map(describe, items))}]"
    kind = origin or kind
    return _NAMES.get(kind) or kind.__name__

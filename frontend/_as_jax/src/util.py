"""Names of `jax._src.util`: small functions on sequences."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from axir.api_util import safe_map
from axir.dialect.core.annotations import UserFunction, UserObject

__all__ = [
    "HashablePartial",
    "partition_list",
    "safe_map",
    "safe_zip",
    "split_list",
    "unzip2",
    "unzip3",
    "wraps",
]

Item = TypeVar("Item")


class HashablePartial:
    """A function with its first arguments and some by name, equal to another one of the same.

    Args:
        f: The function; functions with the same code are equal.
        *args: First arguments, hashable.
        **kwargs: Arguments by name, hashable.

    >>> HashablePartial(max, 3)(1, 2)
    3
    """

    def __init__(self, f: UserFunction, *args: UserObject, **kwargs: UserObject):
        self.f, self.args, self.kwargs = f, args, kwargs

    def _key(self) -> tuple[object, ...]:
        code = getattr(self.f, "__code__", self.f)
        return code, self.args, tuple(sorted(self.kwargs.items()))

    def __eq__(self, other: object) -> bool:
        return type(other) is HashablePartial and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __call__(self, *args: object, **kwargs: object) -> UserObject:
        return self.f(*self.args, *args, **self.kwargs, **kwargs)


def safe_zip(*sequences: Sequence[object]) -> list[tuple[UserObject, ...]]:
    """Returns the items of sequences of one length as tuples; ValueError if the lengths differ."""
    return list(zip(*sequences, strict=True))


def unzip2(pairs: Iterable[tuple[object, object]]) -> tuple[tuple[UserObject, ...], ...]:
    """Returns the first items of pairs, and the second ones."""
    return tuple(zip(*pairs, strict=True)) or ((), ())


def unzip3(triples: Iterable[Sequence[object]]) -> tuple[tuple[UserObject, ...], ...]:
    """Returns the first, the second and the third items of triples."""
    return tuple(zip(*triples, strict=True)) or ((), (), ())


def split_list(items: Sequence[Item], lengths: Sequence[int]) -> list[list[Item]]:
    """Returns the first items, the next ones, and so on, and the rest.

    >>> split_list([1, 2, 3, 4], [1, 2])
    [[1], [2, 3], [4]]
    """
    parts, start = [], 0
    for length in lengths:
        parts.append(list(items[start : start + length]))
        start += length
    return [*parts, list(items[start:])]


def partition_list(marks: Sequence[bool], items: Sequence[Item]) -> tuple[list[Item], list[Item]]:
    """Returns the unmarked items, and the marked items.

    >>> partition_list([True, False], ["a", "b"])
    (['b'], ['a'])
    """
    pairs = list(zip(items, marks, strict=True))
    return [x for x, mark in pairs if not mark], [x for x, mark in pairs if mark]


def wraps(
    wrapped: Callable[..., object], namestr: str | None = None, docstr: str | None = None
) -> Callable[[UserFunction], UserFunction]:
    """Gives a function the name and docstring of another one, or texts made of them.

    Args:
        wrapped: The other function.
        namestr: A format string that may mention `{fun}`, its name.
        docstr: A format string that may mention `{fun}` and `{doc}`, its docstring.
    """

    def named(function: Callable[..., object]) -> Callable[..., object]:
        functools.update_wrapper(function, wrapped)
        name = getattr(wrapped, "__name__", "<unnamed function>")
        if namestr is not None:
            function.__name__ = namestr.format(fun=name)
        if docstr is not None:
            function.__doc__ = docstr.format(fun=name, doc=wrapped.__doc__ or "")
        return function

    return named

"""Values derived from an object, made once and kept with it: `Memo`, and functions `@derived`.

Calling a function that is marked so returns the kept value; callers do not name keys.

Data about mutable objects that compare by content, such as MLIR's modules, are kept by their
identities (`ByIdentity`). The hash of a module depends on its attributes and location, so it
changes with these, and two modules without any have the same hash.

Elsewhere: threads that wait for one that makes a value (`single_flight.py`).
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Hashable
from typing import Concatenate, Generic, ParamSpec, Protocol, TypeVar

from .annotations import Made, Returning
from .single_flight import deep_recursion, made_once

Holder = TypeVar("Holder")
Value = TypeVar("Value")


class ByIdentity(Generic[Holder, Value]):
    """Values by the objects that they belong to, while these live.

    >>> class Module:
    ...     __hash__ = None
    >>> module, names = Module(), ByIdentity()
    >>> names.keep(module, "m")
    >>> names.get(module), names.get(Module())
    ('m', None)
    """

    def __init__(self) -> None:
        self._kept: dict[int, tuple[weakref.ref[Holder], Value]] = {}

    def keep(self, owner: Holder, value: Value) -> None:
        """Keeps a value of an object; replaces the previous value."""
        number = id(owner)

        def forget(reference: weakref.ref[Holder]) -> None:
            if number in self._kept and self._kept[number][0] is reference:
                del self._kept[number]

        self._kept[number] = weakref.ref(owner, forget), value

    def get(self, owner: Holder) -> Value | None:
        """Returns the data kept of an object; None if absent."""
        reference, value = self._kept.get(id(owner), (None, None))
        return value if reference is not None and reference() is owner else None


LIMIT = 256
"""How many values are kept with one owner. The oldest is forgotten, and made again if asked for."""


class Memo(dict[Hashable, Made]):
    """Values derived from its owner, by the functions that made them and the arguments of these.

    It lives as long as the owner, and holds at most `LIMIT` values.
    """

    __slots__ = ()

    def __setitem__(self, key: Hashable, value: Made) -> None:
        super().__setitem__(key, value)
        while len(self) > LIMIT:
            try:
                self.pop(next(iter(self)), None)
            except RuntimeError:  # another thread has just stored something
                continue


class Owner(Protocol):
    """An object that other values are derived from."""

    @property
    def derived(self) -> Memo:
        """The values derived so far."""
        ...


AnyOwner = TypeVar("AnyOwner", bound="Owner | tuple[Owner, ...]")
Arguments = ParamSpec("Arguments")


def derived(
    make: Callable[Concatenate[AnyOwner, Arguments], Value],
) -> Callable[Concatenate[AnyOwner, Arguments], Value]:
    """Keeps a function's results with its first argument, by the other arguments (a decorator).

    Threads that call it at the same time share one computation. The first argument may be a tuple
    of owners; the first of them keeps the result.

    Args:
        make: Takes hashable arguments, and never returns None.

    >>> class Text(str):
    ...     derived = Memo()
    >>> @derived
    ... def repeated(text, count):
    ...     return [text] * count
    >>> text = Text("a")
    >>> repeated(text, 2)
    ['a', 'a']
    >>> repeated(text, 2) is repeated(text, 2)
    True
    """
    return _kept(make, made_once)


def quickly_derived(
    make: Callable[Concatenate[AnyOwner, Arguments], Value],
) -> Callable[Concatenate[AnyOwner, Arguments], Value]:
    """Keeps results as `derived` does, but each thread makes its own (a decorator).

    It is meant for values that take no longer to make than to share.
    """
    return _kept(make, _make)


def _make(memo: Memo, key: Hashable, make: Callable[[], Made]) -> Made:
    with deep_recursion:  # kept values of a function need the kept values of its callees
        value = memo[key] = make()
    return value


def _kept(make: Returning[Made], obtain: Returning[Made]) -> Returning[Made]:
    @functools.wraps(make)
    def kept(owner: Made, *arguments: Hashable, **options: Hashable) -> Made:
        key: tuple[Hashable, ...] = (make, *arguments, *options.items())
        if type(owner) is tuple:
            memo, key = owner[0].derived, (owner, *key)
        else:
            memo = owner.derived
        value = memo.get(key)
        if value is not None:
            return value
        return obtain(memo, key, lambda: make(owner, *arguments, **options))

    return kept

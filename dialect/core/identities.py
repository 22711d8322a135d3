"""Data about mutable objects that compare by content; it is kept by their identities.

MLIR's modules are such objects. Their hash depends on their attributes and location, so it changes
with these, and two modules without any have the same hash. Elsewhere: values derived from axir's
own objects (`memo.py`).
"""

from __future__ import annotations

import weakref
from typing import Generic, TypeVar

Owner = TypeVar("Owner")
Value = TypeVar("Value")


class ByIdentity(Generic[Owner, Value]):
    """Values by the objects that they belong to, while these live.

    >>> class Module:
    ...     __hash__ = None
    >>> module, names = Module(), ByIdentity()
    >>> names.keep(module, "m")
    >>> names.get(module), names.get(Module())
    ('m', None)
    """

    def __init__(self) -> None:
        self._kept: dict[int, tuple[weakref.ref[Owner], Value]] = {}

    def keep(self, owner: Owner, value: Value) -> None:
        """Keeps a value of an object; replaces the previous value."""
        number = id(owner)

        def forget(reference: weakref.ref[Owner]) -> None:
            if number in self._kept and self._kept[number][0] is reference:
                del self._kept[number]

        self._kept[number] = weakref.ref(owner, forget), value

    def get(self, owner: Owner) -> Value | None:
        """Returns the data kept of an object; None if absent."""
        reference, value = self._kept.get(id(owner), (None, None))
        return value if reference is not None and reference() is owner else None

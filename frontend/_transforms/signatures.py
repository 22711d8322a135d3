"""The signature of a call by a fast walk over its arguments, and the tables of traced functions.

`tree.flatten` takes a microsecond for each leaf, as long as the rest of the call's work on the
leaf. So `jit` first tries this walk. It takes at most half the time for arguments made of lists,
tuples, named tuples, dictionaries, None, numbers and NumPy arrays. Elsewhere: flattening in general
(`_trees/`), the programs of a signature (`jit.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias, TypeVar

import numpy as np

from axir._trees import paths
from axir._trees.plain import order_of_keys
from axir.dialect.core.annotations import Options, UserObject
from axir.dialect.core.array import ConcreteArray, as_array
from axir.dialect.core.config import config
from axir.dialect.core.errors import AxirError

AsNumber: TypeAlias = Callable[[complex], ConcreteArray]

# Stands before the names of keyword arguments, which are no dictionary among the others.
_KEYWORDS = object()
_HOST_KINDS = frozenset((bool, int, float, complex, np.ndarray))
# Numbers as arrays: one that programs are called with again and again lies on the device.
_numbers: dict[tuple[type, complex, bool], ConcreteArray] = {}
_NUMBER_LIMIT = 256


def signature(
    args: tuple[object, ...],
    kwargs: dict[str, Options],
    static: object,
    as_number: AsNumber = as_array,
) -> tuple[tuple[UserObject, ...] | None, list[ConcreteArray]]:
    """Returns the key of a call, and the leaves in tree order.

    Args:
        args: Positional arguments that are not static.
        kwargs: Keyword arguments that are not static.
        static: The key of the static arguments, hashable.
        as_number: Makes arrays of numbers: `kept_number`, unless the call donates them.

    Returns:
        The signature, which is hashable and depends on the options, and the leaves as arrays. The
        type of a committed array is followed by its placement. The signature is None for arguments
        that only `tree.flatten` knows, and tracers.

    >>> x = as_array(1.0)
    >>> key, leaves = signature(({"b": x, "a": [x, None]},), {}, None)
    >>> key[2:]
    (<class 'dict'>, ('a', 'b'), <class 'list'>, 2, ShapedArray(float32[], weak_type=True), \
None, ShapedArray(float32[], weak_type=True))
    >>> signature((object(),), {}, None)[0] is None
    True
    """
    key: list[UserObject] = [config.cache_key, static]
    leaves: list[ConcreteArray] = []
    for x in args:
        if type(x) is ConcreteArray:
            key.append(x.type)
            if x._device is not None:
                key.append(x._device)
            leaves.append(x)
        elif not _walk(x, key, leaves, as_number):
            return None, leaves
    if kwargs:
        key.append(_KEYWORDS)
        if not _walk(kwargs, key, leaves, as_number):
            return None, leaves
    return tuple(key), leaves


def _walk(
    x: UserObject, key: list[object], leaves: list[ConcreteArray], as_number: AsNumber
) -> bool:
    """Adds an object that is no array; returns False for an unknown kind."""
    kind = type(x)
    if kind is dict:
        children = _values(x, key)
    elif kind is list or kind is tuple:
        key += (kind, len(x))
        children = x
    else:
        children = _children(x, kind, key, leaves, as_number)
    if children is None:
        return False
    for child in children:
        if type(child) is ConcreteArray:
            key.append(child.type)
            if child._device is not None:
                key.append(child._device)
            leaves.append(child)
        elif not _walk(child, key, leaves, as_number):
            return False
    return True


def _values(x: dict[UserObject, UserObject], key: list[UserObject]) -> UserObject:
    """Returns the values of a dictionary in the tree's order, or None if that is not known."""
    names = tuple(x)
    order = order_of_keys(names)
    if order is None:
        return None
    key += (dict, order)
    return x.values() if order == names else [x[name] for name in order]


def _children(
    x: UserObject,
    kind: type,
    key: list[object],
    leaves: list[ConcreteArray],
    as_number: AsNumber,
) -> UserObject:
    """Returns the children of a container of another kind, or None for an unknown kind."""
    if x is None:
        key.append(None)
        return ()
    if kind in _HOST_KINDS:
        try:
            array = as_array(x) if kind is np.ndarray else as_number(x)
        except (AxirError, OverflowError, TypeError, ValueError):
            return None  # the general flattening names the argument in its error
        key.append(array.type)
        leaves.append(array)
        return ()
    if paths.is_named_tuple(kind):
        key.append(kind)
        return x
    return None


def kept_number(x: complex) -> ConcreteArray:
    """Returns a number as an array that other calls have, too, and that lies on the device then."""
    is_guarded = config.jax_transfer_guard or config.jax_transfer_guard_host_to_device
    if not x or type(x) is complex or is_guarded:
        return as_array(x)  # zeros have two signs and are equal, as are parts of complex numbers
    key = (type(x), x, config.jax_enable_x64)
    array = _numbers.get(key)
    if array is None:
        array = as_array(x)
        if len(_numbers) >= _NUMBER_LIMIT:
            _numbers.clear()
        _numbers[key] = array
    return array


# Tables of traced functions -----------------------------------------------------------------------


class Table(Protocol):
    """An object that can be emptied."""

    def clear(self) -> None:
        """Empties it."""
        ...


_Table = TypeVar("_Table", bound=Table)
_tables: list[Table] = []


def cleared_with_caches(table: _Table) -> _Table:
    """Returns a table, which `clear_tables` will empty from now on."""
    _tables.append(table)
    return table


def clear_tables() -> None:
    """Empties all tables."""
    for table in _tables:
        table.clear()

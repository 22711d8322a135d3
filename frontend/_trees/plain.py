"""Trees of Python's built-in containers; optree would take a microsecond for each node.

Elsewhere: flattening, and all functions that need a structure (`tree.py`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from axir.dialect.core.annotations import PyTree, Tree, UserFunction, UserObject
from axir.dialect.core.array import ConcreteArray

# Types without children; registering a class removes it here.
LEAF_KINDS: set[type] = {bool, int, float, complex, str, np.ndarray, ConcreteArray}
# The order of a tree's children for dictionaries with given keys.
_orders: dict[tuple[UserObject, ...], tuple[UserObject, ...]] = {}
_ORDER_LIMIT = 4096
# The deepest level that is walked here; Python's stack is smaller than optree's.
_DEEPEST = 100


def order_of_keys(names: tuple[object, ...]) -> tuple[UserObject, ...] | None:
    """Returns a dictionary's keys in the order of a tree, or None unless all are strings.

    >>> order_of_keys(("b", "a")), order_of_keys((1, True))
    (('a', 'b'), None)
    """
    order = _orders.get(names)
    if order is not None:
        return order
    if not all(type(name) is str for name in names):
        return None  # 1 and True are one key, but not one argument
    if len(_orders) >= _ORDER_LIMIT:
        _orders.clear()
    order = _orders[names] = tuple(sorted(names))
    return order


def map_plain(
    f: Callable[..., object],
    tree: Tree,
    map_others: Callable[[UserFunction, PyTree], PyTree],
    depth: int = 0,
) -> PyTree:
    """Applies a function to the leaves of a tree.

    Args:
        f: The function.
        tree: The tree.
        map_others: Does the same for parts of the tree of other kinds, or at deeper levels.
        depth: The depth of the tree in an outer one.

    >>> map_plain(lambda x: x + 1, {"b": 1, "a": (2, None)}, lambda f, part: f(part))
    {'a': (3, None), 'b': 2}
    """
    if type(tree) in LEAF_KINDS:
        return f(tree)
    return None if tree is None else _map_container(f, tree, map_others, depth)


def _map_container(
    f: Callable[..., object],
    tree: PyTree,
    map_others: Callable[[Callable[..., object], Tree], Tree],
    depth: int,
) -> Tree:
    """Does so for a tree that is neither a known leaf nor None."""
    kind = type(tree)
    if depth >= _DEEPEST:
        return map_others(f, tree)
    depth += 1
    # Most children are leaves, which need no call of this function.
    if kind is list or kind is tuple:
        mapped = []
        for x in tree:
            if type(x) in LEAF_KINDS:
                mapped.append(f(x))
            else:
                mapped.append(None if x is None else _map_container(f, x, map_others, depth))
        return mapped if kind is list else tuple(mapped)
    order = order_of_keys(tuple(tree)) if kind is dict else None
    if order is None:
        return map_others(f, tree)
    made = {}
    for key in order:
        x = tree[key]
        if type(x) in LEAF_KINDS:
            made[key] = f(x)
        else:
            made[key] = None if x is None else _map_container(f, x, map_others, depth)
    return made

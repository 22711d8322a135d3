"""Trees of Python's own containers, walked here: optree takes a microsecond for each node.

What does not live here: flattening, and all that needs a structure (`tree.py`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from axir.dialect.core.annotations import PyTree, UserFunction, UserObject
from axir.dialect.core.array import ConcreteArray

# What holds no children; registration takes out what it makes a container.
LEAF_KINDS: set[type] = {bool, int, float, complex, str, np.ndarray, ConcreteArray}
# The order in which a tree has the entries of dictionaries with given keys.
_orders: dict[tuple[UserObject, ...], tuple[UserObject, ...]] = {}
_ORDER_LIMIT = 4096
# Levels that are walked here; Python has no stack for as many as optree goes down.
_DEEPEST = 100


def order_of_keys(names: tuple[UserObject, ...]) -> tuple[UserObject, ...] | None:
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
    f: UserFunction,
    tree: PyTree,
    map_others: Callable[[UserFunction, PyTree], PyTree],
    depth: int = 0,
) -> PyTree:
    """Applies a function to the leaves of a tree.

    Args:
        f: The function.
        tree: The tree.
        map_others: Does so for parts of the tree that are of kinds not known here, or far down.
        depth: Of the tree in another one.

    >>> map_plain(lambda x: x + 1, {"b": 1, "a": (2, None)}, lambda f, part: f(part))
    {'a': (3, None), 'b': 2}
    """
    kind = type(tree)
    if kind in LEAF_KINDS:
        return f(tree)
    if tree is None:
        return None
    order: tuple[UserObject, ...] = ()
    if kind is dict:
        known = order_of_keys(tuple(tree))
        if known is None:
            return map_others(f, tree)
        order, children = known, [tree[key] for key in known]
    elif kind is list or kind is tuple:
        children = tree
    else:
        return map_others(f, tree)
    if depth >= _DEEPEST:
        return map_others(f, tree)
    # Most children are leaves, which need no call of this function.
    mapped = [
        f(x) if type(x) in LEAF_KINDS else map_plain(f, x, map_others, depth + 1) for x in children
    ]
    if kind is list:
        return mapped
    return tuple(mapped) if kind is tuple else dict(zip(order, mapped, strict=True))

"""Functions on trees under their long names, as in `jax.tree_util`; the short ones are `axir.tree`.

>>> from axir import tree_util
>>> tree_util.tree_map(lambda x: 2 * x, {"a": 1, "b": (2, None)})
{'a': 2, 'b': (4, None)}
"""

from __future__ import annotations

import functools
from typing import Any

from axir.tree import TreeDef as PyTreeDef
from axir.tree import all as tree_all
from axir.tree import (
    all_leaves,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_static,
)
from axir.tree import flatten as tree_flatten
from axir.tree import flatten_with_path as tree_flatten_with_path
from axir.tree import leaves as tree_leaves
from axir.tree import leaves_with_path as tree_leaves_with_path
from axir.tree import map as tree_map
from axir.tree import map_with_path as tree_map_with_path
from axir.tree import reduce as tree_reduce
from axir.tree import structure as tree_structure
from axir.tree import transpose as tree_transpose
from axir.tree import unflatten as tree_unflatten

__all__ = [
    "Partial",
    "PyTreeDef",
    "all_leaves",
    "build_tree",
    "keystr",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_static",
    "tree_all",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_multimap",
    "tree_reduce",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
    "treedef_is_leaf",
    "treedef_tuple",
]

tree_multimap = tree_map


class Partial(functools.partial):
    """A `functools.partial` that is a container of trees: its arguments are children.

    >>> import axir
    >>> add = Partial(lambda x, y: x + y, 1.0)
    >>> float(axir.jit(lambda f: f(2.0))(add))
    3.0
    """


register_pytree_node(
    Partial,
    lambda p: ((p.args, p.keywords), p.func),
    lambda function, children: Partial(function, *children[0], **children[1]),
)


def build_tree(treedef: PyTreeDef, xs: Any) -> Any:
    """Rebuilds a tree from its structure and leaves."""
    return treedef.unflatten(xs)


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Tells whether a structure is that of a single leaf."""
    return treedef.is_leaf()


def treedef_tuple(treedefs: Any) -> PyTreeDef:
    """Returns the structure of a tuple of trees with given structures."""
    subtrees = [t.unflatten(range(t.num_leaves)) for t in treedefs]
    return tree_structure(tuple(subtrees))


def keystr(keys: Any) -> str:
    """Renders a path of `tree_flatten_with_path` as Python would write it: `[0]['w'].b`."""
    return keys.codify("")


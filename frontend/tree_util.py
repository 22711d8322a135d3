"""Functions on trees under their long names, as in `jax.tree_util`; the short ones are `axir.tree`.

>>> from axir import tree_util
>>> tree_util.tree_map(lambda x: 2 * x, {"a": 1, "b": (2, None)})
{'a': 2, 'b': (4, None)}
"""

from __future__ import annotations

from axir._trees.paths import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyEntry,
    KeyPath,
    SequenceKey,
    children_with_keys,
    is_tree_node,
    keystr,
)
from axir._trees.registration import (
    Partial,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
)
from axir._trees.tree import TreeDef as PyTreeDef
from axir._trees.tree import all as tree_all
from axir._trees.tree import all_leaves
from axir._trees.tree import broadcast as tree_broadcast
from axir._trees.tree import flatten as tree_flatten
from axir._trees.tree import flatten_with_path as tree_flatten_with_path
from axir._trees.tree import leaves as tree_leaves
from axir._trees.tree import leaves_with_path as tree_leaves_with_path
from axir._trees.tree import map as tree_map
from axir._trees.tree import map_with_path as tree_map_with_path
from axir._trees.tree import reduce as tree_reduce
from axir._trees.tree import reduce_associative as tree_reduce_associative
from axir._trees.tree import structure as tree_structure
from axir._trees.tree import transpose as tree_transpose
from axir._trees.tree import unflatten as tree_unflatten
from axir.dialect.core.annotations import PyTree, Tree, UserObject

__all__ = [
    "DictKey", "FlattenedIndexKey", "GetAttrKey", "KeyEntry", "KeyPath", "Partial", "PyTreeDef",
    "SequenceKey", "all_leaves", "build_tree", "default_registry", "flatten_one_level",
    "flatten_one_level_with_keys", "is_tree_node", "keystr", "register_dataclass",
    "register_pytree_node", "register_pytree_node_class", "register_pytree_with_keys",
    "register_pytree_with_keys_class", "register_static", "tree_all", "tree_broadcast",
    "tree_flatten", "tree_flatten_with_path", "tree_leaves", "tree_leaves_with_path", "tree_map",
    "tree_map_with_path", "tree_multimap", "tree_reduce", "tree_reduce_associative",
    "tree_structure", "tree_transpose", "tree_unflatten", "treedef_children", "treedef_is_leaf",
    "treedef_tuple",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


tree_multimap = tree_map


def build_tree(treedef: PyTreeDef, xs: PyTree) -> PyTree:
    """Rebuilds a tree from its structure and leaves."""
    return treedef.unflatten(xs)


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Tells whether a structure is a single leaf."""
    return treedef.is_leaf()


def treedef_tuple(treedefs: PyTree) -> PyTreeDef:
    """Returns the structure of a tuple of trees with given structures."""
    subtrees = [t.unflatten(range(t.num_leaves)) for t in treedefs]
    return tree_structure(tuple(subtrees))


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """Returns the structures of the children of a container with a given structure.

    >>> [child.num_leaves for child in treedef_children(tree_structure((1, (2, 3))))]
    [1, 2]
    """
    return list(treedef.children())


def flatten_one_level(tree: Tree) -> tuple[list[PyTree], UserObject]:
    """Returns the children of a container, and its auxiliary data.

    Raises:
        ValueError: if the value is a leaf.

    >>> flatten_one_level({"b": (1, 2), "a": 3})[0]
    [3, (1, 2)]
    """
    pairs, auxiliary = flatten_one_level_with_keys(tree)
    return [child for _, child in pairs], auxiliary


def flatten_one_level_with_keys(tree: Tree) -> tuple[list[tuple[UserObject, PyTree]], UserObject]:
    """Returns the pairs of key and child of a container, and its auxiliary data.

    Raises:
        ValueError: if the value is a leaf.

    >>> flatten_one_level_with_keys([5])[0]
    [(SequenceKey(idx=0), 5)]
    """
    return children_with_keys(tree)


class _Registry:
    """The classes that are containers of trees, as an object: there is one registry.

    >>> default_registry.flatten_one_level((1, [2, 3]))
    ([1, [2, 3]], None)
    """

    flatten = staticmethod(tree_flatten)
    flatten_with_path = staticmethod(tree_flatten_with_path)
    register_node = staticmethod(register_pytree_node)

    def flatten_one_level(self, x: Tree) -> tuple[list[Tree], object] | None:
        """Returns the children of a container and its auxiliary data; None for a leaf."""
        found = self.flatten_one_level_with_keys(x)
        return None if found is None else ([child for _, child in found[0]], found[1])

    def flatten_one_level_with_keys(
        self, x: Tree
    ) -> tuple[list[tuple[object, Tree]], object] | None:
        """Returns the pairs of key and child, and the auxiliary data; None for a leaf."""
        try:
            return flatten_one_level_with_keys(x)
        except ValueError:
            return None


default_registry = _Registry()

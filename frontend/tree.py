"""The one adapter to optree, with JAX's notion of a tree.

Trees are dicts (keys sorted), lists, tuples, named tuples, OrderedDicts, defaultdicts, None (a node
without leaves), and classes registered here. Public names stand in `axir.tree_util` and
`axir.tree`.
"""

from __future__ import annotations

import builtins
import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import optree
from optree import PyTreeSpec

from axir.dialect.errors import TreeError

_NAMESPACE = "axir"
TreeDef = PyTreeSpec


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], TreeDef]:
    """Flattens a tree.

    Returns:
        The leaves, and the structure, which is hashable and has `unflatten(leaves)`.

    >>> leaves, structure = flatten({"b": 1, "a": (2, None)})
    >>> leaves, structure.unflatten([20, 10])
    ([2, 1], {'b': 10, 'a': (20, None)})
    """
    return optree.tree_flatten(tree, is_leaf, namespace=_NAMESPACE)


def unflatten(treedef: TreeDef, leaves: Iterable[Any]) -> Any:
    """Rebuilds a tree from its structure and leaves."""
    return treedef.unflatten(leaves)


def leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """Returns the leaves of a tree."""
    return optree.tree_leaves(tree, is_leaf, namespace=_NAMESPACE)


def structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeDef:
    """Returns the structure of a tree."""
    return flatten(tree, is_leaf)[1]


def map(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Applies a function to the leaves of trees of one structure.

    >>> map(lambda x, y: x + y, {"a": 1}, {"a": 2})
    {'a': 3}
    """
    first, spec = flatten(tree, is_leaf)
    columns = [first, *(flatten_like(spec, other, "tree map") for other in rest)]
    return spec.unflatten([f(*row) for row in zip(*columns, strict=True)])


def flatten_like(spec: TreeDef, tree: Any, what: str) -> list[Any]:
    """Flattens a tree up to the leaves of a structure, which may be a prefix of its own.

    Raises:
        TreeError: if the tree does not have that structure.
    """
    try:
        return spec.flatten_up_to(tree)
    except (ValueError, TypeError, KeyError) as error:
        raise TreeError(
            f"{what}: the trees do not match: expected {spec}, got {structure(tree)}. {error}",
            "Give both the same nesting of containers.",
        ) from None


def broadcast_prefix(prefix: Any, tree: Any, what: str) -> list[Any]:
    """Spreads the leaves of a prefix tree (None is a leaf of it) over the leaves of a tree.

    >>> broadcast_prefix((0, None), ({"a": 1, "b": 2}, 3), "in_axes")
    [0, 0, None]

    Raises:
        TreeError: if the prefix does not fit the tree.
    """
    result: list[Any] = []

    def spread(entry: Any, subtree: Any) -> None:
        result.extend([entry] * len(leaves(subtree)))

    prefix_leaves, prefix_spec = optree.tree_flatten(
        prefix, lambda x: x is None, none_is_leaf=True, namespace=_NAMESPACE
    )[:2]
    try:
        subtrees = prefix_spec.flatten_up_to(tree)
    except (ValueError, TypeError, KeyError) as error:
        raise TreeError(
            f"{what} {prefix!r} is not a prefix of the tree {structure(tree)}: {error}",
            f"Each entry of {what} must stand for one value, or for a whole container.",
        ) from None
    for entry, subtree in zip(prefix_leaves, subtrees, strict=True):
        spread(entry, subtree)
    return result


def paths(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[str]:
    """Returns for each leaf how Python would reach it: `[0]['w']`."""
    accessors = optree.tree_accessors(tree, is_leaf, namespace=_NAMESPACE)
    return [accessor.codify("") for accessor in accessors]


def flatten_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[tuple[Any, Any]], TreeDef]:
    """Flattens a tree to pairs of path and leaf; `tree_util.keystr(path)` renders a path."""
    values, spec = flatten(tree, is_leaf)
    accessors = optree.tree_accessors(tree, is_leaf, namespace=_NAMESPACE)
    return list(zip(accessors, values, strict=True)), spec


def leaves_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> list[tuple[Any, Any]]:
    """Returns the pairs of path and leaf of a tree.

    >>> [leaf for path, leaf in leaves_with_path({"a": 1, "b": (2,)})]
    [1, 2]
    """
    return flatten_with_path(tree, is_leaf)[0]


def map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Applies a function to path and leaf (and the leaves of further trees)."""
    pairs, spec = flatten_with_path(tree, is_leaf)
    columns = [flatten_like(spec, other, "tree map") for other in rest]
    rows = zip(pairs, *columns, strict=True)
    return spec.unflatten([f(path, leaf, *others) for (path, leaf), *others in rows])


_NOTHING = object()


def reduce(
    function: Callable[[Any, Any], Any],
    tree: Any,
    initializer: Any = _NOTHING,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Combines the leaves of a tree from the left.

    >>> reduce(lambda x, y: x + y, {"a": 1, "b": (2, 3)})
    6
    """
    values = leaves(tree, is_leaf)
    if initializer is _NOTHING:
        return functools.reduce(function, values)
    return functools.reduce(function, values, initializer)


def all(tree: Any, *, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Tells whether all leaves are true."""
    return builtins.all(leaves(tree, is_leaf))


def all_leaves(iterable: Iterable[Any], is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Tells whether none of the values is a container."""
    return optree.all_leaves(iterable, is_leaf, namespace=_NAMESPACE)


def transpose(
    outer_treedef: TreeDef, inner_treedef: TreeDef, pytree_to_transpose: Any
) -> Any:
    """Turns a tree of trees inside out."""
    subtrees = outer_treedef.flatten_up_to(pytree_to_transpose)
    rows = [inner_treedef.flatten_up_to(subtree) for subtree in subtrees]
    columns = zip(*rows, strict=True) if rows else [()] * inner_treedef.num_leaves
    return inner_treedef.unflatten([outer_treedef.unflatten(column) for column in columns])


def register_pytree_node(
    node_type: type,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_func: Callable[[Any, Sequence[Any]], Any],
) -> None:
    """Makes a class a container of trees.

    Args:
        node_type: The class.
        flatten_func: From an instance to its children and hashable auxiliary data.
        unflatten_func: From auxiliary data and children to an instance.
    """
    optree.register_pytree_node(
        node_type,
        flatten_func,
        unflatten_func,  # type: ignore[arg-type]
        namespace=_NAMESPACE,
    )


def register_pytree_node_class(cls: type) -> type:
    """Makes a class with `tree_flatten` and `tree_unflatten` a container of trees (a decorator)."""
    register_pytree_node(cls, lambda x: x.tree_flatten(), cls.tree_unflatten)  # type: ignore[attr-defined]
    return cls


def register_dataclass(
    nodetype: type, data_fields: Sequence[str] | None = None, meta_fields: Sequence[str] = ()
) -> type:
    """Makes a dataclass a container of trees (also usable as a decorator).

    Args:
        nodetype: The dataclass.
        data_fields: Fields that are children; by default all that are not in `meta_fields` and
            not marked `field(metadata={"static": True})`.
        meta_fields: Fields that are hashable auxiliary data.
    """
    if data_fields is None:
        static = {
            f.name
            for f in dataclasses.fields(nodetype)
            if f.metadata.get("static", False) or f.name in meta_fields
        }
        names = [f.name for f in dataclasses.fields(nodetype) if f.init]
        data_fields = [name for name in names if name not in static]
        meta_fields = [name for name in names if name in static]
    data, meta = tuple(data_fields), tuple(meta_fields)

    def flatten_func(instance: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        children = tuple(getattr(instance, name) for name in data)
        return children, tuple(getattr(instance, name) for name in meta)

    def unflatten_func(auxiliary: Any, children: Sequence[Any]) -> Any:
        return nodetype(
            **dict(zip(data, children, strict=True)), **dict(zip(meta, auxiliary, strict=True))
        )

    register_pytree_node(nodetype, flatten_func, unflatten_func)
    return nodetype


def register_static(cls: type) -> type:
    """Makes a hashable class a container without children (a decorator)."""
    register_pytree_node(cls, lambda x: ((), x), lambda x, children: x)
    return cls

"""Paths to the leaves of a tree, made of keys, and flattening with paths.

A path is a tuple with a key for each container on the way. Elsewhere: flattening without paths, and
registration of classes (`tree.py`).
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import optree

from axir.dialect.core.annotations import Tree, UserObject

NAMESPACE = "axir"

# For registered classes `instance -> (pairs of key and child, auxiliary data)`.
KEYED: dict[
    type, Callable[[UserObject], tuple[Iterable[tuple[UserObject, UserObject]], UserObject]]
] = {}


class KeyEntry(Protocol):
    """A key of a path: hashable, comparable, and rendered by `str`."""

    def __hash__(self) -> int:
        """Hashes the key."""
        ...

    def __eq__(self, other: object) -> bool:
        """Compares keys."""
        ...


KeyPath = tuple[KeyEntry, ...]


@dataclass(frozen=True)
class SequenceKey:
    """The place of a child of a list or tuple.

    >>> str(SequenceKey(0))
    '[0]'
    """

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


@dataclass(frozen=True)
class DictKey:
    """The key of a child of a dict.

    >>> str(DictKey("a"))
    "['a']"
    """

    key: UserObject

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclass(frozen=True)
class GetAttrKey:
    """The attribute of a named tuple, a dataclass or another registered class.

    >>> str(GetAttrKey("weight"))
    '.weight'
    """

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@dataclass(frozen=True)
class FlattenedIndexKey:
    """The number of a child of a class that was registered without keys.

    >>> str(FlattenedIndexKey(2))
    '[<flat index 2>]'
    """

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """Renders a path as Python would reach the leaf: `[0]['w'].b`.

    Args:
        keys: The path.
        simple: Whether to render only the keys, without brackets, quotes and dots.
        separator: What to put between keys.

    >>> path = (SequenceKey(0), DictKey("w"))
    >>> keystr(path), keystr(path, simple=True, separator="/")
    ("[0]['w']", '0/w')
    """
    return separator.join(map(_plain if simple else str, keys))


def _plain(key: object) -> str:
    for kind, attribute in (
        (SequenceKey, "idx"),
        (DictKey, "key"),
        (GetAttrKey, "name"),
        (FlattenedIndexKey, "key"),
    ):
        if isinstance(key, kind):
            return str(getattr(key, attribute))
    return str(key)


def is_tree_node(typ: type) -> bool:
    """Tells whether instances of a class are containers of trees.

    >>> is_tree_node(list), is_tree_node(int)
    (True, False)
    """
    registered = optree.register_pytree_node.get(typ, namespace=NAMESPACE)
    return registered is not None or optree.is_namedtuple_class(typ)


@functools.lru_cache(maxsize=4096)
def is_named_tuple(kind: type) -> bool:
    """Tells whether trees take objects of a class as named tuples, and not as registered."""
    entry = optree.register_pytree_node.get(kind, namespace=NAMESPACE)
    return entry is not None and entry.kind is optree.PyTreeKind.NAMEDTUPLE


def children_with_keys(node: UserObject) -> tuple[list[tuple[UserObject, UserObject]], UserObject]:
    """Returns the pairs of key and child of a container, and its auxiliary data.

    Raises:
        ValueError: if the value is no container.
    """
    describe = KEYED.get(type(node))
    if describe is not None:
        pairs, auxiliary = describe(node)
        return list(pairs), auxiliary
    children, auxiliary, entries, _ = optree.tree_flatten_one_level(node, namespace=NAMESPACE)
    if isinstance(node, dict):
        keys: list[UserObject] = [DictKey(entry) for entry in entries]
    elif is_named_tuple(type(node)):  # type: ignore[arg-type]
        keys = [GetAttrKey(name) for name in node._fields]
    elif type(node) in (list, tuple, deque):
        keys = [SequenceKey(index) for index in range(len(children))]
    else:
        keys = [FlattenedIndexKey(index) for index in range(len(children))]
    return list(zip(keys, children, strict=True)), auxiliary


def leaves_and_paths(
    tree: Tree, is_leaf: Callable[..., bool] | None, is_leaf_takes_path: bool
) -> Iterator[tuple[KeyPath, UserObject]]:
    """Yields the pairs of path and leaf of a tree.

    Args:
        tree: The tree.
        is_leaf: Tells which values are leaves though they are containers.
        is_leaf_takes_path: Whether it takes the path before the value.
    """

    def walk(node: UserObject, path: KeyPath) -> Iterator[tuple[KeyPath, object]]:
        if is_leaf is not None:
            found = is_leaf(path, node) if is_leaf_takes_path else is_leaf(node)
            if found:
                yield path, node
                return
        if optree.tree_is_leaf(node, namespace=NAMESPACE):
            yield path, node
            return
        for key, child in children_with_keys(node)[0]:
            yield from walk(child, (*path, key))

    return walk(tree, ())

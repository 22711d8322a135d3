"""Names of `jax._src.tree_util`: the public ones, and which classes are containers."""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import partial
from typing import NamedTuple, TypeAlias

import optree

from axir._trees.paths import NAMESPACE
from axir.dialect.core.annotations import Foreign, Tree, UserFunction
from axir.tree_util import *  # noqa: F403
from axir.tree_util import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey
from axir.tree_util import flatten_one_level as flatten_one_level


class RegistryEntry(NamedTuple):
    """How containers of a class are flattened and rebuilt.

    Attributes:
        to_iter: From a container to its children and its auxiliary data.
        from_iter: From the auxiliary data, and children, to a container.
    """

    to_iter: UserFunction
    from_iter: UserFunction


class _Registry(Container[type]):
    """The classes that are containers of trees."""

    def __contains__(self, kind: object) -> bool:
        known: Foreign = optree.register_pytree_node.get
        return kind in known(namespace=NAMESPACE)

    def __getitem__(self, kind: type) -> RegistryEntry:
        if kind is dict:  # optree keeps its keys in an object that cannot be hashed
            return RegistryEntry(
                lambda x: (tuple(x[key] for key in sorted(x)), tuple(sorted(x))),
                lambda keys, children: dict(zip(keys, children, strict=True)),
            )
        known: Foreign = optree.register_pytree_node.get
        entry = known(namespace=NAMESPACE)[kind]

        def to_iter(container: Tree) -> tuple[Tree, object]:
            children, auxiliary, *_ = entry.flatten_func(container)
            return tuple(children), auxiliary

        return RegistryEntry(to_iter, entry.unflatten_func)


_registry = _Registry()
# The key of a child in one of JAX's own containers.
BuiltInKeyEntry: TypeAlias = SequenceKey | DictKey | GetAttrKey | FlattenedIndexKey

# Returns the reasons that a tree is no prefix of another: functions that make an error, given a
# name.
prefix_errors: Callable[..., list[Callable[[str], ValueError]]] = partial(
    optree.prefix_errors, namespace=NAMESPACE
)

"""Names of `jax._src.tree_util`: the public ones, and which classes are containers."""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import partial

import optree

from axir._trees.paths import NAMESPACE
from axir.dialect.core.annotations import Foreign
from axir.tree_util import *  # noqa: F403
from axir.tree_util import flatten_one_level as flatten_one_level


class _Registry(Container[type]):
    """The classes that are containers of trees."""

    def __contains__(self, kind: object) -> bool:
        known: Foreign = optree.register_pytree_node.get
        return kind in known(namespace=NAMESPACE)


_registry = _Registry()

# What keeps a tree from being a prefix of another: functions that make an error of its name.
prefix_errors: Callable[..., list[Callable[[str], ValueError]]] = partial(
    optree.prefix_errors, namespace=NAMESPACE
)

"""Names of `jax._src.tree_util`: the public ones, and which classes are containers."""

from __future__ import annotations

from collections.abc import Container

import optree

from axir._trees.paths import NAMESPACE
from axir.tree_util import *  # noqa: F403
from axir.tree_util import flatten_one_level as flatten_one_level


class _Registry(Container[type]):
    """The classes that are containers of trees."""

    def __contains__(self, kind: object) -> bool:
        return kind in optree.register_pytree_node.get(namespace=NAMESPACE)  # type: ignore[attr-defined]


_registry = _Registry()

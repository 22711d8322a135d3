"""Collectives in two steps: one begins them, and one waits for their results.

The compiler puts the steps where they fit; a program may say so, and computes the same.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from axir._trees import tree
from axir._trees.registration import register_pytree_node
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value

from .parallel import psum_scatter


@dataclass(frozen=True)
class Future:
    """The future result of a started collective; `done()` waits for it."""

    _value: Value

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        return self._value.shape

    @property
    def dtype(self) -> UserObject:
        """The dtype of the result."""
        return self._value.dtype

    def done(self) -> Value:
        """Returns the result."""
        return self._value


register_pytree_node(Future, lambda future: ((future._value,), None), lambda _, v: Future(*v))


def psum_scatter_start(
    x: ArrayLike,
    axis_name: Hashable,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: object = None,
    tiled: bool = False,
) -> UserObject:
    """Begins a `psum_scatter`, with its arguments.

    Returns:
        For each array of `x` a `Future`; its `done()` returns the array of the result.

    >>> import axir, axir.numpy as jnp
    >>> begun = lambda x: psum_scatter_start(x, "i").done()
    >>> axir.vmap(begun, axis_name="i")(jnp.array([[1, 2], [3, 4]]))
    Array([4, 6], dtype=int32)
    """
    results = psum_scatter(
        x,
        axis_name,
        scatter_dimension=scatter_dimension,
        axis_index_groups=axis_index_groups,
        tiled=tiled,
    )
    return tree.map(Future, results)

"""The module `jax.abstract_arrays`: types of arrays."""

from __future__ import annotations

from axir.core import ShapedArray

__all__ = ["ShapedArray", "raise_to_shaped"]


def raise_to_shaped(aval: ShapedArray, weak_type: bool | None = None) -> ShapedArray:
    """Returns a type unchanged: it is one of shape and dtype already.

    Args:
        aval: The type.
        weak_type: Whether the dtype yields to others; None leaves it as it is.
    """
    return aval if weak_type is None else aval.update(weak_type=weak_type)

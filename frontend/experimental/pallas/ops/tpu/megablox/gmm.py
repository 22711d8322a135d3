"""Products of groups of rows, under the names of `jax.experimental.pallas.ops.tpu.megablox.gmm`."""

from __future__ import annotations

from axir import lax
from axir.dialect.core.annotations import DTypeLike
from axir.dialect.core.errors import ParameterError
from axir.dialect.program.rules import Value

__all__ = ["gmm"]


def __dir__() -> list[str]:
    return __all__


def gmm(
    lhs: Value,
    rhs: Value,
    group_sizes: Value,
    preferred_element_type: DTypeLike = "float32",
    tiling: object = (128, 128, 128),
    group_offset: Value | None = None,
    existing_out: Value | None = None,
    transpose_rhs: bool = False,
    interpret: bool = False,
) -> Value:
    """Returns the product of each group of rows with the matrix of the group.

    Args:
        lhs: A matrix with the groups of rows one after the other.
        rhs: A matrix for each group, of shape `(groups, columns of lhs, columns)`.
        group_sizes: How many rows each group has.
        preferred_element_type: dtype of the result.
        tiling: Accepted for compatibility.
        group_offset: Groups of other devices in front cannot be left out here.
        existing_out: An array to which the product is added.
        transpose_rhs: Whether the matrices are transposed.
        interpret: Accepted for compatibility.

    >>> import axir.numpy as jnp
    >>> gmm(jnp.ones((3, 1)), jnp.array([[[1.0]], [[5.0]]]), jnp.array([2, 1]))[:, 0]
    Array([1., 1., 5.], dtype=float32)
    """
    if group_offset is not None:
        raise ParameterError(
            "gmm: group_offset names groups of other devices.", "Pass this device's groups alone."
        )
    matrices = rhs.swapaxes(1, 2) if transpose_rhs else rhs
    out = lax.ragged_dot(lhs, matrices, group_sizes, preferred_element_type=preferred_element_type)
    return out if existing_out is None else out + existing_out

"""Products of matrices, and a first kernel, under the names of JAX's kernels for TPUs."""

from __future__ import annotations

import numpy as np

from axir import ShapeDtypeStruct, lax
from axir._transforms.refs import AnyRef
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike
from axir.dialect.core.errors import DTypeError, ParameterError
from axir.dialect.program.rules import Value
from axir.experimental.pallas import BlockSpec, cdiv, num_programs, pallas_call, program_id, when
from axir.experimental.pallas.tpu import VMEM
from axir.numpy import zeros_like


def double_kernel(x_ref: AnyRef, y_ref: AnyRef) -> None:
    """Writes twice the contents of a ref."""
    y_ref[...] = x_ref[...] * 2


def double(x: Value) -> Value:
    """Returns `2 * x`, by a kernel.

    >>> import axir.numpy as jnp
    >>> double(jnp.arange(3))
    Array([0, 2, 4], dtype=int32)
    """
    return pallas_call(double_kernel, x)(x)


def matmul_kernel(
    x_tile_ref: AnyRef, y_tile_ref: AnyRef, o_tile_ref: AnyRef, acc_ref: AnyRef
) -> None:
    """Adds the product of two blocks to a sum, and writes the sum at the end."""

    @when(program_id(2) == 0)
    def start() -> None:
        acc_ref[...] = zeros_like(acc_ref)

    product = lax.dot(x_tile_ref[...], y_tile_ref[...], preferred_element_type=acc_ref.dtype)
    acc_ref[...] = acc_ref[...] + product

    @when(program_id(2) == num_programs(2) - 1)
    def end() -> None:
        o_tile_ref[...] = acc_ref[...].astype(o_tile_ref.dtype)


def matmul(
    x: Value,
    y: Value,
    *,
    block_shape: tuple[int, int],
    block_k: int = 256,
    out_dtype: DTypeLike | None = None,
    debug: bool = False,
) -> Value:
    """Returns the product of two matrices, by a kernel on blocks.

    Args:
        x: A matrix.
        y: A matrix.
        block_shape: Shape of the blocks of the result.
        block_k: How many terms are added up at once; it divides their number.
        out_dtype: dtype of the result; by default the matrices' dtype.
        debug: Whether to print the jaxpr.

    >>> import axir.numpy as jnp
    >>> matmul(jnp.ones((4, 6)), jnp.ones((6, 2)), block_shape=(2, 2), block_k=3)[0]
    Array([6., 6.], dtype=float32)
    """
    if out_dtype is None and x.dtype != y.dtype:
        raise DTypeError(
            f"matmul of {x.dtype} and {y.dtype} without a dtype of the result.",
            "Pass out_dtype.",
        )
    rows, columns = block_shape
    sums = np.dtype(np.int32 if dtypes.is_integer(x.dtype) else np.float32)
    shape = (x.shape[0], y.shape[1])
    return pallas_call(
        matmul_kernel,
        ShapeDtypeStruct(shape, x.dtype if out_dtype is None else dtypes.as_dtype(out_dtype)),
        in_specs=[
            BlockSpec((rows, block_k), lambda i, j, k: (i, k)),
            BlockSpec((block_k, columns), lambda i, j, k: (k, j)),
        ],
        out_specs=BlockSpec((rows, columns), lambda i, j, k: (i, j)),
        grid=(cdiv(shape[0], rows), cdiv(shape[1], columns), cdiv(x.shape[1], block_k)),
        scratch_shapes=[VMEM((rows, columns), sums)],
        debug=debug,
    )(x, y)


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

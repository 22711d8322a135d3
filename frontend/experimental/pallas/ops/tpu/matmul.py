"""A product by blocks, under the names of `jax.experimental.pallas.ops.tpu.matmul`."""

from __future__ import annotations

import numpy as np

from axir import ShapeDtypeStruct, lax
from axir._transforms.refs import AnyRef
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike
from axir.dialect.core.errors import DTypeError
from axir.dialect.program.rules import Value
from axir.experimental.pallas import BlockSpec, cdiv, num_programs, pallas_call, program_id, when
from axir.experimental.pallas.tpu import VMEM
from axir.numpy import zeros_like

__all__ = ["matmul", "matmul_kernel"]


def __dir__() -> list[str]:
    return __all__


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

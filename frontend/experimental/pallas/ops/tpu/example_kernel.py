"""A first kernel, under the names of `jax.experimental.pallas.ops.tpu.example_kernel`."""

from __future__ import annotations

from axir._transforms.refs import AnyRef
from axir.dialect.program.rules import Value
from axir.experimental.pallas import pallas_call

__all__ = ["double", "double_kernel"]


def __dir__() -> list[str]:
    return __all__


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

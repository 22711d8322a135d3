"""Softmax, under the names of `jax.experimental.pallas.ops.gpu.softmax`."""

from __future__ import annotations

from axir import nn
from axir.dialect.core.errors import AxisError
from axir.dialect.program.rules import Value

__all__ = ["softmax"]


def __dir__() -> list[str]:
    return __all__


def softmax(
    x: Value,
    *,
    axis: int = -1,
    num_warps: int = 4,
    interpret: bool = False,
    debug: bool = False,
) -> Value:
    """Returns the softmax along the last axis.

    Args:
        x: The array.
        axis: The last axis.
        num_warps: Accepted for compatibility.
        interpret: Accepted for compatibility.
        debug: Accepted for compatibility.

    >>> import axir.numpy as jnp
    >>> softmax(jnp.log(jnp.array([1.0, 3.0])))
    Array([0.25, 0.75], dtype=float32)
    """
    if axis % x.ndim != x.ndim - 1:
        raise AxisError(
            f"softmax along axis {axis} of an array of {x.ndim} axes.", "Use axir.nn.softmax."
        )
    return nn.softmax(x, axis=-1)

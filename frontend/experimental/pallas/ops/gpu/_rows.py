"""Functions of rows: normalizations and the softmax, under the names of JAX's kernels for GPUs."""

from __future__ import annotations

from axir import lax, nn
from axir.dialect.core.errors import AxisError
from axir.dialect.program.rules import Value


def layer_norm(
    x: Value,
    weight: Value,
    bias: Value,
    num_warps: int | None = None,
    num_stages: int | None = 3,
    eps: float = 1e-5,
    backward_pass_impl: str = "triton",
    interpret: bool = False,
) -> Value:
    """Returns rows with mean 0 and variance 1, times a weight, plus a bias.

    Args:
        x: An array with rows along its last axis.
        weight: A factor for each column.
        bias: A term for each column.
        num_warps: Accepted for compatibility.
        num_stages: Accepted for compatibility.
        eps: Added to the variances.
        backward_pass_impl: Accepted for compatibility.
        interpret: Accepted for compatibility.

    >>> import axir.numpy as jnp
    >>> layer_norm(jnp.array([[[-1.0, 1.0]]]), jnp.ones(2), jnp.zeros(2)).round(3)
    Array([[[-1.,  1.]]], dtype=float32)
    """
    apart = x - x.mean(-1, keepdims=True)
    scale = lax.rsqrt((apart * apart).mean(-1, keepdims=True) + eps)
    return apart * scale * weight + bias


def layer_norm_reference(x: Value, weight: Value, bias: Value, *, eps: float = 1e-5) -> Value:
    """Computes the same as `layer_norm`."""
    return layer_norm(x, weight, bias, eps=eps)


def rms_norm(
    x: Value,
    weight: Value,
    bias: Value,
    num_warps: int | None = None,
    num_stages: int | None = 3,
    eps: float = 1e-5,
    backward_pass_impl: str = "triton",
    interpret: bool = False,
) -> Value:
    """Returns rows scaled to a mean square of 1, times a weight, plus a bias.

    Args:
        x: An array with rows along its last axis.
        weight: A factor for each column.
        bias: A term for each column.
        num_warps: Accepted for compatibility.
        num_stages: Accepted for compatibility.
        eps: Added to the means of squares.
        backward_pass_impl: Accepted for compatibility.
        interpret: Accepted for compatibility.

    >>> import axir.numpy as jnp
    >>> rms_norm(jnp.array([[[3.0, -3.0]]]), jnp.ones(2), jnp.zeros(2)).round(3)
    Array([[[ 1., -1.]]], dtype=float32)
    """
    scale = lax.rsqrt((x * x).mean(-1, keepdims=True) + eps)
    return x * scale * weight + bias


def rms_norm_reference(x: Value, weight: Value, bias: Value, *, eps: float = 1e-5) -> Value:
    """Computes the same as `rms_norm`."""
    return rms_norm(x, weight, bias, eps=eps)


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

"""Layer normalization, under the names of `jax.experimental.pallas.ops.gpu.layer_norm`."""

from __future__ import annotations

from axir import lax
from axir.dialect.program.rules import Value

__all__ = ["layer_norm", "layer_norm_reference"]


def __dir__() -> list[str]:
    return __all__


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

"""Normalization by squares, under the names of `jax.experimental.pallas.ops.gpu.rms_norm`."""

from __future__ import annotations

from axir import lax
from axir.dialect.program.rules import Value

__all__ = ["rms_norm", "rms_norm_reference"]


def __dir__() -> list[str]:
    return __all__


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

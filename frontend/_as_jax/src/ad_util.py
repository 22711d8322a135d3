"""Names of `jax._src.ad_util`: symbolic zeros, and the primitive that stops gradients."""

from __future__ import annotations

from axir._primitive_names import primitive_named
from axir.interpreters.ad import Zero, add_jaxvals, instantiate_zeros, zeros_like_aval

__all__ = [
    "Zero", "add_any_p", "add_jaxvals", "add_jaxvals_p", "instantiate", "stop_gradient_p",
    "zeros_like_aval",
]  # fmt: skip

instantiate = instantiate_zeros
# Sums of tangents are sums.
add_any_p = add_jaxvals_p = primitive_named("add_p")
stop_gradient_p = primitive_named("stop_gradient_p")

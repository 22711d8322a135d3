"""Names of `jax._src.ad_util`: symbolic zeros, and the primitive that stops gradients."""

from __future__ import annotations

from axir._primitive_names import primitive_named
from axir.interpreters.ad import Zero, add_jaxvals, instantiate_zeros, zeros_like_aval

__all__ = ["Zero", "add_jaxvals", "instantiate", "stop_gradient_p", "zeros_like_aval"]

instantiate = instantiate_zeros
stop_gradient_p = primitive_named("stop_gradient_p")

"""Derivatives with regard to sparse arrays. The names of `jax.experimental.sparse.ad`."""

from __future__ import annotations

from ._derivatives import grad, jacfwd, jacobian, jacrev, value_and_grad

__all__ = ["grad", "jacfwd", "jacobian", "jacrev", "value_and_grad"]

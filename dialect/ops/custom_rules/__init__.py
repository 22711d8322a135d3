"""Ops with other derivatives than their bodies: custom rules, linear solves, checkpoints.

Each op calls a function for its results, and holds a replacement for the derivative of that
function. `custom_vmap` holds a replacement for its vectorization.
"""

from __future__ import annotations

from . import checkpoint, custom_jvp, custom_lin, custom_vjp, custom_vmap, linear_call, linear_solve

__all__ = [
    "checkpoint",
    "custom_jvp",
    "custom_lin",
    "custom_vjp",
    "custom_vmap",
    "linear_call",
    "linear_solve",
]

"""Ops whose derivatives are not those of their ops: custom rules, linear solves, checkpoints.

Each calls a function that says what it computes, and holds beside it what differentiation uses in
place of the derivative of that function; `custom_vmap` holds what vectorization uses.
"""

from __future__ import annotations

from . import (
    checkpoint,
    checkpoint_name,
    custom_jvp,
    custom_lin,
    custom_vjp,
    custom_vmap,
    linear_call,
    linear_solve,
)

__all__ = [
    "checkpoint",
    "checkpoint_name",
    "custom_jvp",
    "custom_lin",
    "custom_vjp",
    "custom_vmap",
    "linear_call",
    "linear_solve",
]

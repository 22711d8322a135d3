"""Small libraries for networks and optimizers, under the names of `jax.example_libraries`."""

from __future__ import annotations

from . import optimizers, stax

__all__ = ["optimizers", "stax"]

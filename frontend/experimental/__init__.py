"""What JAX offers as `jax.experimental`, under the same names."""

from __future__ import annotations

from axir._transforms.callbacks import io_callback

__all__ = ["io_callback"]

"""The module `jax.config`, which was where `config` is from."""

from __future__ import annotations

from axir import config

__all__ = ["config"]

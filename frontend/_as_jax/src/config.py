"""Names of `jax._src.config`: the options."""

from __future__ import annotations

from axir.dialect.core.config import Config, config, enable_x64

__all__ = ["Config", "config", "enable_x64"]

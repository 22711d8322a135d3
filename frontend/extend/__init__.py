"""What those who extend axir use besides the public API: `axir.extend.core`, `extend.random`."""

from __future__ import annotations

from . import core, random

__all__ = ["core", "random"]

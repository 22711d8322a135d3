"""What those who extend axir use besides the public API: `axir.extend.core`."""

from __future__ import annotations

from axir.extend import core

__all__ = ["core"]

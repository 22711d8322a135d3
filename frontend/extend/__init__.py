"""Extension API, in addition to the public API: `axir.extend.core`, `extend.random`,
`extend.linear_util`, `extend.backend`.
"""

from __future__ import annotations

from . import backend, core, linear_util, random, source_info_util

__all__ = ["backend", "core", "linear_util", "random", "source_info_util"]

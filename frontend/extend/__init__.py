"""What those who extend axir use besides the public API: `axir.extend.core`, `extend.random`,
`extend.linear_util`.
"""

from __future__ import annotations

from . import core, linear_util, random, source_info_util

__all__ = ["core", "linear_util", "random", "source_info_util"]

"""Extension API, in addition to the public API: `axir.extend.core`, `extend.random`,
`extend.linear_util`, `extend.backend`.
"""

from __future__ import annotations

from types import SimpleNamespace

from axir._made_modules import MadeModule

from . import backend, core, linear_util, random, source_info_util

__all__ = ["backend", "core", "linear_util", "random", "source_info_util"]

# Programs for IFRT, a runtime that is not used here.
MadeModule(f"{__name__}.ifrt_programs", "No names.", {"ifrt_programs": SimpleNamespace()})


def __dir__() -> list[str]:
    return __all__

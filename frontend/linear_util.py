"""Functions wrapped layer by layer, under the older name: see `axir.extend.linear_util`."""

from __future__ import annotations

from axir.extend.linear_util import *  # noqa: F403
from axir.extend.linear_util import __all__ as __all__

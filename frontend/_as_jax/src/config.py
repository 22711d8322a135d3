"""Names of `jax._src.config`: the options, and what sets them in a thread."""

from __future__ import annotations

from axir.dialect.core.config import *  # noqa: F403  # all ways to set options
from axir.dialect.core.config import __all__  # noqa: F401

config_with_absl = config.config_with_absl  # noqa: F405
parse_flags_with_absl = config.parse_flags_with_absl  # noqa: F405

"""Names of `jax._src.interpreters.ad`, the same as in `jax.interpreters.ad`."""

from __future__ import annotations

from axir.dialect.core.errors import UnexpectedTracerError
from axir.interpreters.ad import *  # noqa: F403

# The error of a rule that captures a differentiated value.
CustomVJPException = UnexpectedTracerError

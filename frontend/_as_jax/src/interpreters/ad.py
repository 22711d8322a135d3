"""`jax._src.interpreters.ad`: the names of `jax.interpreters.ad`."""

from __future__ import annotations

from axir.dialect.core.errors import UnexpectedTracerError
from axir.interpreters.ad import *  # noqa: F403

# Raised when a rule closes over a value that is differentiated.
CustomVJPException = UnexpectedTracerError

"""Names of `jax._src.interpreters.ad`: those of `jax.interpreters.ad`."""

from __future__ import annotations

from axir.dialect.core.errors import UnexpectedTracerError
from axir.interpreters.ad import *  # noqa: F403

# What a rule raises that closes over a value that is differentiated.
CustomVJPException = UnexpectedTracerError

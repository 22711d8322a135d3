"""Names of `jax._src.checkify`: `jax.experimental.checkify`, and the error classes."""

from __future__ import annotations

from axir.experimental.checkify import *  # noqa: F403
from axir.experimental.checkify._errors import BatchedError as BatchedError
from axir.experimental.checkify._errors import CheckFailure
from axir.experimental.checkify._errors import DivisionByZeroError as DivisionByZeroError
from axir.experimental.checkify._errors import FailedCheckError as FailedCheckError
from axir.experimental.checkify._errors import NaNError as NaNError
from axir.experimental.checkify._errors import OOBError as OOBError

JaxException = CheckFailure

"""`vectorize` as it was in 2020: a decorator made from a signature only.

Today's, which takes the function first, is `axir.numpy.vectorize`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from axir import numpy
from axir.dialect.core.annotations import UserFunction

__all__ = ["vectorize"]


def __dir__() -> list[str]:
    return __all__


def vectorize(signature: str) -> Callable[[UserFunction], UserFunction]:
    """Returns a decorator: functions of arrays of the signature's axes broadcast over others.

    Args:
        signature: As in `axir.numpy.vectorize`.

    >>> import axir.numpy as jnp
    >>> rows_times = vectorize("(n,m),(m)->(n)")(jnp.dot)
    >>> rows_times(jnp.ones((2, 3)), jnp.ones((5, 3))).shape
    (5, 2)
    """
    return functools.partial(numpy.vectorize, signature=signature)

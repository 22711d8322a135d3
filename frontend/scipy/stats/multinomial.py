"""The multinomial distribution: how often each of several things happens in n trials.

>>> import axir.numpy as jnp
>>> from axir.scipy.stats import multinomial
>>> multinomial.pmf(jnp.array([2, 0]), 2, jnp.array([0.5, 0.5]))
Array(0.25, dtype=float32)
"""

from __future__ import annotations

import math

import axir.numpy as jnp
from axir.dialect.core import dtypes
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import DTypeError
from axir.dialect.program.rules import Value
from axir.numpy._arguments.promotion import promote_inexact, promote_numeric, require_real
from axir.scipy.special import gammaln, xlogy

__all__ = ["logpmf", "pmf"]


def __dir__() -> list[str]:
    return __all__


class CountsError(DTypeError, ValueError):
    """The counts of a multinomial distribution are not integers."""


def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Value:
    """Returns the logarithm of the probability of counts.

    Args:
        x: Integers, how often each thing happened along the last axis; -inf where they do not sum
            to n.
        n: Number of trials.
        p: Probabilities of the things, along the last axis; nan where one is not in [0, 1].

    Raises:
        CountsError: if x or n is not of an integer dtype.
    """
    (p,) = promote_inexact("multinomial.logpmf", p)
    require_real("multinomial.logpmf", p)
    x, n = promote_numeric("multinomial.logpmf", x, n)
    if not dtypes.is_integer(x.dtype):
        raise CountsError(
            f"multinomial.logpmf: x and n must be integers, but together have dtype {x.dtype}.",
            "Convert with x.astype(int).",
        )
    is_possible = (jnp.sum(x, axis=-1) == n) & jnp.all(x >= 0, axis=-1)
    counts = jnp.where(is_possible[..., None], x, 0).astype(p.dtype)
    total = gammaln(n.astype(p.dtype) + 1)
    value = total + jnp.sum(xlogy(counts, p) - gammaln(counts + 1), axis=-1)
    value = jnp.where(is_possible, value, -math.inf)
    return jnp.where(jnp.all((p >= 0) & (p <= 1), axis=-1) & (n >= 0), value, math.nan)


def pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Value:
    """Returns the probability of counts; arguments as of `logpmf`."""
    return jnp.exp(logpmf(x, n, p))

"""The geometric distribution: of the number of trials until the first success of probability p.

>>> from axir.scipy.stats import geom
>>> geom.pmf(2, 0.5)
Array(0.25, dtype=float32, weak_type=True)
"""

from __future__ import annotations

import axir.numpy as jnp
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value
from axir.scipy.special import xlog1py

from ._distribution import Discrete

__all__ = ["logpmf", "pmf"]


def __dir__() -> list[str]:
    return __all__


_GEOMETRIC = Discrete(
    "geom",
    is_inside=lambda k, p: k >= 1,
    is_valid=lambda p: (p > 0) & (p <= 1),
    inner=1,
)


def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Value:
    """Returns the logarithm of the probability of k."""
    return _GEOMETRIC.log_mass(lambda k, p: xlog1py(k - 1, -p) + jnp.log(p), k, p, loc=loc)


def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Value:
    """Returns the probability of k."""
    return jnp.exp(logpmf(k, p, loc))

"""`axir.scipy.stats`: distributions, each a module of functions, and statistics of samples.

Functions of distributions broadcast their arguments; integers become floats. Outside the support
densities are 0, and where parameters are outside their range everything is nan, as in SciPy.

>>> from axir.scipy import stats
>>> stats.norm.cdf(0.0)
Array(0.5, dtype=float32)
>>> stats.uniform.pdf(3.0), stats.uniform.pdf(0.0, scale=-1.0)
(Array(0., dtype=float32, weak_type=True), Array(nan, dtype=float32, weak_type=True))
"""

from __future__ import annotations

import importlib

from axir.dialect.core.annotations import UserObject

_DISTRIBUTIONS = (
    "bernoulli", "beta", "betabinom", "binom", "cauchy", "chi2", "dirichlet", "expon", "gamma",
    "gennorm", "geom", "gumbel_l", "gumbel_r", "laplace", "logistic", "multinomial",
    "multivariate_normal", "nbinom", "norm", "pareto", "poisson", "t", "truncnorm", "uniform",
    "vonmises", "wrapcauchy",
)  # fmt: skip
_HOMES = {
    "gaussian_kde": "_kernel_density",
    "mode": "_samples",
    "rankdata": "_samples",
    "sem": "_samples",
}

__all__ = [*_DISTRIBUTIONS, *_HOMES]


def __getattr__(name: str) -> UserObject:
    if name in _DISTRIBUTIONS:
        return importlib.import_module(f"axir.scipy.stats.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(f"axir.scipy.stats.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'axir.scipy.stats' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__

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

from ._integers import bernoulli, betabinom, binom, geom, nbinom, poisson
from ._intervals import beta, chi2, expon, gamma, pareto, truncnorm, uniform, vonmises, wrapcauchy
from ._kernel_density import gaussian_kde
from ._line import cauchy, gennorm, gumbel_l, gumbel_r, laplace, logistic, norm, t
from ._samples import mode, rankdata, sem
from ._vectors import dirichlet, multinomial, multivariate_normal

__all__ = [
    "bernoulli", "beta", "betabinom", "binom", "cauchy", "chi2", "dirichlet", "expon", "gamma",
    "gaussian_kde", "gennorm", "geom", "gumbel_l", "gumbel_r", "laplace", "logistic", "mode",
    "multinomial", "multivariate_normal", "nbinom", "norm", "pareto", "poisson", "rankdata", "sem",
    "t", "truncnorm", "uniform", "vonmises", "wrapcauchy",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__

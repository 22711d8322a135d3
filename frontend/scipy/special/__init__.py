"""`axir.scipy.special`: special functions, elementwise save for `logsumexp` and the softmaxes.

Integers become floats; arguments broadcast.
"""

from __future__ import annotations

from ._bessel import bessel_jn, i0, i0e, i1, i1e
from ._elementary import (
    entr,
    erf,
    erfc,
    erfinv,
    expit,
    kl_div,
    log_softmax,
    logit,
    logsumexp,
    ndtr,
    rel_entr,
    softmax,
    xlog1py,
    xlogy,
)
from ._gamma_family import (
    bernoulli,
    beta,
    betainc,
    betaln,
    comb,
    digamma,
    factorial,
    gamma,
    gammainc,
    gammaincc,
    gammaln,
    gammasgn,
    hyp1f1,
    hyp2f1,
    loggamma,
    multigammaln,
    poch,
    polygamma,
    zeta,
)
from ._harmonics import lpmn, lpmn_values, sph_harm_y
from ._integrals import (
    dawsn,
    erfcx,
    exp1,
    expi,
    expn,
    fresnel,
    owens_t,
    sici,
    spence,
    wofz,
)
from ._normal import boxcox, boxcox1p, erfcinv, log_ndtr, ndtri

__all__ = [
    "bernoulli", "bessel_jn", "beta", "betainc", "betaln", "boxcox", "boxcox1p", "comb", "dawsn",
    "digamma", "entr", "erf", "erfc", "erfcinv", "erfcx", "erfinv", "exp1", "expi", "expit", "expn",
    "factorial", "fresnel", "gamma", "gammainc", "gammaincc", "gammaln", "gammasgn", "hyp1f1",
    "hyp2f1", "i0", "i0e", "i1", "i1e", "kl_div", "log_ndtr", "log_softmax", "loggamma", "logit",
    "logsumexp", "lpmn", "lpmn_values", "multigammaln", "ndtr", "ndtri", "owens_t", "poch",
    "polygamma", "rel_entr", "sici", "softmax", "spence", "sph_harm_y", "wofz", "xlog1py", "xlogy",
    "zeta",
]  # fmt: skip

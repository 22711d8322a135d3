"""pyhf: a counting experiment with background: fitted, and the signal's upper limit."""

import jax
import numpy as np
import pyhf
from reporting import report

pyhf.set_backend("jax", pyhf.optimize.scipy_optimizer())
model = pyhf.simplemodels.uncorrelated_background(
    signal=[5.0, 10.0, 4.0], bkg=[50.0, 60.0, 40.0], bkg_uncertainty=[7.0, 8.0, 5.0]
)
data = [53.0, 68.0, 41.0, *model.config.auxdata]
fitted, likelihood = pyhf.infer.mle.fit(data, model, return_fitted_val=True)
observed, expected = pyhf.infer.hypotest(
    1.0, data, model, test_stat="qtilde", return_expected_set=True
)
start = np.array(model.config.suggested_init())
slopes = jax.jit(jax.value_and_grad(lambda p: model.logpdf(p, pyhf.tensorlib.astensor(data))[0]))
report(
    fitted=fitted,
    likelihood=likelihood,
    observed=observed,
    expected=expected,
    slopes=slopes(start)[1],
    timed=lambda: slopes(start),
)

"""traceax: traces of matrices that are only multiplied by vectors, by four estimators."""

import jax
import jax.numpy as jnp
import lineax as lx
import traceax as tx
from reporting import report

SIZE = 60
base, _ = jnp.linalg.qr(jax.random.normal(jax.random.key(0), (SIZE, SIZE)))
matrix = (base * jnp.power(0.8, jnp.arange(SIZE))) @ base.T
operator = lx.MatrixLinearOperator(matrix, lx.positive_semidefinite_tag)
estimators = {
    "hutchinson": tx.HutchinsonEstimator(),
    "hutch_plus_plus": tx.HutchPlusPlusEstimator(),
    "x_trace": tx.XTraceEstimator(),
    "x_nystrom": tx.XNysTraceEstimator(),
}
key = jax.random.key(1)


def estimate(name):
    return jax.jit(lambda key: estimators[name].estimate(key, operator, 18)[0])


run = {name: estimate(name) for name in estimators}
report(**{name: f(key) for name, f in run.items()}, timed=lambda: run["x_trace"](key))

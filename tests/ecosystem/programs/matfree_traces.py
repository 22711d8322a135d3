"""matfree: a log determinant by stochastic Lanczos quadrature, its gradient, and a trace."""

import jax
import jax.numpy as jnp
from matfree import decomp, funm, stochtrace
from reporting import report

matrix = jax.random.normal(jax.random.key(0), (60, 60))
matrix = matrix @ matrix.T / 60 + jnp.eye(60)
signs = stochtrace.sampler_signs(jnp.ones(60), num=8)
estimate = stochtrace.estimator_monte_carlo(
    funm.monte_carlo_funm_sym_logdet(decomp.tridiag_sym(12)), signs
)
trace = stochtrace.estimator_monte_carlo(stochtrace.monte_carlo_trace(), signs)


@jax.jit
def log_determinant(matrix, key):
    return estimate(lambda vector: matrix @ vector, key)


key = jax.random.key(1)
slopes = jax.jit(jax.grad(lambda scale: log_determinant(scale * matrix, key)))(1.0)
report(
    log_determinant=log_determinant(matrix, key),
    slopes=slopes,
    trace=trace(lambda vector: matrix @ vector, key),
    timed=lambda: log_determinant(matrix, key),
)

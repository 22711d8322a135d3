"""jaxopt: minimizers with and without constraints, and derivatives of their solutions."""

import jax
import jax.numpy as jnp
import jaxopt
from reporting import report

data = jax.random.normal(jax.random.key(0), (30, 4))
target = data @ jnp.array([1.0, -2.0, 0.5, 3.0]) + 0.1


def ridge(params, weight, data, target):
    return jnp.mean((data @ params - target) ** 2) + 0.5 * weight * jnp.sum(params**2)


lbfgs = jaxopt.LBFGS(fun=ridge, maxiter=50)
gradient = jaxopt.GradientDescent(fun=ridge, maxiter=200)
projected = jaxopt.ProjectedGradient(
    fun=ridge, projection=jaxopt.projection.projection_non_negative, maxiter=100
)


def solution(weight):
    return lbfgs.run(jnp.zeros(4), weight, data, target).params


lasso = jaxopt.ProximalGradient(
    fun=lambda w, d: jnp.mean((d[0] @ w - d[1]) ** 2), prox=jaxopt.prox.prox_lasso, maxiter=100
)
compiled = jax.jit(solution)
report(
    lbfgs=solution(0.1),
    gradient=gradient.run(jnp.zeros(4), 0.1, data, target).params,
    projected=projected.run(jnp.zeros(4), None, 0.1, data, target).params,
    lasso=lasso.run(jnp.zeros(4), 0.2, (data, target)).params,
    implicit=jax.jacobian(solution)(0.1),
    bisection=jaxopt.Bisection(lambda x: x**3 - 2.0, 0.0, 2.0).run().params,
    timed=lambda: compiled(0.1),
)

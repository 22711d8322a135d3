"""GPJax: Gaussian processes, fitted to points by their marginal likelihood, and sparse ones."""

import gpjax as gpx
import jax
import jax.numpy as jnp
import optax
from reporting import report

jax.config.update("jax_enable_x64", True)
x = jnp.linspace(-3.0, 3.0, 40)[:, None]
y = jnp.sin(2 * x) + 0.1 * jax.random.normal(jax.random.key(0), x.shape)
data = gpx.Dataset(X=x, y=y)
prior = gpx.gps.Prior(mean_function=gpx.mean_functions.Zero(), kernel=gpx.kernels.RBF())
posterior = prior * gpx.likelihoods.Gaussian()
fitted, losses = gpx.fit(
    model=posterior,
    objective=lambda p, d: -gpx.objectives.conjugate_mll(p, d),
    train_data=data,
    optim=optax.adam(0.05),
    num_iters=40,
    key=jax.random.key(1),
    verbose=False,
)
points = jnp.linspace(-3.5, 3.5, 9)[:, None]
told = fitted.predict(points, train_data=data)
evidence = jax.jit(lambda y: gpx.objectives.conjugate_mll(fitted, gpx.Dataset(X=x, y=y)))
report(
    losses=losses[::8],
    mean=told.mean,
    spread=jnp.diag(told.covariance()),
    timed=lambda: evidence(y),
)

"""numpyro: NUTS, variational inference and predictions for a model with a hierarchy."""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal
from reporting import report

x = jax.random.normal(jax.random.key(0), (40, 2))
y = x @ jnp.array([1.0, -0.5]) + 0.3 * jax.random.normal(jax.random.key(1), (40,))


def model(x, y=None):
    scale = numpyro.sample("scale", dist.HalfNormal(1.0))
    weights = numpyro.sample("weights", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(x @ weights, scale), obs=y)


mcmc = MCMC(NUTS(model), num_warmup=100, num_samples=100, progress_bar=False)
mcmc.run(jax.random.key(2), x, y)
samples = mcmc.get_samples()
svi = SVI(model, AutoNormal(model), numpyro.optim.Adam(0.02), Trace_ELBO())
fitted = svi.run(jax.random.key(3), 200, x, y, progress_bar=False)
predicted = Predictive(model, samples)(jax.random.key(4), x)["y"]
place = {"scale": jnp.array(0.4), "weights": jnp.array([0.5, 0.1])}
density = numpyro.infer.util.log_density(model, (x, y), {}, place)[0]
slopes = jax.jit(jax.grad(lambda p: numpyro.infer.util.log_density(model, (x, y), {}, p)[0]))
report(
    density=density,
    first_losses=fitted.losses[:5],
    mean_is_near=jnp.max(jnp.abs(samples["weights"].mean(0) - jnp.array([1.0, -0.5]))) < 0.2,
    scale_is_near=abs(float(samples["scale"].mean()) - 0.3) < 0.1,
    prediction_is_near=jnp.mean((predicted.mean(0) - y) ** 2) < 0.2,
    timed=lambda: slopes(place),
)

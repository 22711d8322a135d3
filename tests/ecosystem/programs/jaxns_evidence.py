"""jaxns: nested sampling of a straight line through points, its evidence and its posterior."""

import jax
import jax.numpy as jnp
from jaxns.core import NestedSampler
from jaxns.model import Model
from jaxns.priors import Prior
from reporting import report
from tensorflow_probability.substrates import jax as tfp

tfpd = tfp.distributions
places = jnp.linspace(0.0, 1.0, 6)
seen = jnp.array([0.15, 0.32, 0.83, 1.08, 1.52, 1.77])


def line(places, seen, width):
    intercept = Prior(tfpd.Normal(loc=0.0, scale=1.0), name="intercept").realise()
    slope = Prior(tfpd.Normal(loc=0.0, scale=2.0), name="slope").realise()
    return jnp.sum(tfpd.Normal(intercept + slope * places, width).log_prob(seen))


model = Model(prior_model=line)
args = (places, seen, jnp.asarray(0.15))
sampler = NestedSampler(model=model)
state = sampler.run(key=jax.random.PRNGKey(6), args=args)
results = state.to_result().trim()
# By Gauss's integrals: the prior is N(0, 1) times N(0, 4), the noise N(0, 0.15^2).
design = jnp.stack([jnp.ones(6), places], axis=1)
spread = design @ jnp.diag(jnp.array([1.0, 4.0])) @ design.T + 0.15**2 * jnp.eye(6)
exact = tfpd.MultivariateNormalFullCovariance(jnp.zeros(6), spread).log_prob(seen)
report(
    exact=exact,
    evidence_is_near=abs(results.log_Z_mean - exact) < 0.5,
    effort=results.total_num_samples > 100,
    timed=lambda: sampler.run(key=jax.random.PRNGKey(6), args=args).to_result().log_Z_mean,
)

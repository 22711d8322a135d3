"""distreqx: distributions and bijectors as Equinox's modules, sampled, fitted by their gradient."""

import equinox as eqx
import jax
import jax.numpy as jnp
from distreqx import bijectors, distributions
from reporting import report

normal = distributions.MultivariateNormalDiag(jnp.array([0.5, -1.0]), jnp.array([1.0, 2.0]))
points = jax.vmap(normal.sample)(jax.random.split(jax.random.key(0), 50))
start = distributions.MultivariateNormalTri(jnp.zeros(2), jnp.eye(2))
flow = distributions.Transformed(
    distributions.Normal(jnp.zeros(()), jnp.ones(())),
    bijectors.Chain([bijectors.ScalarAffine(1.0, 2.0), bijectors.Tanh()]),
)


@eqx.filter_jit
@eqx.filter_value_and_grad
def loss_of(parts):
    mean, scales = parts
    fitted = distributions.MultivariateNormalDiag(mean, jnp.exp(scales))
    return -jnp.mean(jax.vmap(fitted.log_prob)(points))


parts = (jnp.zeros(2), jnp.zeros(2))
losses = []
for _ in range(12):
    loss, slopes = loss_of(parts)
    parts = jax.tree.map(lambda p, g: p - 0.3 * g, parts, slopes)
    losses.append(loss)
report(
    points=points[:5],
    losses=jnp.stack(losses),
    triangular=jax.vmap(start.log_prob)(points[:5]),
    entropy=normal.entropy(),
    flow=flow.log_prob(jnp.array(1.5)),
    gamma=distributions.Gamma(2.0, 3.0).log_prob(jnp.array(0.7)),
    beta=distributions.Beta(2.0, 3.0).log_prob(jnp.array(0.7)),
    timed=lambda: loss_of(parts),
)

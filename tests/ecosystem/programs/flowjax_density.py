"""flowjax: a normalizing flow that is fitted to samples, and sampled."""

import jax
import jax.numpy as jnp
from flowjax.distributions import Normal
from flowjax.flows import masked_autoregressive_flow
from flowjax.train import fit_to_data
from reporting import report

key = jax.random.key(0)
points = jax.random.normal(key, (200, 2)) @ jnp.array([[1.0, 0.5], [0.0, 0.3]]) + 1.0
flow = masked_autoregressive_flow(
    jax.random.key(1), base_dist=Normal(jnp.zeros(2)), flow_layers=2, nn_width=8
)
before = flow.log_prob(points)
fitted, losses = fit_to_data(
    jax.random.key(2),
    flow,
    points,
    learning_rate=1e-2,
    max_epochs=3,
    batch_size=50,
    show_progress=False,
)
report(
    before=before[:5],
    losses=jnp.array(losses["train"]),
    after=fitted.log_prob(points)[:5],
    samples=fitted.sample(jax.random.key(3), (4,)),
    timed=lambda: fitted.log_prob(points),
)

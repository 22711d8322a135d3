"""POT: optimal transport with JAX's arrays: Sinkhorn's plan, Wasserstein distances, costs."""

import jax
import jax.numpy as jnp
import ot
from reporting import report

x = jax.random.normal(jax.random.key(0), (12, 2))
y = jax.random.normal(jax.random.key(1), (15, 2)) + 1.0
a, b = jnp.full(12, 1 / 12), jnp.full(15, 1 / 15)


def cost_of(x):
    return ot.dist(x, y)


@jax.jit
def sinkhorn(x):
    kernel = jnp.exp(-cost_of(x))
    u = a
    for _ in range(20):
        u = a / (kernel @ (b / (kernel.T @ u)))
    return u[:, None] * kernel * (b / (kernel.T @ u))[None, :]


sliced = ot.sliced_wasserstein_distance(x, y, projections=jnp.eye(2))
report(
    plan=ot.sinkhorn(a, b, cost_of(x), 1.0),
    unbalanced=ot.unbalanced.sinkhorn_unbalanced(a, b, cost_of(x), 1.0, 1.0),
    exact=ot.emd2(a, b, cost_of(x)),
    slopes=jax.grad(lambda x: jnp.sum(sinkhorn(x) * cost_of(x)))(x),
    sliced=sliced,
    line=ot.wasserstein_1d(x[:, 0], y[:, 0], p=2),
    own=sinkhorn(x),
    timed=lambda: ot.sinkhorn(a, b, cost_of(x), 1.0, numItermax=20),
)

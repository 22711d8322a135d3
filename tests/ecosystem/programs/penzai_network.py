"""penzai: a network of named axes, trained by gradients of its variables."""

import jax
import jax.numpy as jnp
from penzai import pz
from penzai.models import simple_mlp
from reporting import report

network = simple_mlp.MLP.from_config(
    name="network", init_base_rng=jax.random.key(0), feature_sizes=[6, 16, 3]
)
points = pz.nx.wrap(jax.random.normal(jax.random.key(1), (16, 6))).tag("batch", "features")
unbound, variables = pz.unbind_params(network)
frozen = [variable.freeze() for variable in variables]


@jax.jit
@jax.value_and_grad
def loss_of(variables):
    out = pz.bind_variables(unbound, variables)(points).unwrap("batch", "features")
    return jnp.mean((out - 1.0) ** 2)


losses = []
for _ in range(8):
    loss, slopes = loss_of(frozen)
    frozen = jax.tree.map(lambda v, g: v - 0.1 * g, frozen, slopes)
    losses.append(loss)
named = pz.nx.nmap(jnp.dot)(points.untag("features"), points.untag("features"))
report(losses=jnp.stack(losses), named=named.unwrap("batch"), timed=lambda: loss_of(frozen))

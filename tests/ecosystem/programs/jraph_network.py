"""jraph: a graph network that passes messages, trained by gradient descent."""

import jax
import jax.numpy as jnp
import jraph
from reporting import report

graph = jraph.GraphsTuple(
    n_node=jnp.array([3, 2]),
    n_edge=jnp.array([4, 1]),
    nodes=jax.random.normal(jax.random.key(0), (5, 4)),
    edges=jax.random.normal(jax.random.key(1), (5, 2)),
    globals=jnp.zeros((2, 3)),
    senders=jnp.array([0, 1, 2, 0, 3]),
    receivers=jnp.array([1, 2, 0, 2, 4]),
)
keys = jax.random.split(jax.random.key(2), 3)
weights = {
    "edge": 0.3 * jax.random.normal(keys[0], (2 + 4 + 4 + 3, 2)),
    "node": 0.3 * jax.random.normal(keys[1], (4 + 2 + 2 + 3, 4)),
    "global": 0.3 * jax.random.normal(keys[2], (4 + 2 + 3, 3)),
}


def network(weights, graph):
    def joined(name):
        return lambda *parts: jnp.tanh(jnp.concatenate(parts, axis=-1) @ weights[name])

    step = jraph.GraphNetwork(joined("edge"), joined("node"), joined("global"))
    return step(step(graph))


@jax.jit
def loss_of(weights, graph):
    return jnp.sum((network(weights, graph).globals - 0.5) ** 2)


losses = []
for _ in range(10):
    loss, grads = jax.value_and_grad(loss_of)(weights, graph)
    weights = jax.tree.map(lambda w, g: w - 0.01 * g, weights, grads)
    losses.append(loss)
padded = jraph.pad_with_graphs(graph, 8, 10, 4)
attended = jraph.segment_softmax(graph.edges[:, 0], graph.receivers, 5)
report(
    losses=jnp.stack(losses),
    nodes=network(weights, graph).nodes,
    mask=jraph.get_node_padding_mask(padded),
    attended=attended,
    timed=lambda: loss_of(weights, graph),
)

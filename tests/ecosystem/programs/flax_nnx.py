"""flax.nnx: modules that hold their parameters, trained in place."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from reporting import report


class Network(nnx.Module):
    """Two layers, a normalization and dropout."""

    def __init__(self, rngs):
        self.first = nnx.Linear(3, 8, use_bias=False, rngs=rngs)
        self.norm = nnx.BatchNorm(8, rngs=rngs)
        self.dropout = nnx.Dropout(0.2, rngs=rngs)
        self.second = nnx.Linear(8, 1, rngs=rngs)

    def __call__(self, x):
        return self.second(self.dropout(nnx.relu(self.norm(self.first(x)))))


network = Network(nnx.Rngs(0))
optimizer = nnx.Optimizer(network, optax.adam(1e-2), wrt=nnx.Param)
x = jax.random.normal(jax.random.key(1), (16, 3))
y = jnp.sum(x**2, axis=1, keepdims=True)


@nnx.jit
def step(network, optimizer, x, y):
    loss, grads = nnx.value_and_grad(lambda network: jnp.mean((network(x) - y) ** 2))(network)
    optimizer.update(network, grads)
    return loss


losses = [step(network, optimizer, x, y) for _ in range(10)]
network.eval()
graph, state = nnx.split(network)
copy = nnx.merge(graph, jax.tree.map(lambda v: v, state))


@nnx.vmap(in_axes=(0,), out_axes=0)
def ensemble(key):
    return nnx.Linear(2, 2, rngs=nnx.Rngs(key))


report(
    losses=jnp.stack(losses),
    predicted=network(x)[:4, 0],
    copied=copy(x)[:4, 0],
    mean=network.norm.mean[...],
    ensemble=ensemble(jax.random.split(jax.random.key(2), 3)).kernel[...],
    timed=lambda: step(network, optimizer, x, y),
)

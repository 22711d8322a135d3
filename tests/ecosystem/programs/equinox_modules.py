"""equinox and jaxtyping: modules with state, filtered transformations, trained with optax."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, jaxtyped
from reporting import report


class Network(eqx.Module):
    """A convolution, a normalization with running statistics, and a perceptron."""

    conv: eqx.nn.Conv1d
    norm: eqx.nn.BatchNorm
    mlp: eqx.nn.MLP
    name: str = eqx.field(static=True)

    def __init__(self, key):
        first, second = jax.random.split(key)
        self.conv = eqx.nn.Conv1d(1, 4, 3, key=first)
        self.norm = eqx.nn.BatchNorm(4, axis_name="batch", mode="ema")
        self.mlp = eqx.nn.MLP(4 * 6, 1, 8, 2, activation=jax.nn.gelu, key=second)
        self.name = "network"

    @jaxtyped(typechecker=None)
    def __call__(
        self, x: Float[Array, "1 length"], state: eqx.nn.State
    ) -> tuple[Float[Array, "1"], eqx.nn.State]:
        x, state = self.norm(jax.nn.relu(self.conv(x)), state)
        return self.mlp(jnp.ravel(x)), state


network, state = eqx.nn.make_with_state(Network)(jax.random.key(0))
x = jax.random.normal(jax.random.key(1), (32, 1, 8))
y = jnp.sum(jnp.sin(x), axis=(1, 2))[:, None]
optimizer = optax.adam(3e-3)
opt_state = optimizer.init(eqx.filter(network, eqx.is_inexact_array))


@eqx.filter_value_and_grad(has_aux=True)
def loss_of(network, state, x, y):
    batched = jax.vmap(network, axis_name="batch", in_axes=(0, None), out_axes=(0, None))
    predicted, state = batched(x, state)
    return jnp.mean((predicted - y) ** 2), state


@eqx.filter_jit
def step(network, state, opt_state, x, y):
    (loss, state), grads = loss_of(network, state, x, y)
    updates, opt_state = optimizer.update(grads, opt_state, eqx.filter(network, eqx.is_array))
    return eqx.apply_updates(network, updates), state, opt_state, loss


losses = []
for _ in range(20):
    network, state, opt_state, loss = step(network, state, opt_state, x, y)
    losses.append(loss)

inference = eqx.nn.inference_mode(network)
predicted, _ = jax.vmap(inference, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(
    x, state
)
doubled = eqx.tree_at(lambda n: n.mlp.layers[0].weight, network, replace_fn=lambda w: 2 * w)
ensemble = eqx.filter_vmap(lambda k: eqx.nn.Linear(3, 2, key=k))(
    jax.random.split(jax.random.key(2), 5)
)
checked = eqx.filter_jit(lambda x: eqx.error_if(x, jnp.any(x < 0), "negative"))
try:
    checked(jnp.array(-1.0))
    error = ""
except RuntimeError as raised:
    error = str(raised)
report(
    losses=jnp.stack(losses),
    predicted=predicted[:, 0],
    doubled=jnp.sum(jnp.abs(doubled.mlp.layers[0].weight)),
    ensemble=ensemble.weight,
    checked=checked(jnp.array(2.0)),
    error_names_cause="negative" in error,
    timed=lambda: step(network, state, opt_state, x, y)[-1],
)

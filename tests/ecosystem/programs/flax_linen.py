"""flax.linen: a convolutional network with normalization and dropout, and a scanned cell."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training import train_state
from reporting import report


class Network(nn.Module):
    """Convolution, normalization, attention, dropout."""

    @nn.compact
    def __call__(self, x, is_training):
        x = nn.Conv(4, (3, 3))(x)
        x = nn.BatchNorm(use_running_average=not is_training)(x)
        x = nn.avg_pool(nn.relu(x), (2, 2), strides=(2, 2))
        x = x.reshape(x.shape[0], -1, 4)
        x = nn.LayerNorm()(x + nn.MultiHeadDotProductAttention(num_heads=2)(x))
        x = nn.Dropout(0.1, deterministic=not is_training)(x.mean(axis=1))
        return nn.Dense(3)(x)


class TrainState(train_state.TrainState):
    """Parameters, optimizer, and running statistics."""

    batch_stats: dict


network = Network()
x = jax.random.normal(jax.random.key(1), (8, 6, 6, 1))
labels = jnp.arange(8) % 3
variables = network.init(jax.random.key(0), x, False)
state = TrainState.create(
    apply_fn=network.apply,
    params=variables["params"],
    batch_stats=variables["batch_stats"],
    tx=optax.sgd(0.1, momentum=0.9),
)


@jax.jit
def step(state, key):
    def loss_of(params):
        logits, updates = state.apply_fn(
            {"params": params, "batch_stats": state.batch_stats},
            x,
            True,
            mutable=["batch_stats"],
            rngs={"dropout": key},
        )
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
        return losses.mean(), updates

    (loss, updates), grads = jax.value_and_grad(loss_of, has_aux=True)(state.params)
    state = state.apply_gradients(grads=grads)
    return state.replace(batch_stats=updates["batch_stats"]), loss


losses = []
for key in jax.random.split(jax.random.key(2), 5):
    state, loss = step(state, key)
    losses.append(loss)


class Recurrent(nn.Module):
    """A cell along a sequence."""

    @nn.compact
    def __call__(self, xs):
        scan = nn.scan(
            nn.GRUCell,
            variable_broadcast="params",
            split_rngs={"params": False},
            in_axes=1,
            out_axes=1,
        )
        cell = scan(features=3)
        carry = cell.initialize_carry(jax.random.key(0), xs[:, 0].shape)
        return cell(carry, xs)[1]


sequence = jax.random.normal(jax.random.key(3), (2, 4, 2))
recurrent = Recurrent()
report(
    losses=jnp.stack(losses),
    logits=network.apply({"params": state.params, "batch_stats": state.batch_stats}, x, False),
    recurrent=recurrent.apply(recurrent.init(jax.random.key(4), sequence), sequence),
    timed=lambda: step(state, jax.random.key(5))[1],
)

"""dm-haiku: transformed functions with parameters, state and random keys."""

import haiku as hk
import jax
import jax.numpy as jnp
from reporting import report


def network(x, is_training):
    x = hk.Conv2D(4, 3)(x)
    x = hk.BatchNorm(create_scale=True, create_offset=True, decay_rate=0.9)(x, is_training)
    x = jnp.mean(jax.nn.relu(x), axis=(1, 2))
    if is_training:
        x = hk.dropout(hk.next_rng_key(), 0.2, x)
    return hk.nets.MLP([8, 2])(x)


transformed = hk.transform_with_state(network)
x = jax.random.normal(jax.random.key(1), (4, 6, 6, 1))
params, state = transformed.init(jax.random.key(0), x, True)


@jax.jit
def step(params, state, key):
    def loss_of(params):
        out, new_state = transformed.apply(params, state, key, x, True)
        return jnp.mean(out**2), new_state

    (loss, new_state), grads = jax.value_and_grad(loss_of, has_aux=True)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), new_state, loss


losses = []
for key in jax.random.split(jax.random.key(2), 5):
    params, state, loss = step(params, state, key)
    losses.append(loss)


def recurrent(sequence):
    core = hk.LSTM(3)
    return hk.dynamic_unroll(core, sequence, core.initial_state(None))[0]


unrolled = hk.without_apply_rng(hk.transform(recurrent))
sequence = jax.random.normal(jax.random.key(3), (5, 2))
report(
    losses=jnp.stack(losses),
    evaluated=transformed.apply(params, state, None, x, False)[0],
    parameters=hk.data_structures.tree_size(params),
    recurrent=unrolled.apply(unrolled.init(jax.random.key(4), sequence), sequence),
    timed=lambda: step(params, state, jax.random.key(5)),
)

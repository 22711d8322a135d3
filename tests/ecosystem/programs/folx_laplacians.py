"""folx: the Laplacian of a network in one forward pass, and the sum of second derivatives."""

import jax
import jax.numpy as jnp
from folx import forward_laplacian
from reporting import report

keys = jax.random.split(jax.random.key(0), 4)
first, second = 0.4 * jax.random.normal(keys[0], (6, 16)), jax.random.normal(keys[1], (16,))
points = jax.random.normal(keys[2], (5, 6))


def wave(x):
    x = jnp.tanh(x @ first) ** 2
    return jnp.log(jnp.sum(jnp.exp(0.1 * x)) + 1.0) + jnp.sum(jax.nn.silu(x) * second)


laplacian = forward_laplacian(wave)
local = jax.jit(jax.vmap(lambda x: laplacian(x).laplacian))
told = laplacian(points[0])
report(
    value=told.x,
    slopes=told.jacobian.dense_array,
    laplacians=local(points),
    second=jax.vmap(lambda x: jnp.trace(jax.hessian(wave)(x)))(points),
    timed=lambda: local(points),
)

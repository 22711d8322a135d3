"""signax: signatures and log signatures of paths, and how they depend on the path."""

import jax
import jax.numpy as jnp
import signax
from reporting import report

paths = jnp.cumsum(0.3 * jax.random.normal(jax.random.key(0), (6, 20, 3)), axis=1)


@jax.jit
def signatures(paths):
    return signax.signature(paths, 3, flatten=False)


@jax.jit
@jax.grad
def slopes_of(path):
    return jnp.sum(signax.logsignature(path, 3) ** 2)


first, second, third = signatures(paths)
report(
    first=first,
    second=second,
    third=third[0],
    slopes=slopes_of(paths[0]),
    timed=lambda: signatures(paths),
)

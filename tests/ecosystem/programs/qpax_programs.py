"""qpax: quadratic programs with constraints, many at once, and derivatives of their solutions."""

import jax
import jax.numpy as jnp
import qpax
from reporting import report

SIZE, EQUALITIES = 5, 2
keys = jax.random.split(jax.random.key(0), 4)
root = jax.random.normal(keys[0], (SIZE, SIZE))
quadratic = root @ root.T + jnp.eye(SIZE)
equal, equals = jax.random.normal(keys[1], (EQUALITIES, SIZE)), jnp.zeros(EQUALITIES)
bounds, limits = jnp.vstack([jnp.eye(SIZE), -jnp.eye(SIZE)]), jnp.ones(2 * SIZE)
costs = jax.random.normal(keys[2], (4, SIZE))


def solved(cost):
    return qpax.solve_qp_primal(quadratic, cost, equal, equals, bounds, limits)


many = jax.jit(jax.vmap(solved))
slopes = jax.jit(jax.grad(lambda cost: jnp.sum(solved(cost) ** 2)))
report(solutions=many(costs), slopes=slopes(costs[0]), timed=lambda: many(costs))

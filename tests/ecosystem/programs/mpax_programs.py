"""MPAX: a linear and a quadratic program by primal-dual hybrid gradients."""

import jax
import jax.numpy as jnp
from mpax import create_lp, create_qp, r2HPDHG, raPDHG
from reporting import report

costs = jnp.array([-1.0, -2.0, -0.3, 1.0])
equal, equals = jnp.array([[1.0, 1.0, 1.0, -1.0]]), jnp.array([2.0])
above, least = jnp.array([[-1.0, -3.0, 0.0, 0.0], [0.0, 0.0, -1.0, -1.0]]), jnp.array([-4.0, -3.0])
lower, upper = jnp.zeros(4), jnp.full(4, 3.0)
parts = (equal, equals, above, least, lower, upper)


@jax.jit
def linear(costs):
    program = create_lp(costs, *parts, use_sparse_matrix=False)
    return r2HPDHG(eps_abs=1e-5, eps_rel=1e-5).optimize(program).primal_solution


def quadratic(costs):
    program = create_qp(jnp.eye(4), costs, *parts, use_sparse_matrix=False)
    return raPDHG(eps_abs=1e-5, eps_rel=1e-5).optimize(program).primal_solution


report(linear=linear(costs), quadratic=quadratic(costs), timed=lambda: linear(costs))

"""optimistix: roots, fixed points, least squares, minima, and derivatives of solutions."""

import jax
import jax.numpy as jnp
import optimistix as optx
from reporting import report


def residuals(parameters, data):
    times, values = data
    return parameters[0] * jnp.exp(-parameters[1] * times) - values


times = jnp.linspace(0.0, 2.0, 20)
values = 2.5 * jnp.exp(-1.3 * times)


def root(a):
    solution = optx.root_find(
        lambda y, a: y**3 - a, optx.Newton(rtol=1e-6, atol=1e-6), jnp.array(1.5), args=a
    )
    return solution.value


fitted = optx.least_squares(
    residuals,
    optx.LevenbergMarquardt(rtol=1e-6, atol=1e-6),
    jnp.array([1.0, 1.0]),
    args=(times, values),
)
minimum = optx.minimise(
    lambda y, _: jnp.sum((y[1:] - y[:-1] ** 2) ** 2 + (1 - y[:-1]) ** 2),
    optx.BFGS(rtol=1e-6, atol=1e-6),
    jnp.zeros(3),
)
fixed = optx.fixed_point(
    lambda y, _: jnp.cos(y), optx.FixedPointIteration(rtol=1e-6, atol=1e-6), jnp.array(1.0)
)
compiled = jax.jit(root)
report(
    root=compiled(2.0),
    slope=jax.grad(root)(2.0),
    mapped=jax.vmap(root)(jnp.array([1.0, 8.0])),
    fitted=fitted.value,
    minimum=minimum.value,
    fixed=fixed.value,
    timed=lambda: compiled(2.0),
)

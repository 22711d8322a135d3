"""sympy2jax: expressions of SymPy as modules with numbers that are trained."""

import equinox as eqx
import jax
import jax.numpy as jnp
import sympy
import sympy2jax
from reporting import report

x, y = sympy.symbols("x y")
expression = 1.5 * sympy.sin(0.5 * x) + sympy.exp(-0.2 * y) * sympy.sqrt(1.0 + x**2)
module = sympy2jax.SymbolicModule([expression, sympy.diff(expression, x)])
points = {"x": jnp.linspace(-1.0, 1.0, 16), "y": jnp.linspace(0.0, 2.0, 16)}
target = 2.0 * jnp.sin(0.7 * points["x"]) + 1.0


@eqx.filter_jit
@eqx.filter_value_and_grad
def loss_of(module):
    return jnp.mean((module(**points)[0] - target) ** 2)


values, derivatives = module(**points)
losses = []
for _ in range(10):
    loss, slopes = loss_of(module)
    module = eqx.apply_updates(module, jax.tree.map(lambda g: -0.05 * g, slopes))
    losses.append(loss)
report(
    values=values,
    derivatives=derivatives,
    losses=jnp.stack(losses),
    timed=lambda: loss_of(module),
)

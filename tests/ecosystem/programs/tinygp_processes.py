"""tinygp: Gaussian processes, by dense matrices and by quasiseparable ones."""

import jax
import jax.numpy as jnp
import tinygp
from reporting import report

x = jnp.linspace(0.0, 5.0, 40)
y = jnp.sin(2 * x) + 0.3 * jnp.cos(5 * x)


def process(params):
    kernel = jnp.exp(params["amplitude"]) * tinygp.kernels.Matern32(jnp.exp(params["scale"]))
    return tinygp.GaussianProcess(kernel, x, diag=0.05, mean=params["mean"])


@jax.jit
@jax.value_and_grad
def loss_of(params):
    return -process(params).log_probability(y)


params = {"amplitude": jnp.zeros(()), "scale": jnp.zeros(()), "mean": jnp.zeros(())}
losses = []
for _ in range(12):
    loss, slopes = loss_of(params)
    params = jax.tree.map(lambda p, g: p - 0.01 * g, params, slopes)
    losses.append(loss)
points = jnp.array([0.5, 2.5, 6.0])
told = process(params).condition(y, points).gp
quasi = tinygp.GaussianProcess(tinygp.kernels.quasisep.Celerite(1.0, 0.2, 0.7, 0.1), x, diag=0.1)
report(
    losses=jnp.stack(losses),
    mean=told.loc,
    variance=told.variance,
    celerite=quasi.log_probability(y),
    smooth=quasi.condition(y, points).gp.loc,
    timed=lambda: loss_of(params),
)

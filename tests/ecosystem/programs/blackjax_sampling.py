"""blackjax: Hamiltonian Monte Carlo and NUTS with window adaptation on a regression."""

import blackjax
import jax
import jax.numpy as jnp
from reporting import report

x = jax.random.normal(jax.random.key(0), (50, 2))
y = x @ jnp.array([1.0, -0.5]) + 0.3 * jax.random.normal(jax.random.key(1), (50,))


def log_density(position):
    residual = (y - x @ position["weights"]) / jnp.exp(position["log_scale"])
    likelihood = jnp.sum(-0.5 * residual**2 - position["log_scale"])
    return likelihood - 0.5 * (jnp.sum(position["weights"] ** 2) + position["log_scale"] ** 2)


start = {"weights": jnp.zeros(2), "log_scale": jnp.array(0.0)}


def chain(kernel, state, key, length):
    def one(state, key):
        state, info = kernel(key, state)
        return state, (state.position, info.acceptance_rate)

    return jax.lax.scan(one, state, jax.random.split(key, length))[1]


hmc = blackjax.hmc(log_density, 0.05, jnp.ones(3), 5)
sampled = jax.jit(lambda key: chain(hmc.step, hmc.init(start), key, 10))
positions, rates = sampled(jax.random.key(2))
nuts = blackjax.nuts(log_density, 0.1, jnp.ones(3))
tuned, _ = jax.jit(lambda key: chain(nuts.step, nuts.init(start), key, 10))(jax.random.key(3))
adaptation = blackjax.window_adaptation(blackjax.nuts, log_density)
(state, parameters), _ = adaptation.run(jax.random.key(4), start, num_steps=60)
report(
    weights=positions["weights"],
    rates=rates,
    tuned=tuned["weights"],
    step_size_is_sensible=0.05 < parameters["step_size"] < 2.0,
    adapted_is_near=jnp.max(jnp.abs(state.position["weights"] - jnp.array([1.0, -0.5]))) < 0.5,
    timed=lambda: sampled(jax.random.key(2)),
)

"""evosax: CMA-ES and OpenES on an ill-conditioned parabola."""

import jax
import jax.numpy as jnp
from evosax.algorithms import CMA_ES, Open_ES
from reporting import report


def losses(x):
    return jnp.sum((x - 0.5) ** 2 * jnp.arange(1, 7), axis=1)


def evolved(strategy, generations):
    params = strategy.default_params
    state = strategy.init(jax.random.key(0), jnp.ones(6), params)

    @jax.jit
    def step(key, state):
        ask, tell = jax.random.split(key)
        population, state = strategy.ask(ask, state, params)
        state, _ = strategy.tell(tell, population, losses(population), state, params)
        return state

    for key in jax.random.split(jax.random.key(1), generations):
        state = step(key, state)
    return state.mean, lambda: step(jax.random.key(2), state).mean


# The signs of eigenvectors are arbitrary, and CMA-ES's samples depend on them from the second
# generation on. So the first generation is compared, and the position after the thirtieth.
first, _ = evolved(CMA_ES(population_size=16, solution=jnp.zeros(6)), 1)
adapted, step = evolved(CMA_ES(population_size=16, solution=jnp.zeros(6)), 30)
opened, _ = evolved(Open_ES(population_size=16, solution=jnp.zeros(6)), 12)
report(
    first=first,
    adapted_is_near=jnp.max(jnp.abs(adapted - 0.5)) < 0.2,
    opened=opened,
    timed=step,
)

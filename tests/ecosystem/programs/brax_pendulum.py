"""brax: an inverted pendulum that is pushed, by the positional and the spring pipelines."""

import jax
import jax.numpy as jnp
from brax import envs
from reporting import report


def rolled(backend):
    environment = envs.create("inverted_pendulum", backend=backend, episode_length=200)
    start = jax.jit(environment.reset)(jax.random.PRNGKey(0))

    def step(state, action):
        state = environment.step(state, action)
        return state, (state.obs, state.reward)

    @jax.jit
    def roll(start, actions):
        return jax.lax.scan(step, start, actions)[1]

    return lambda: roll(start, jnp.full((30, environment.action_size), 0.1))


positional, spring = rolled("positional"), rolled("spring")
observed, rewards = positional()
report(observed=observed[::5], rewards=rewards, sprung=spring()[0][::5], timed=positional)

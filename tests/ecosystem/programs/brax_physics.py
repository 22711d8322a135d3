"""brax: bodies with joints, moved by springs or by positions, and a gradient through the physics."""

import jax
import jax.numpy as jnp
from brax import envs
from reporting import report

results = {}
for backend in ("positional", "spring"):
    environment = envs.create("inverted_pendulum", backend=backend, episode_length=100)
    state = jax.jit(environment.reset)(jax.random.PRNGKey(0))

    def step(state, action, environment=environment):
        state = environment.step(state, action)
        return state, (state.obs, state.reward)

    @jax.jit
    def rollout(state, step=step, size=environment.action_size):
        actions = 0.2 * jnp.cos(jnp.arange(8.0))[:, None] * jnp.ones(size)
        return jax.lax.scan(step, state, actions)

    _, (observed, rewards) = rollout(state)
    results[f"{backend}_observed"] = observed
    results[f"{backend}_rewards"] = rewards

environment = envs.create("inverted_pendulum", backend="spring", episode_length=100)
state = environment.reset(jax.random.PRNGKey(1))


@jax.jit
@jax.grad
def slope(gain):
    def step(state, _):
        state = environment.step(state, jnp.tanh(gain * state.obs[:1]))
        return state, state.obs[1]

    _, angles = jax.lax.scan(step, state, None, length=3)
    return jnp.sum(angles**2)


report(slope=slope(jnp.float32(0.5)), **results)

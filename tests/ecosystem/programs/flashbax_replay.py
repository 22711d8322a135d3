"""flashbax: buffers of experience, filled, sampled by trajectories and by priority."""

import flashbax as fbx
import jax
import jax.numpy as jnp
from reporting import report

SEEN = {"observed": jnp.zeros(3), "reward": jnp.zeros(())}
trajectories = fbx.make_trajectory_buffer(
    add_batch_size=2,
    sample_batch_size=4,
    sample_sequence_length=4,
    period=2,
    min_length_time_axis=4,
    max_length_time_axis=32,
)
priorities = fbx.make_prioritised_flat_buffer(
    max_length=32, min_length=4, sample_batch_size=6, add_batch_size=2
)


def filled(buffer, steps, length=None):
    state, add = buffer.init(SEEN), jax.jit(buffer.add)
    for index in range(steps):
        shape = (2,) if length is None else (2, length)
        rewards = index + jnp.arange(jnp.prod(jnp.array(shape))).reshape(shape) / 10.0
        seen = {"observed": rewards[..., None] * jnp.ones(3), "reward": rewards}
        state = add(state, seen)
    return state


state = filled(trajectories, 10, 5)
sample = jax.jit(trajectories.sample)
ranked = filled(priorities, 8)
first = jax.jit(priorities.sample)(ranked, jax.random.key(1))
ranked = jax.jit(priorities.set_priorities)(ranked, first.indices, jnp.arange(1.0, 7.0))
second = jax.jit(priorities.sample)(ranked, jax.random.key(2))
report(
    rewards=sample(state, jax.random.key(0)).experience["reward"],
    first=first.experience.first["reward"],
    second=second.experience.second["reward"],
    chances=second.probabilities,
    timed=lambda: sample(state, jax.random.key(0)).experience["reward"],
)

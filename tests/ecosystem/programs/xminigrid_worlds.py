"""XLand-MiniGrid: agents that turn and walk at random through worlds of rooms, many at once."""

import jax
import xminigrid
from reporting import report

environment, params = xminigrid.make("MiniGrid-FourRooms")


@jax.jit
@jax.vmap
def walked(key):
    first, rest = jax.random.split(key)
    start = environment.reset(params, first)

    def step(told, action):
        told = environment.step(params, told, action)
        return told, (told.reward, told.observation.sum())

    actions = jax.random.randint(rest, (30,), 0, 3)
    told, (rewards, seen) = jax.lax.scan(step, start, actions)
    return told.state.agent.position, rewards, seen


keys = jax.random.split(jax.random.key(0), 8)
positions, rewards, seen = walked(keys)
report(positions=positions, rewards=rewards.sum(1), seen=seen, timed=lambda: walked(keys))

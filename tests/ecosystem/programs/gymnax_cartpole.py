"""gymnax: many episodes of cart-pole and of the mountain car at once."""

import gymnax
import jax
from reporting import report


def episodes(name, act, length=100):
    environment, params = gymnax.make(name)

    def one(key):
        first, rest = jax.random.split(key)

        def step(carry, key):
            observed, state = carry
            action = act(observed)
            observed, state, reward, done, *_ = environment.step(key, state, action, params)
            return (observed, state), (reward, done)

        carry, (rewards, done) = jax.lax.scan(
            step, environment.reset(first, params), jax.random.split(rest, length)
        )
        return carry[0], rewards.sum(), done.sum()

    return jax.jit(jax.vmap(one))


keys = jax.random.split(jax.random.key(0), 32)
cartpole = episodes("CartPole-v1", lambda o: (o[2] + 0.3 * o[3] > 0).astype(int))
car = episodes("MountainCar-v0", lambda o: 2 * (o[1] > 0).astype(int))
observed, rewards, done = cartpole(keys)
report(
    observed=observed,
    rewards=rewards,
    done=done,
    car=car(keys)[0],
    timed=lambda: cartpole(keys),
)

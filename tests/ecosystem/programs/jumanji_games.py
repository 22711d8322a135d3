"""jumanji: games of 2048 and of the snake, many at once, by random moves."""

import jax
import jax.numpy as jnp
import jumanji
from reporting import report


def played(name, length):
    environment = jumanji.make(name)

    def game(key):
        first, rest = jax.random.split(key)
        state, told = environment.reset(first)

        def move(carry, key):
            state, told = carry
            logits = jnp.where(told.observation.action_mask, 0.0, -1e9)
            state, told = environment.step(state, jax.random.categorical(key, logits))
            return (state, told), (told.reward, told.last())

        (_, told), (rewards, ends) = jax.lax.scan(
            move, (state, told), jax.random.split(rest, length)
        )
        return told.observation, rewards, ends

    return jax.jit(jax.vmap(game))


keys = jax.random.split(jax.random.key(0), 8)
tiles, snake = played("Game2048-v1", 20), played("Snake-v1", 12)
observed, rewards, ends = tiles(keys)
crawled = snake(keys)
report(
    board=observed.board,
    rewards=rewards,
    ends=ends,
    snake=crawled[0].grid.sum((1, 2)),
    fruits=crawled[1],
    timed=lambda: tiles(keys),
)

"""pgx: games of Connect Four and of tic-tac-toe, many at once, by random legal moves."""

import jax
import jax.numpy as jnp
import pgx
from reporting import report


def played(name, length):
    environment = pgx.make(name)

    def game(key):
        def move(state, key):
            logits = jnp.where(state.legal_action_mask, 0.0, -1e9)
            state = environment.step(state, jax.random.categorical(key, logits))
            return state, state.rewards

        state, rewards = jax.lax.scan(move, environment.init(key), jax.random.split(key, length))
        return state.observation.sum((0, 1)), rewards.sum(0), state.terminated

    return jax.jit(jax.vmap(game))


keys = jax.random.split(jax.random.key(0), 16)
four, three = played("connect_four", 24), played("tic_tac_toe", 9)
observed, rewards, ended = four(keys)
report(
    observed=observed,
    rewards=rewards,
    ended=ended,
    three=three(keys)[1],
    timed=lambda: four(keys),
)

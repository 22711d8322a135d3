"""Reinforcement learning: balancing a pole on a cart, by policy gradients.

You learn: an environment written in array operations, so that hundreds of games, the policy and
its gradient are one compiled program (REINFORCE: Williams, 1992).

    python examples/cartpole.py
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from rich.progress import track

import axir as jax
import axir.numpy as jnp
from axir import lax, random
from axir.example_libraries import optimizers, stax
from axir.example_libraries.stax import Dense, Tanh

GAMES, LENGTH, DT = 64, 200, 0.02

policy_init, policy = stax.serial(Dense(32), Tanh, Dense(2))


def push(state, force):
    """Moves cart and pole (Barto, Sutton and Anderson, 1983): masses 1 and 0.1 kg, pole of 1 m."""
    _, speed, angle, spin = state
    sine, cosine = jnp.sin(angle), jnp.cos(angle)
    pushed = (force + 0.05 * spin**2 * sine) / 1.1
    turn = (9.8 * sine - cosine * pushed) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
    slide = pushed - 0.05 * turn * cosine / 1.1
    return state + DT * jnp.stack([speed, slide, spin, turn])


def play(params, key):
    """Plays a game; returns the states, the choices, and which of the steps were before a fall."""
    key_start, key_choices = random.split(key)

    def move(carry, key):
        state, is_up = carry
        choice = random.categorical(key, policy(params, state))
        after = push(state, jnp.where(choice == 1, 10.0, -10.0))
        still_up = is_up & (jnp.abs(after[0]) < 2.4) & (jnp.abs(after[2]) < 0.21)
        return (jnp.where(still_up, after, state), still_up), (state, choice, is_up)

    start = random.uniform(key_start, (4,), minval=-0.05, maxval=0.05)
    return lax.scan(move, (start, jnp.array(True)), random.split(key_choices, LENGTH))[1]


def surrogate(params, states, choices, advantages):
    """Returns a number with the gradient of the expected length of a game."""
    scores = jax.nn.log_softmax(policy(params, states))
    chosen = jnp.take_along_axis(scores, choices[..., None], -1)[..., 0]
    return -jnp.mean(jnp.sum(chosen * advantages, axis=1))


def main(steps: int = 150, out: str | Path = "cartpole.png") -> float:
    """Trains and draws; returns the mean length of the last games in steps."""
    opt_init, update, get_params = optimizers.adam(1e-2)

    @jax.jit
    def learn(i, state, key):
        params = get_params(state)
        states, choices, is_up = jax.vmap(play, (None, 0))(params, random.split(key, GAMES))
        left = jnp.cumsum(is_up[:, ::-1], axis=1)[:, ::-1]  # how long it goes on from here
        advantages = jnp.where(is_up, left - left.mean(axis=0), 0) / (left.std() + 1e-6)
        gradient = jax.grad(surrogate)(params, states, choices, advantages)
        return is_up.sum(axis=1), states[0], update(i, gradient, state)

    state, lengths, games = opt_init(policy_init(random.key(0), (4,))[1]), [], []
    for i in track(range(steps), f"{GAMES} games at a time"):
        length, game, state = learn(i, state, random.key(i))
        lengths.append(np.asarray(length))
        games.append(np.asarray(game))
    means = np.mean(lengths, axis=1)
    print(f"games last {means[0]:.0f} -> {means[-1]:.0f} of {LENGTH} steps")

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    left.fill_between(range(steps), *np.percentile(lengths, [10, 90], axis=1), alpha=0.2)
    left.plot(means)
    left.set(xlabel="update", ylabel="steps until the fall", title="mean, and 80 % of the games")
    times = DT * np.arange(LENGTH)
    for index, name in ((0, "first game"), (-1, "last game")):
        right.plot(times, np.degrees(games[index][:, 2]), label=name)
    right.set(xlabel="seconds", ylabel="degrees", title="angle of the pole")
    right.legend()
    figure.savefig(out, dpi=80)
    plt.close(figure)
    return float(means[-1])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--out", default="cartpole.png")
    main(**vars(parser.parse_args()))

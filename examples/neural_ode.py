"""A neural differential equation: a network learns the law by which a pendulum with friction moves.

You learn: `odeint` inside a loss (its gradient solves the adjoint equation backwards); a network as
the right-hand side of an equation.

    python examples/neural_ode.py
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from rich.progress import track

import axir as jax
import axir.numpy as jnp
from axir import random
from axir.example_libraries import optimizers, stax
from axir.example_libraries.stax import Dense, Tanh
from axir.experimental.ode import odeint

TIMES = jnp.linspace(0.0, 3.0, 16)

network_init, network = stax.serial(Dense(32), Tanh, Dense(2))


def pendulum(state, time):
    """The true law: angle and angular speed, with gravity and friction."""
    angle, speed = state
    return jnp.stack([speed, -2 * jnp.sin(angle) - 0.2 * speed])


def learned(state, time, params):
    """The law that the network has learned so far."""
    return network(params, state)


def loss(params, starts, paths):
    """Returns how far the learned paths are from the measured ones, squared."""
    solve = jax.vmap(lambda start: odeint(learned, start, TIMES, params, rtol=1e-3, atol=1e-3))
    return jnp.mean((solve(starts) - paths) ** 2)


def main(steps: int = 400, out: str | Path = "neural_ode.png") -> float:
    """Trains and draws; returns the last loss."""
    key_starts, key_noise, key_network = random.split(random.key(0), 3)
    starts = random.uniform(key_starts, (12, 2), minval=-2, maxval=2)
    paths = jax.vmap(lambda start: odeint(pendulum, start, TIMES))(starts)
    paths = paths + 0.02 * random.normal(key_noise, paths.shape)
    opt_init, update, get_params = optimizers.adam(1e-2)

    @jax.jit
    def step(i, state):
        value, gradient = jax.value_and_grad(loss)(get_params(state), starts, paths)
        return value, update(i, gradient, state)

    state, losses = opt_init(network_init(key_network, (2,))[1]), []
    for i in track(range(steps), "learning the law"):
        value, state = step(i, state)
        losses.append(float(value))
    print(f"mean squared error {losses[0]:.3f} -> {losses[-1]:.4f} (the noise is 0.0004)")

    params = get_params(state)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    side = jnp.linspace(-2.5, 2.5, 18)
    x, y = jnp.meshgrid(side, side)
    u, v = network(params, jnp.stack([x, y], -1)).transpose(2, 0, 1)
    left.streamplot(*map(np.asarray, (x, y, u, v)), color="C0", linewidth=0.6, density=1.1)
    left.plot(*paths.transpose(2, 1, 0), "k.", ms=2)
    left.set(xlabel="angle", ylabel="speed", title="the learned law, and measured paths")
    long = jnp.linspace(0.0, 9.0, 120)
    for law, style in ((pendulum, "k"), (lambda s, t: learned(s, t, params), "C1--")):
        right.plot(long, odeint(law, jnp.array([1.5, 0.0]), long)[:, 0], style)
    right.axvspan(3, 9, alpha=0.1)
    right.set(xlabel="time", title="true and learned angle, also after what was seen")
    figure.savefig(out, dpi=80)
    plt.close(figure)
    return losses[-1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--out", default="neural_ode.png")
    main(**vars(parser.parse_args()))

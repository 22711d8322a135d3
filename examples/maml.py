"""Learning to learn: a network that fits any sine curve after one step of gradient descent.

You learn: gradients of gradients without a thought (the inner step is a `grad`, the outer one
differentiates it), `vmap` over tasks (MAML: Finn, Abbeel and Levine, 2017).

    python examples/maml.py
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
from axir.example_libraries.stax import Dense, Relu

TASKS, POINTS, RATE = 25, 10, 0.02

network_init, network = stax.serial(Dense(40), Relu, Dense(40), Relu, Dense(1))


def error(params, x, y):
    """Returns the mean squared error."""
    return jnp.mean((network(params, x) - y) ** 2)


def adapt(params, x, y):
    """Returns the parameters after one step on a task."""
    gradient = jax.grad(error)(params, x, y)
    return jax.tree.map(lambda p, g: p - RATE * g, params, gradient)


def error_after_adapting(params, task):
    """Returns the error at new points of a task, after a step at known ones."""
    known_x, known_y, new_x, new_y = task
    return error(adapt(params, known_x, known_y), new_x, new_y)


def meta_loss(params, tasks):
    """Returns the mean over tasks."""
    return jnp.mean(jax.vmap(error_after_adapting, (None, 0))(params, tasks))


def sample_tasks(rng, count):
    """Draws sine curves of any height and phase, with known and new points of each."""
    height, phase = rng.uniform(0.1, 2, (count, 1, 1)), rng.uniform(0, np.pi, (count, 1, 1))
    known, new = rng.uniform(-5, 5, (2, count, POINTS, 1))
    curve = lambda x: height * np.sin(x - phase)  # noqa: E731
    return [a.astype(np.float32) for a in (known, curve(known), new, curve(new))]


def main(steps: int = 6000, out: str | Path = "maml.png") -> float:
    """Trains and draws; returns the mean error of the last steps."""
    opt_init, update, get_params = optimizers.adam(1e-3)

    @jax.jit
    def step(i, state, tasks):
        value, gradient = jax.value_and_grad(meta_loss)(get_params(state), tasks)
        return value, update(i, gradient, state)

    state, losses, rng = (
        opt_init(network_init(random.key(0), (1,))[1]),
        [],
        np.random.default_rng(0),
    )
    for i in track(range(steps), "learning to learn"):
        value, state = step(i, state, sample_tasks(rng, TASKS))
        losses.append(float(value))
    last = float(np.mean(losses[-100:]))
    print(f"error after one step on a new curve: {losses[0]:.2f} -> {last:.3f}")

    params = get_params(state)
    grid = np.linspace(-5, 5, 100, dtype=np.float32)[:, None]
    x = np.linspace(-4, 4, POINTS, dtype=np.float32)[:, None]
    y = 1.5 * np.sin(x - 1)
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    axes.plot(grid, 1.5 * np.sin(grid - 1), "k", lw=0.7, label="a new curve")
    axes.plot(x, y, "k.", label="what is known of it")
    for count in range(4):
        axes.plot(grid, network(params, grid), color=f"C{count}", label=f"after {count} steps")
        params = adapt(params, x, y)
    axes.legend(ncols=3)
    figure.savefig(out, dpi=80)
    plt.close(figure)
    return last


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--out", default="maml.png")
    main(**vars(parser.parse_args()))

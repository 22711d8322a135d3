"""Hamiltonian Monte Carlo: samples of a distribution with a known density.

You learn: `grad` as the force that moves particles, a trajectory as one `lax.fori_loop`, a chain
as one `lax.scan`, and `vmap` to run a hundred chains of it at once.

    python examples/hmc.py
"""

from __future__ import annotations

import argparse
import functools
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from rich.progress import track

import axir as jax
import axir.numpy as jnp
from axir import lax, random

CHAINS, BLOCK = 100, 10


def log_density(x):
    """Returns a density that is hard to walk in: a long and curved valley."""
    return -((1 - x[0]) ** 2) / 20 - (x[1] - x[0] ** 2 / 4) ** 2


def leapfrog(x, momentum, size, steps):
    """Moves a particle along the density's hills, keeping its energy but for small errors."""
    force = jax.grad(log_density)

    def move(_, particle):
        x, momentum = particle
        momentum = momentum + 0.5 * size * force(x)
        x = x + size * momentum
        return x, momentum + 0.5 * size * force(x)

    return lax.fori_loop(0, steps, move, (x, momentum))


def transition(x, key, size=0.12, steps=25):
    """Kicks the particle, lets it run, and stays where it was if the energy was not kept."""
    key_kick, key_choice = random.split(key)
    kick = random.normal(key_kick, x.shape)
    proposed, momentum = leapfrog(x, kick, size, steps)
    before = log_density(x) - 0.5 * kick @ kick
    after = log_density(proposed) - 0.5 * momentum @ momentum
    is_accepted = jnp.log(random.uniform(key_choice)) < after - before
    x = jnp.where(is_accepted, proposed, x)
    return x, (x, is_accepted)


@jax.jit
@functools.partial(jax.vmap, in_axes=(0, 0))
def run_chain(x, key):
    """Runs each of many chains for a while; returns where they are, and where they were."""
    return lax.scan(transition, x, random.split(key, BLOCK))


def main(steps: int = 50, out: str | Path = "hmc.png") -> float:
    """Samples, draws; returns the share of accepted moves."""
    key, start = random.split(random.key(0))
    positions = random.normal(start, (CHAINS, 2))
    samples, accepted = [], []
    for i in track(range(steps), f"{CHAINS} chains"):
        keys = random.split(random.fold_in(key, i), CHAINS)
        positions, (visited, is_accepted) = run_chain(positions, keys)
        samples.append(np.asarray(visited))
        accepted.append(np.asarray(is_accepted))
    kept = np.concatenate(samples[len(samples) // 5 :], axis=1)
    rate = float(np.mean(accepted))
    print(f"{kept[..., 0].size:,} samples, {rate:.1%} accepted")
    print(f"mean of x {kept[..., 0].mean():.2f} (exact 1), variance {kept[..., 0].var():.1f} (10)")

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    cloud = kept.reshape(-1, 2)[:: max(1, kept.size // 16000)]
    left.scatter(*cloud.T, s=1, alpha=0.3)
    left.plot(*kept[0, :60].T, "C1.-", lw=0.6, ms=3)
    left.set(title="samples, and one chain", xlabel="x", ylabel="y")
    grid = np.linspace(-10, 12, 200)
    right.hist(kept[..., 0].ravel(), 60, density=True, alpha=0.5, label="sampled")
    right.plot(grid, np.exp(-((grid - 1) ** 2) / 20) / np.sqrt(20 * np.pi), "k", label="exact")
    right.set(title="distribution of x")
    right.legend()
    figure.savefig(out, dpi=80)
    plt.close(figure)
    return rate


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=50, help=f"blocks of {BLOCK} moves")
    parser.add_argument("--out", default="hmc.png")
    main(**vars(parser.parse_args()))

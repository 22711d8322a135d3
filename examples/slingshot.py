"""A space probe finds its way past two moving planets, by gradients through the simulation.

You learn: a physics simulation as one `lax.scan`, its derivative by `value_and_grad` as for any
function, and `vmap` to try many launches at once.

    python examples/slingshot.py
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from rich.progress import track

import axir as jax
import axir.numpy as jnp
from axir import lax

START, TARGET = jnp.array([-3.0, -1.0]), jnp.array([3.0, 2.0])
STEPS, DT = 300, 0.02


def planets(time):
    """Returns where the two planets are, shape (2, 2)."""
    angle = 0.6 * time + jnp.array([0.0, jnp.pi])
    return 1.2 * jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=1)


def gravity(position, time):
    """Returns the acceleration of the probe; the planets are not quite points."""
    away = planets(time) - position
    return jnp.sum(away / (jnp.sum(away**2, axis=1, keepdims=True) + 0.05) ** 1.5, axis=0)


def fly(velocity):
    """Returns the path of a probe that starts with a velocity, shape (STEPS, 2)."""

    def move(state, time):
        position, velocity = state
        velocity = velocity + DT * gravity(position, time)
        position = position + DT * velocity
        return (position, velocity), position

    return lax.scan(move, (START, velocity), DT * jnp.arange(STEPS))[1]


def miss(velocity):
    """Returns how far from the target the flight ends, squared."""
    return jnp.sum((fly(velocity)[-1] - TARGET) ** 2)


def main(steps: int = 200, out: str | Path = "slingshot.png") -> float:
    """Corrects the launch step by step, draws the flights; returns the last distance."""
    angles = np.linspace(-0.6, 0.9, 8)
    velocities = jnp.array(1.3 * np.stack([np.cos(angles), np.sin(angles)], axis=1), jnp.float32)

    @jax.jit
    @jax.vmap
    def correct(velocity):
        value, gradient = jax.value_and_grad(miss)(velocity)
        # A short step: near a planet the derivative is huge, and right only nearby.
        return value, velocity - 0.02 * gradient / (1 + jnp.linalg.norm(gradient))

    flights = jax.jit(jax.vmap(fly))
    first, best = np.asarray(flights(velocities)), []
    for _ in track(range(steps), "correcting eight launches"):
        values, velocities = correct(velocities)
        best.append(float(values.min()))
    last = np.asarray(flights(velocities))
    misses = np.linalg.norm(last[:, -1] - np.asarray(TARGET), axis=1)
    chosen = int(misses.argmin())
    print(f"launch {np.asarray(velocities[chosen]).round(3)} misses by {misses[chosen]:.4f}")

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    orbit = np.stack([planets(t) for t in np.arange(0, STEPS * DT, 0.2)])
    left.plot(*orbit.transpose(2, 0, 1), color="C7", lw=0.6)
    left.plot(*first.T, color="C0", lw=0.5, alpha=0.6)
    left.plot(*last[chosen].T, color="C1", lw=2)
    left.plot(*START, "k>", *TARGET, "k*", ms=10)
    left.set(xlim=(-4, 4), ylim=(-3.5, 3.5), title="first launches, and the one that was found")
    right.semilogy(best)
    right.set(xlabel="correction", title="squared distance of the best launch")
    figure.savefig(out, dpi=80)
    plt.close(figure)
    return float(misses[chosen])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--out", default="slingshot.png")
    main(**vars(parser.parse_args()))

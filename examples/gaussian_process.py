"""Gaussian process regression: a curve through noisy points, and how sure one can be of it.

You learn: kernels of two points made matrices by two `vmap`s, gradients through a Cholesky
factorization, linear algebra in `axir.scipy`.

    python examples/gaussian_process.py
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
from axir.scipy.linalg import cho_factor, cho_solve


def kernel(params, x, y):
    """Returns the covariance of the values at two points: smooth, of some height and length."""
    return jnp.exp(params["height"] - 0.5 * ((x - y) / jnp.exp(params["length"])) ** 2)


def covariance(params, xs, ys):
    """Returns the covariances of all pairs of points."""
    return jax.vmap(lambda x: jax.vmap(lambda y: kernel(params, x, y))(ys))(xs)


def factor(params, xs):
    """Returns the Cholesky factor of the covariance of measured values."""
    noise = jnp.exp(params["noise"]) + 1e-5
    return cho_factor(covariance(params, xs, xs) + noise * jnp.eye(len(xs)), lower=True)


def surprise(params, xs, ys):
    """Returns the negative log marginal likelihood (Rasmussen and Williams, 2006, eq. 2.30)."""
    root, is_lower = factor(params, xs)
    fit = 0.5 * ys @ cho_solve((root, is_lower), ys)
    return fit + jnp.sum(jnp.log(jnp.diag(root))) + 0.5 * len(xs) * jnp.log(2 * jnp.pi)


def posterior(params, xs, ys, grid):
    """Returns mean and covariance of the curve at the points of a grid."""
    across, solve = covariance(params, grid, xs), factor(params, xs)
    mean = across @ cho_solve(solve, ys)
    return mean, covariance(params, grid, grid) - across @ cho_solve(solve, across.T)


def main(steps: int = 300, out: str | Path = "gaussian_process.png") -> float:
    """Fits the kernel, draws; returns the last loss."""
    key_x, key_noise, key_curves = random.split(random.key(4), 3)
    xs = jnp.sort(random.uniform(key_x, (24,), minval=-4, maxval=4))
    ys = jnp.sin(2 * xs) + 0.3 * xs + 0.2 * random.normal(key_noise, xs.shape)
    params = {"height": jnp.zeros(()), "length": jnp.array(-0.5), "noise": jnp.array(-2.0)}

    @jax.jit
    def step(params):
        value, gradient = jax.value_and_grad(surprise)(params, xs, ys)
        return value, jax.tree.map(lambda p, g: p - 0.02 * jnp.clip(g, -5, 5), params, gradient)

    losses = []
    for _ in track(range(steps), "fitting the kernel"):
        value, params = step(params)
        losses.append(float(value))
    fitted = {name: f"{float(jnp.exp(value)):.3f}" for name, value in params.items()}
    print(f"surprise {losses[0]:.1f} -> {losses[-1]:.1f}, kernel {fitted}")

    grid = jnp.linspace(-6, 6, 120)
    mean, spread = posterior(params, xs, ys, grid)
    deviation = jnp.sqrt(jnp.diag(spread).clip(0))
    curves = random.multivariate_normal(key_curves, mean, spread, (3,), method="svd")
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    axes.fill_between(grid, mean - 2 * deviation, mean + 2 * deviation, alpha=0.2, label="95 %")
    axes.plot(grid, curves.T, lw=0.7, color="C0", alpha=0.6)
    axes.plot(grid, mean, color="C0", label="mean")
    axes.plot(xs, ys, "k.", label="measured")
    axes.set(title="what is known of the curve: three that it may be")
    axes.legend()
    figure.savefig(out, dpi=80)
    plt.close(figure)
    return float(np.float32(losses[-1]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--out", default="gaussian_process.png")
    main(**vars(parser.parse_args()))

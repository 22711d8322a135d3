"""Differentially private training: a classifier that does not reveal its training set.

You learn: a gradient for each example by `vmap(grad(...))`, clipped one by one, with noise from
explicit keys (DP-SGD: Abadi et al., 2016), and the cost in privacy.

    python examples/private.py
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from rich.progress import track
from scipy.special import gammaln, logsumexp
from sklearn.datasets import load_digits

import axir as jax
import axir.numpy as jnp
from axir import random
from axir.example_libraries import stax
from axir.example_libraries.stax import Dense, LogSoftmax, Tanh

RATE, CLIP, NOISE, SHARE, DELTA = 0.5, 1.0, 2.0, 0.1, 1e-4

model_init, predict = stax.serial(Dense(32), Tanh, Dense(10), LogSoftmax)


def loss(params, image, label):
    """Returns the cross-entropy of one example."""
    return -predict(params, image)[label]


def clipped_gradient(params, image, label):
    """Returns one example's gradient, made no longer than CLIP."""
    gradient = jax.grad(loss)(params, image, label)
    length = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(gradient)))
    return jax.tree.map(lambda g: g / jnp.maximum(1, length / CLIP), gradient)


@jax.jit
def step(params, key, images, labels):
    """One step: a random share of the examples, their clipped gradients, and noise."""
    key_share, key_noise = random.split(key)
    chosen = random.bernoulli(key_share, SHARE, (len(images),))
    gradients = jax.vmap(clipped_gradient, (None, 0, 0))(params, images, labels)
    leaves, tree = jax.tree.flatten(params)
    keys = jax.tree.unflatten(tree, list(random.split(key_noise, len(leaves))))

    def private(p, g, key):
        total = jnp.tensordot(chosen.astype(p.dtype), g, 1)
        noisy = total + NOISE * CLIP * random.normal(key, p.shape)
        return p - RATE * noisy / (SHARE * len(images))

    return jax.tree.map(private, params, gradients, keys)


def epsilon(steps: int) -> float:
    """Returns the privacy spent, for DELTA.

    Renyi divergence of a Gaussian mechanism on a random share of the examples, at whole orders
    (Mironov, Talwar and Zhang, 2019, section 3.3), made epsilon (Mironov, 2017, proposition 3).
    """
    spent = []
    for order in range(2, 64):
        k = np.arange(order + 1)
        ways = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
        shares = k * np.log(SHARE) + (order - k) * np.log1p(-SHARE)
        divergence = logsumexp(ways + shares + (k**2 - k) / (2 * NOISE**2)) / (order - 1)
        spent.append(steps * divergence + np.log(1 / DELTA) / (order - 1))
    return float(min(spent))


def main(steps: int = 300, out: str | Path = "private.png") -> float:
    """Trains and draws; returns the accuracy on digits that were not seen."""
    data, targets = load_digits(return_X_y=True)
    images, labels = (data / 16).astype(np.float32), targets.astype(np.int32)
    known, new = slice(0, 1437), slice(1437, None)
    params = model_init(random.key(0), (64,))[1]
    every, curve = max(1, steps // 30), []
    for i in track(range(steps), "training in private"):
        params = step(params, random.key(i + 1), images[known], labels[known])
        if (i + 1) % every == 0:
            guesses = predict(params, images[new]).argmax(axis=1)
            curve.append((epsilon(i + 1), float(np.mean(guesses == labels[new]))))
    spent, accuracy = np.array(curve).T
    print(f"accuracy {accuracy[-1]:.1%} for epsilon {spent[-1]:.2f}, delta {DELTA:g}")

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    axes.plot(spent, 100 * accuracy, ".-")
    axes.set(xlabel="privacy spent (epsilon)", ylabel="accuracy in %", ylim=(0, 100))
    axes.set(title="what is learned about digits, and about those who wrote them")
    figure.savefig(out, dpi=80)
    plt.close(figure)
    return float(accuracy[-1])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--out", default="private.png")
    main(**vars(parser.parse_args()))

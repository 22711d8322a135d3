"""An image classifier with convolutions, for handwritten digits.

You learn: layers from `stax`, a training step as one compiled function, pictures rotated and
shifted inside it by `vmap`, and the filters that the first layer has learned.

    python examples/convnet.py
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from rich.progress import track
from sklearn.datasets import load_digits

import axir as jax
import axir.numpy as jnp
from axir import lax, random
from axir.example_libraries import optimizers, stax
from axir.example_libraries.stax import Conv, Dense, Flatten, LogSoftmax, MaxPool, Relu

BATCH = 64

model_init, predict = stax.serial(
    Conv(16, (3, 3), padding="SAME"), Relu, MaxPool((2, 2), strides=(2, 2)),
    Conv(32, (3, 3), padding="SAME"), Relu, MaxPool((2, 2), strides=(2, 2)),
    Flatten, Dense(10), LogSoftmax,
)  # fmt: skip


def move(key, image):
    """Moves an image of shape (8, 8, 1) by up to a pixel, so that no two are the same."""
    start = random.randint(key, (2,), 0, 3)
    return lax.dynamic_slice(jnp.pad(image, ((1, 1), (1, 1), (0, 0))), (*start, 0), image.shape)


def loss(params, images, labels):
    """Returns the mean cross-entropy."""
    return -jnp.mean(jnp.sum(jax.nn.one_hot(labels, 10) * predict(params, images), axis=1))


def main(steps: int = 600, out: str | Path = "convnet.png") -> float:
    """Trains and draws; returns the accuracy on digits that were not seen."""
    data, targets = load_digits(return_X_y=True)
    images, labels = (data / 16).astype(np.float32).reshape(-1, 8, 8, 1), targets.astype(np.int32)
    new = slice(1437, None)  # the first 1437 are for training
    opt_init, update, get_params = optimizers.adam(3e-3)

    @jax.jit
    def step(i, state, key, batch, labels):
        moved = jax.vmap(move)(random.split(key, BATCH), batch)
        value, gradient = jax.value_and_grad(loss)(get_params(state), moved, labels)
        return value, update(i, gradient, state)

    state, losses = opt_init(model_init(random.key(0), (BATCH, 8, 8, 1))[1]), []
    rng = np.random.default_rng(0)
    for i in track(range(steps), "training"):
        chosen = rng.integers(0, 1437, BATCH)
        value, state = step(i, state, random.key(i), images[chosen], labels[chosen])
        losses.append(float(value))
    params = get_params(state)
    scores = np.exp(predict(params, images[new]))
    accuracy = float(np.mean(scores.argmax(axis=1) == labels[new]))
    print(f"accuracy {accuracy:.1%} on {len(scores)} digits that were not seen")

    figure = plt.figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subfigures(1, 2)
    filters = np.asarray(params[0][0])[:, :, 0]
    for index, axis in enumerate(left.subplots(4, 4).flat):
        axis.imshow(filters[..., index], cmap="RdBu", vmin=-0.8, vmax=0.8)
        axis.axis("off")
    left.suptitle("what the first layer looks for")
    hardest = scores[np.arange(len(scores)), labels[new]].argsort()[:15]
    for index, axis in zip(hardest, right.subplots(3, 5).flat, strict=True):
        axis.imshow(images[new][index, ..., 0], cmap="gray_r")
        axis.set_title(f"{scores[index].argmax()}, not {labels[new][index]}", fontsize=8)
        axis.axis("off")
    right.suptitle("the hardest: guess and truth")
    figure.savefig(out, dpi=80)
    plt.close(figure)
    return accuracy


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--out", default="convnet.png")
    main(**vars(parser.parse_args()))

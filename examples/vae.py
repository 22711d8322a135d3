"""A variational autoencoder that lays handwritten digits out on a plane.

You learn: networks from `stax`, random keys inside of a loss, the reparametrization trick, `vmap`
to draw a whole plane of digits at once.

    python examples/vae.py
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
from axir import random
from axir.example_libraries import optimizers, stax
from axir.example_libraries.stax import Dense, FanOut, Softplus, Tanh

BATCH, LATENT = 128, 2

encoder_init, encode = stax.serial(
    Dense(128), Tanh, Dense(64), Tanh,
    FanOut(2), stax.parallel(Dense(LATENT), stax.serial(Dense(LATENT), Softplus)),
)  # fmt: skip
decoder_init, decode = stax.serial(Dense(64), Tanh, Dense(128), Tanh, Dense(64))


def negative_elbo(params, key, images):
    """Returns the loss: bits lost in the picture, and bits spent on the code (Kingma, 2014)."""
    encoder, decoder = params
    mean, deviation = encode(encoder, images)
    code = mean + deviation * random.normal(key, mean.shape)
    logits = decode(decoder, code)
    # The logarithm of the likelihood of grey pixels as probabilities of ink.
    likelihood = jnp.sum(images * logits - jnp.logaddexp(0, logits), axis=1)
    spent = 0.5 * jnp.sum(mean**2 + deviation**2 - 1 - 2 * jnp.log(deviation + 1e-6), axis=1)
    return jnp.mean(spent - likelihood)


def main(steps: int = 4000, out: str | Path = "vae.png") -> float:
    """Trains and draws; returns the mean loss of the last steps."""
    data, labels = load_digits(return_X_y=True)
    images = (data / 16).astype(np.float32)
    key_encoder, key_decoder, key = random.split(random.key(0), 3)
    encoder = encoder_init(key_encoder, (BATCH, 64))[1]
    decoder = decoder_init(key_decoder, (BATCH, LATENT))[1]
    opt_init, update, get_params = optimizers.adam(2e-3)

    @jax.jit
    def step(i, state, key, batch):
        value, gradient = jax.value_and_grad(negative_elbo)(get_params(state), key, batch)
        return value, update(i, gradient, state)

    rng, losses = np.random.default_rng(0), []
    state = opt_init((encoder, decoder))
    for i in track(range(steps), "training"):
        batch = images[rng.integers(0, len(images), BATCH)]
        value, state = step(i, state, random.fold_in(key, i), batch)
        losses.append(float(value))
    print(f"negative ELBO {losses[0]:.1f} -> {np.mean(losses[-50:]):.1f} nats per digit")

    encoder, decoder = get_params(state)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.5), layout="constrained")
    means = encode(encoder, images)[0]
    points = left.scatter(*means.T, c=labels, cmap="tab10", s=4)
    left.set(title="where each digit lies", aspect="equal")
    figure.colorbar(points, ax=left, ticks=range(10))
    side = jnp.linspace(-2, 2, 15)
    plane = jnp.stack(jnp.meshgrid(side, -side), -1)
    drawn = jax.nn.sigmoid(decode(decoder, plane)).reshape(15, 15, 8, 8)
    right.imshow(drawn.swapaxes(1, 2).reshape(120, 120), cmap="gray_r")
    right.set(title="what each place shows")
    right.axis("off")
    figure.savefig(out, dpi=80)
    plt.close(figure)
    return float(np.mean(losses[-50:]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--out", default="vae.png")
    main(**vars(parser.parse_args()))

"""A character transformer, from scratch, that learns to write like axir's own documentation.

You learn: parameters as trees, `value_and_grad` of a whole model, one `jit` for a training step,
`lax.scan` to write text in one compiled loop, keys for randomness.

    python examples/transformer.py
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
from axir.example_libraries import optimizers

CONTEXT, WIDTH, HEADS, LAYERS, BATCH = 64, 64, 4, 2, 32


def read_text() -> tuple[np.ndarray, str]:
    """Returns the documentation as positions in an alphabet, and the alphabet."""
    root = Path(__file__).parents[1]
    text = "\n".join(path.read_text() for path in [root / "README.md", root / "docs/design.md"])
    alphabet = "".join(sorted(set(text)))
    return np.array([alphabet.index(letter) for letter in text], np.int32), alphabet


def init(key, letters):
    """Draws the parameters: embeddings, and for each layer attention and a small network."""
    shapes = {"qkv": (WIDTH, 3 * WIDTH), "out": (WIDTH, WIDTH)}
    shapes |= {"up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}
    keys = iter(random.split(key, 2 + len(shapes) * LAYERS))
    draw = lambda shape: random.normal(next(keys), shape) / np.sqrt(shape[0])  # noqa: E731
    layers = [{name: draw(shape) for name, shape in shapes.items()} for _ in range(LAYERS)]
    return {"letters": draw((letters, WIDTH)), "places": draw((CONTEXT, WIDTH)), "layers": layers}


def attend(layer, x):
    """Causal self-attention: each position attends to earlier ones; also returns the weights."""
    q, k, v = jnp.split((x @ layer["qkv"]).reshape(-1, HEADS, 3 * WIDTH // HEADS), 3, axis=-1)
    scores = jnp.einsum("qhd,khd->hqk", q, k) / np.sqrt(q.shape[-1])
    weights = jax.nn.softmax(jnp.where(jnp.tri(len(x), dtype=bool), scores, -1e9))
    return jnp.einsum("hqk,khd->qhd", weights, v).reshape(x.shape) @ layer["out"], weights


def predict(params, text):
    """Returns the scores of the next letter at each place, and the first layer's attention."""
    x = params["letters"][text] + params["places"]
    looks = []
    for layer in params["layers"]:
        seen, weights = attend(layer, jax.nn.standardize(x))
        x = x + seen
        x = x + jax.nn.gelu(jax.nn.standardize(x) @ layer["up"]) @ layer["down"]
        looks.append(weights)
    return jax.nn.standardize(x) @ params["letters"].T, looks[0]


def loss(params, windows):
    """Returns the mean surprise at the next letter, in nats."""
    scores, _ = jax.vmap(predict, (None, 0))(params, windows[:, :-1])
    surprise = -jax.nn.log_softmax(scores)
    return jnp.mean(jnp.take_along_axis(surprise, windows[:, 1:, None], -1))


@functools.partial(jax.jit, static_argnums=3)
def write(params, key, start, count):
    """Writes letters one by one, each drawn from the model's prediction."""

    def add_letter(text, key):
        letter = random.categorical(key, predict(params, text)[0][-1] / 0.7)
        return jnp.append(text[1:], letter), letter

    return lax.scan(add_letter, start, random.split(key, count))[1]


def main(steps: int = 1000, out: str | Path = "transformer.png", letters: int = 300) -> float:
    """Trains, writes some letters, draws; returns the last loss."""
    text, alphabet = read_text()
    opt_init, update, get_params = optimizers.adam(3e-3)

    @jax.jit
    def step(i, state, windows):
        value, gradient = jax.value_and_grad(loss)(get_params(state), windows)
        return value, update(i, gradient, state)

    state, losses = opt_init(init(random.key(0), len(alphabet))), []
    rng = np.random.default_rng(0)
    for i in track(range(steps), "reading"):
        starts = rng.integers(0, len(text) - CONTEXT - 1, BATCH)
        value, state = step(i, state, text[starts[:, None] + np.arange(CONTEXT + 1)])
        losses.append(float(value))

    params = get_params(state)
    written = write(params, random.key(1), text[:CONTEXT], letters)
    print(f"loss {losses[0]:.2f} -> {losses[-1]:.2f}; it writes:\n")
    print("".join(alphabet[int(letter)] for letter in written))

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    left.plot(losses)
    left.set(xlabel="step", ylabel="nats per letter", title="surprise at the next letter")
    right.imshow(predict(params, text[:CONTEXT])[1][0], cmap="magma")
    right.set(xlabel="looks at", ylabel="letter", title="one head of the first layer")
    figure.savefig(out, dpi=80)
    plt.close(figure)
    return losses[-1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--out", default="transformer.png")
    main(**vars(parser.parse_args()))

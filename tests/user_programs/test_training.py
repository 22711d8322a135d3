"""Steps of training: networks, their losses, and the updates of their parameters."""

from __future__ import annotations

import numpy as np
from scipy.signal import correlate2d
from scipy.special import expit, log_softmax
from support.program_cases import Program, normal, numerical_gradient, over

import axir as jax
import axir.numpy as jnp
from axir import lax


def descend(loss, parameters, rate, steps):
    """Gradient descent on a function of NumPy arrays."""
    for _ in range(steps):
        slopes = numerical_gradient(loss, parameters)
        parameters = jax.tree.map(lambda p, slope: p - rate * slope, parameters, slopes)
    return parameters


# --- a perceptron, its step compiled once and called from Python

MLP = [(normal(3, 5), normal(5)), (normal(5, 2, seed=1), normal(2, seed=1))]
POINTS, LABELS = normal(8, 3, seed=2), np.arange(8) % 2


def mlp_loss(params, x, labels):
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    logits = x @ w + b
    return -jnp.mean(jnp.sum(jax.nn.one_hot(labels, 2) * jax.nn.log_softmax(logits), axis=-1))


def train_mlp(params, x, labels):
    @jax.jit
    def step(params):
        loss, grads = jax.value_and_grad(mlp_loss)(params, x, labels)
        return jax.tree.map(lambda p, g: p - 0.3 * g, params, grads), loss

    losses = []
    for _ in range(3):
        params, loss = step(params)
        losses.append(loss)
    return params, jnp.stack(losses)


def mlp_loss_numpy(params, x, labels):
    (w1, b1), (w2, b2) = params
    scores = log_softmax(np.maximum(x @ w1 + b1, 0) @ w2 + b2, axis=1)
    return -scores[np.arange(len(labels)), labels].mean()


def train_mlp_numpy(params, x, labels):
    def loss(params):
        return mlp_loss_numpy(params, x, labels)

    path = [params, descend(loss, params, 0.3, 1), descend(loss, params, 0.3, 2)]
    return descend(loss, params, 0.3, 3), np.array([loss(params) for params in path])


# --- per-example gradients: clipped to a norm, summed, noise added


def private_step(params, x, labels, noise):
    per_example = jax.vmap(jax.grad(lambda p, x, y: mlp_loss(p, x[None], y[None])), (None, 0, 0))
    grads = per_example(params, x, labels)
    norms = jnp.sqrt(sum(jnp.sum(g.reshape(8, -1) ** 2, axis=1) for g in jax.tree.leaves(grads)))
    factor = jnp.minimum(1.0, 0.5 / norms)
    total = jax.tree.map(lambda g: jnp.tensordot(factor, g, axes=1), grads)
    return jax.tree.map(lambda p, g, n: p - 0.1 * (g + 0.2 * n) / 8, params, total, noise), norms


def private_step_numpy(params, x, labels, noise):
    norms, clipped = [], []
    for i in range(8):
        one = numerical_gradient(lambda p, i=i: mlp_loss_numpy(p, x[[i]], labels[[i]]), params)
        norms.append(np.sqrt(sum((g**2).sum() for g in jax.tree.leaves(one))))
        clipped.append(jax.tree.map(lambda g: g * min(1, 0.5 / norms[-1]), one))
    total = jax.tree.map(lambda *g: sum(g), *clipped)
    step = jax.tree.map(lambda p, g, n: p - 0.1 * (g + 0.2 * n) / 8, params, total, noise)
    return step, np.array(norms)


# --- a convolutional network with pooling

CNN = {"filters": normal(3, 3, 1, 4, scale=0.5), "dense": normal(16, 3, scale=0.5)}
IMAGES, CLASSES = normal(4, 6, 6, 1, seed=3), np.array([0, 2, 1, 1])


def cnn_loss(params, images, classes):
    dims = ("NHWC", "HWIO", "NHWC")
    x = lax.conv_general_dilated(images, params["filters"], (1, 1), "VALID", dimension_numbers=dims)
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    logits = jnp.tanh(x).reshape(x.shape[0], -1) @ params["dense"]
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), classes[:, None], axis=1).mean()


def train_cnn(params, images, classes):
    def step(params, _):
        loss, grads = jax.value_and_grad(cnn_loss)(params, images, classes)
        return jax.tree.map(lambda p, g: p - 0.2 * g, params, grads), loss

    return lax.scan(step, params, None, length=2)[0]


def train_cnn_numpy(params, images, classes):
    def loss(params):
        total = 0.0
        for image, label in zip(images[..., 0], classes, strict=True):
            maps = [correlate2d(image, params["filters"][:, :, 0, k], "valid") for k in range(4)]
            pooled = np.stack(maps, -1).reshape(2, 2, 2, 2, 4).max(axis=(1, 3))
            total -= log_softmax(np.tanh(pooled).ravel() @ params["dense"])[label]
        return total / len(classes)

    return descend(loss, params, 0.2, 2)


# --- recurrent cells over a sequence

SEQUENCE = normal(5, 2, seed=4)
LSTM = {"w": normal(5, 12, scale=0.5), "b": normal(12, scale=0.5)}
GRU = {"gates": normal(5, 6, scale=0.5), "new": normal(5, 3, scale=0.5)}


def lstm(params, xs):
    def cell(state, x):
        h, c = state
        i, f, g, o = jnp.split(jnp.hstack([x, h]) @ params["w"] + params["b"], 4)
        c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    return lax.scan(cell, (jnp.zeros(3), jnp.zeros(3)), xs)


def lstm_numpy(params, xs):
    h, c, outputs = np.zeros(3), np.zeros(3), []
    for x in xs:
        z = (np.concatenate([x, h]) @ params["w"] + params["b"]).reshape(4, 3)
        c = expit(z[1] + 1) * c + expit(z[0]) * np.tanh(z[2])
        h = expit(z[3]) * np.tanh(c)
        outputs.append(h)
    return (h, c), np.array(outputs)


def gru(params, xs):
    def cell(h, x):
        z, r = jnp.split(jax.nn.sigmoid(jnp.concatenate([x, h]) @ params["gates"]), 2)
        new = jnp.tanh(jnp.concatenate([x, r * h]) @ params["new"])
        return (1 - z) * h + z * new, z

    return lax.scan(cell, jnp.zeros(3), xs, reverse=True)


def gru_numpy(params, xs):
    h, gates = np.zeros(3), []
    for x in xs[::-1]:
        z, r = expit(np.concatenate([x, h]) @ params["gates"]).reshape(2, 3)
        h = (1 - z) * h + z * np.tanh(np.concatenate([x, r * h]) @ params["new"])
        gates.append(z)
    return h, np.array(gates[::-1])


# --- a variational autoencoder: the lower bound of the evidence for given noise

VAE = {"encoder": normal(4, 6), "mean": normal(6, 2), "log": normal(6, 2, seed=1)}
VAE["out"] = normal(2, 4)
PIXELS = (normal(5, 4, seed=5) > 0).astype(np.float32)


def evidence_bound(params, pixels, noise):
    hidden = jax.nn.softplus(pixels @ params["encoder"])
    mean, log_variance = hidden @ params["mean"], hidden @ params["log"] / 4
    logits = (mean + jnp.exp(0.5 * log_variance) * noise) @ params["out"]
    likelihood = -jnp.sum(jnp.logaddexp(0.0, jnp.where(pixels == 1, -1.0, 1.0) * logits), axis=-1)
    divergence = -0.5 * jnp.sum(1 + log_variance - mean**2 - jnp.exp(log_variance), axis=-1)
    return jnp.mean(likelihood - divergence)


def evidence_bound_numpy(params, pixels, noise):
    total = 0.0
    for x, e in zip(pixels, noise, strict=True):
        hidden = np.log1p(np.exp(x @ params["encoder"]))
        mean, log = hidden @ params["mean"], hidden @ params["log"] / 4
        chance = expit((mean + np.exp(log / 2) * e) @ params["out"])
        total += np.sum(x * np.log(chance) + (1 - x) * np.log(1 - chance))
        total -= np.sum((mean**2 + np.exp(log) - 1 - log) / 2)
    return total / len(pixels)


# --- half precision for the products, single precision for the weights


def mixed_precision_step(w, x, y):
    def loss(w16, x16):
        residual = (x16 @ w16).astype(jnp.float32) - y
        return 64.0 * jnp.mean(residual**2)

    grads = jax.grad(loss)(w.astype(jnp.bfloat16), x.astype(jnp.bfloat16))
    assert grads.dtype == jnp.bfloat16
    return w - 0.1 * grads.astype(jnp.float32) / 64.0


def mixed_precision_step_numpy(w, x, y):
    residual = x @ w - y
    return w - 0.1 * 2 * x.T @ residual / residual.size


# --- a deep network whose layers are recomputed in the backward pass


def deep_residual_network(stack, x):
    @jax.checkpoint
    def layer(x, w):
        x = x + jnp.tanh(jax.nn.standardize(x) @ w)
        return x, jnp.mean(x)

    return lax.scan(layer, x, stack)


def deep_residual_network_numpy(stack, x):
    means = []
    for w in stack:
        spread = np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
        x = x + np.tanh((x - x.mean(axis=-1, keepdims=True)) / spread @ w)
        means.append(x.mean())
    return x, np.array(means)


PROGRAMS = [
    Program(train_mlp, (MLP, POINTS, LABELS), train_mlp_numpy),
    Program(
        private_step,
        (MLP, POINTS, LABELS, jax.tree.map(lambda p: normal(*p.shape, seed=9), MLP)),
        private_step_numpy,
    ),
    Program(train_cnn, (CNN, IMAGES, CLASSES), train_cnn_numpy),
    Program(lstm, (LSTM, SEQUENCE), lstm_numpy, gradient=(0, 1)),
    Program(gru, (GRU, SEQUENCE), gru_numpy, gradient=(0, 1)),
    Program(
        evidence_bound, (VAE, PIXELS, normal(5, 2, seed=6)), evidence_bound_numpy, gradient=(0,)
    ),
    Program(
        mixed_precision_step,
        (normal(4, 2), normal(16, 4), normal(16, 2)),
        mixed_precision_step_numpy,
        tolerance=1e-2,
    ),
    Program(
        deep_residual_network,
        (normal(6, 4, 4, scale=0.5), normal(3, 4)),
        deep_residual_network_numpy,
        gradient=(0, 1),
    ),
]


@over(PROGRAMS)
def test_training(program: Program) -> None:
    program.check()

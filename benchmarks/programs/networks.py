"""Networks of images and text: convolutions, attention, transformers; forward and gradient."""

from __future__ import annotations

import numpy as np

from benchmarks.harness.program import floats, integers, weights
from benchmarks.programs.groups import models


def _conv(jax, x, w, stride=1):
    form = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=form)


def _cross_entropy(jax, logits, labels):
    chosen = jax.numpy.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1)
    return -chosen.mean()


def _cnn(jax):
    def forward(params, x):
        for w in params[:2]:
            x = jax.nn.relu(_conv(jax, x, w))
            window = (1, 2, 2, 1)
            x = jax.lax.reduce_window(x, -np.inf, jax.lax.max, window, window, "VALID")
        x = x.reshape(x.shape[0], -1)
        return jax.nn.relu(x @ params[2]) @ params[3]

    return forward


def _cnn_args(batch, side, channels):
    flat = (side // 4) ** 2 * 2 * channels
    params = [
        weights(3, 3, 1, channels),
        weights(3, 3, channels, 2 * channels),
        weights(flat, 64),
        weights(64, 10),
    ]
    return [params, floats(batch, side, side, 1)]


@models.program((32, 28, 16), tiny=(1, 4, 2))
def cnn_forward(jax, *sizes):
    return _cnn(jax), _cnn_args(*sizes)


@models.program((32, 28, 16), tiny=(1, 4, 2), cold=True)
def cnn_training_step(jax, *sizes):
    forward = _cnn(jax)

    def step(params, x, labels):
        loss = lambda p: _cross_entropy(jax, forward(p, x), labels)  # noqa: E731
        value, gradient = jax.value_and_grad(loss)(params)
        return value, [p - 0.1 * g for p, g in zip(params, gradient, strict=True)]

    return step, [*_cnn_args(*sizes), integers(10, sizes[0])]


def _residual(jax):
    def block(params, x):
        def normalize(x, scale):
            mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
            return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale

        h = jax.nn.relu(normalize(_conv(jax, x, params[0]), params[1]))
        return jax.nn.relu(x + normalize(_conv(jax, h, params[2]), params[3]))

    return block


def _residual_args(batch, side, channels):
    w = weights(3, 3, channels, channels)
    return [
        [w, floats(channels), w[::-1].copy(), floats(channels)],
        floats(batch, side, side, channels),
    ]


@models.program((8, 28, 64), tiny=(1, 4, 2))
def resnet_block(jax, *sizes):
    return _residual(jax), _residual_args(*sizes)


@models.program((8, 28, 64), tiny=(1, 4, 2))
def resnet_block_gradient(jax, *sizes):
    block = _residual(jax)
    return jax.grad(lambda p, x: (block(p, x) ** 2).mean()), _residual_args(*sizes)


@models.program((4, 32, 8), tiny=(1, 4, 2))
def unet_forward(jax, batch, side, channels):
    def forward(params, x):
        first = jax.nn.relu(_conv(jax, x, params[0]))
        low = jax.nn.relu(_conv(jax, first, params[1], stride=2))
        low = jax.nn.relu(_conv(jax, low, params[2]))
        high = jax.numpy.repeat(jax.numpy.repeat(low, 2, 1), 2, 2)
        return _conv(jax, jax.numpy.concatenate([first, high], -1), params[3])

    params = [
        weights(3, 3, 3, channels),
        weights(3, 3, channels, 2 * channels),
        weights(3, 3, 2 * channels, 2 * channels),
        weights(3, 3, 3 * channels, 3),
    ]
    return forward, [params, floats(batch, side, side, 3)]


def _attention(jax):
    jnp = jax.numpy

    def attention(q, k, v):
        length = q.shape[1]
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)

    return attention


_HEADS = {"128": (4, 128, 8, 32), "1024": (1, 1024, 4, 64), "odd": (1, 77, 3, 20)}


@models.program(_HEADS, tiny=(1, 3, 2, 2), cold=True)
def attention(jax, *shape):
    return _attention(jax), [floats(*shape), -floats(*shape), floats(*shape)]


@models.program((4, 128, 8, 32), tiny=(1, 3, 2, 2))
def attention_gradient(jax, *shape):
    attend = _attention(jax)
    loss = lambda *args: (attend(*args) ** 2).sum()  # noqa: E731
    return jax.grad(loss, argnums=(0, 1, 2)), [floats(*shape), -floats(*shape), floats(*shape)]


def _transformer(jax, heads=4):
    jnp, attend = jax.numpy, _attention(jax)

    def normalize(x):
        centered = x - x.mean(-1, keepdims=True)
        return centered / jnp.sqrt((centered**2).mean(-1, keepdims=True) + 1e-6)

    def block(params, x):
        batch, length, width = x.shape
        qkv = (normalize(x) @ params["qkv"]).reshape(batch, length, 3, heads, width // heads)
        mixed = attend(*(qkv[:, :, i] for i in range(3))).reshape(x.shape)
        x = x + mixed @ params["out"]
        return x + jax.nn.gelu(normalize(x) @ params["up"]) @ params["down"]

    return block


def _transformer_args(batch, length, width):
    shapes = {
        "qkv": (width, 3 * width),
        "out": (width, width),
        "up": (width, 4 * width),
        "down": (4 * width, width),
    }
    params = {name: weights(*shape) for name, shape in shapes.items()}
    return [params, floats(batch, length, width)]


@models.program((4, 128, 128), tiny=(1, 3, 4), cold=True)
def transformer_block(jax, *sizes):
    return _transformer(jax), _transformer_args(*sizes)


@models.program((4, 128, 128), tiny=(1, 3, 4), cold=True)
def transformer_block_gradient(jax, *sizes):
    block = _transformer(jax)
    return jax.grad(lambda p, x: (block(p, x) ** 2).mean()), _transformer_args(*sizes)


@models.program((4, 4, 64, 64), tiny=(2, 1, 3, 4), cold=True)
def language_model_step(jax, layers, *sizes):
    """A training step of a small language model: embedding, blocks in a scan, loss, update."""
    jnp, block = jax.numpy, _transformer(jax)
    batch, length, width = sizes
    vocabulary = 4 * width

    def loss(params, tokens):
        x = params["embed"][tokens]
        x, _ = jax.lax.scan(lambda x, p: (block(p, x), None), x, params["blocks"])
        logits = (x @ params["embed"].T).reshape(-1, vocabulary)
        return _cross_entropy(jax, logits, jnp.roll(tokens, -1, 1).reshape(-1))

    def step(params, tokens):
        value, gradient = jax.value_and_grad(loss)(params, tokens)
        update = lambda p, g: p - 0.01 * g  # noqa: E731
        return value, jax.tree_util.tree_map(update, params, gradient)

    blocks = {name: np.stack([w] * layers) for name, w in _transformer_args(*sizes)[0].items()}
    params = {"embed": floats(vocabulary, width) / 8, "blocks": blocks}
    return step, [params, integers(vocabulary, batch, length)]

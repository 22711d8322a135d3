"""Models and training steps: perceptrons, regressions, autoencoders, second derivatives."""

from __future__ import annotations

import itertools

import numpy as np

from benchmarks.harness.program import floats, integers, seed, uniform, weights
from benchmarks.programs.groups import models


def _mlp(jax):
    def forward(params, x):
        for w in params[:-1]:
            x = jax.nn.relu(x @ w)
        return x @ params[-1]

    return forward


def _layers(*widths):
    return [weights(m, n) for m, n in itertools.pairwise(widths)]


def _torch_mlp(torch, w1, w2, w3, x):
    return torch.relu(torch.relu(x @ w1) @ w2) @ w3


@models.program(
    {"64-64-10": (1, 64, 64, 64, 10), "784-512-512-10": (128, 784, 512, 512, 10)},
    tiny=(2, 3, 4, 4, 2),
    cold=True,
    torch=_torch_mlp,
)
def mlp_forward(jax, batch, *widths):
    forward = _mlp(jax)
    return lambda w1, w2, w3, x: forward([w1, w2, w3], x), [
        *_layers(*widths),
        floats(batch, widths[0]),
    ]


@models.program(
    {"": (128, 784, 512, 512, 10), "small": (16, 20, 30, 30, 5)}, tiny=(2, 3, 4, 4, 2), cold=True
)
def mlp_training_step(jax, batch, *widths):
    jnp, forward = jax.numpy, _mlp(jax)

    def step(params, x, labels):
        def loss(params):
            logs = jax.nn.log_softmax(forward(params, x))
            return -jnp.take_along_axis(logs, labels[:, None], 1).mean()

        value, gradient = jax.value_and_grad(loss)(params)
        return value, [p - 0.1 * g for p, g in zip(params, gradient, strict=True)]

    args = [_layers(*widths), floats(batch, widths[0]), integers(widths[-1], batch)]
    return step, args


@models.program((128, 784, 512, 512, 10), tiny=(2, 3, 4, 4, 2))
def mlp_adam_step(jax, batch, *widths):
    jnp, forward, tree_map = jax.numpy, _mlp(jax), jax.tree_util.tree_map

    def step(params, mean, square, x, y):
        gradient = jax.grad(lambda p: ((forward(p, x) - y) ** 2).mean())(params)
        mean = tree_map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
        square = tree_map(lambda s, g: 0.999 * s + 0.001 * g * g, square, gradient)
        params = tree_map(
            lambda p, m, s: p - 0.001 * m / (jnp.sqrt(s) + 1e-3), params, mean, square
        )
        return params, mean, square

    layers = _layers(*widths)
    squares = [w**2 for w in layers]
    return step, [layers, layers, squares, floats(batch, widths[0]), floats(batch, widths[-1])]


@models.program((64, 20, 30, 3), tiny=(3, 2, 3, 2))
def gradients_of_examples(jax, batch, *widths):
    """The gradient of every example on its own: vmap of grad."""
    forward = _mlp(jax)
    gradient = jax.grad(lambda p, x, y: ((forward(p, x) - y) ** 2).sum())
    args = [_layers(*widths), floats(batch, widths[0]), floats(batch, widths[-1])]
    return jax.vmap(gradient, (None, 0, 0)), args


def _logistic_loss(jax):
    return lambda w, x, y: jax.numpy.logaddexp(0, -y * (x @ w)).mean()


@models.program((16, 500, 20), tiny=(2, 4, 3), cold=True)
def logistic_regression_batched(jax, batch, rows, width):
    """Gradients of many regressions at once."""
    gradient = jax.grad(_logistic_loss(jax))
    args = [weights(batch, width), floats(batch, rows, width), np.sign(floats(batch, rows))]
    return jax.vmap(gradient), args


@models.program({"20": (500, 20), "100": (200, 100)}, tiny=(4, 3), cold=True)
def logistic_hessian(jax, rows, width):
    return jax.hessian(_logistic_loss(jax)), [
        weights(width),
        floats(rows, width),
        np.sign(floats(rows)),
    ]


@models.program((200, 10), tiny=(5, 2), tolerance=1e-3)
def newton_regression(jax, rows, width):
    """Newton's method: Hessian and solution in a loop."""
    loss = _logistic_loss(jax)

    def fit(w, x, y):
        objective = lambda w: loss(w, x, y) + 0.01 * w @ w  # noqa: E731

        def step(_, w):
            return w - jax.numpy.linalg.solve(jax.hessian(objective)(w), jax.grad(objective)(w))

        return jax.lax.fori_loop(0, 5, step, w)

    return fit, [weights(width), floats(rows, width), np.sign(floats(rows))]


@models.program((20, 30, 20), tiny=(2, 3, 2))
def jacobians(jax, *widths):
    forward = _mlp(jax)
    function = lambda x, params: forward(params, x)  # noqa: E731
    pair = lambda x, p: (jax.jacfwd(function)(x, p), jax.jacrev(function)(x, p))  # noqa: E731
    return pair, [floats(widths[0]), _layers(*widths)]


@models.program((32, 2, 32, 32, 1), tiny=(2, 2, 3, 3, 1))
def physics_informed_gradient(jax, batch, *widths):
    """A loss of second derivatives by the inputs, differentiated by the parameters."""
    jnp = jax.numpy

    def network(params, x):
        for w in params[:-1]:
            x = jnp.tanh(x @ w)
        return (x @ params[-1])[0]

    def residual(params, x):
        return jnp.trace(jax.hessian(network, 1)(params, x)) - jnp.sin(x).sum()

    def loss(params, x):
        return (jax.vmap(residual, (None, 0))(params, x) ** 2).mean()

    return jax.grad(loss), [_layers(*widths), uniform(batch, widths[0])]


@models.program((64, 784, 200, 20), tiny=(2, 5, 4, 2))
def vae_step(jax, batch, pixels, hidden, latent):
    jnp = jax.numpy

    def loss(params, number, x):
        h = jnp.tanh(x @ params["in"])
        mean, spread = h @ params["mean"], h @ params["spread"]
        z = mean + jnp.exp(spread) * jax.random.normal(jax.random.key(number), mean.shape)
        logits = jnp.tanh(z @ params["z"]) @ params["out"]
        fit = (jax.nn.softplus(logits) - x * logits).sum(1)
        prior = (0.5 * (mean**2 + jnp.exp(2 * spread) - 1) - spread).sum(1)
        return (fit + prior).mean()

    shapes = {
        "in": (pixels, hidden),
        "mean": (hidden, latent),
        "spread": (hidden, latent),
        "z": (latent, hidden),
        "out": (hidden, pixels),
    }
    params = {name: weights(*shape) / 2 for name, shape in shapes.items()}
    return jax.value_and_grad(loss), [params, seed(), uniform(batch, pixels)]


@models.program((5000, 64, 256, 10), tiny=(6, 2, 3, 2))
def word_vectors_step(jax, vocabulary, width, batch, negatives):
    """Skip-gram with negative samples: gathers forward, scatters backward."""
    jnp = jax.numpy

    def loss(tables, center, context):
        inside, outside = tables
        scores = jnp.einsum("bd,bkd->bk", inside[center], outside[context])
        return -(
            jax.nn.log_sigmoid(scores[:, 0]) + jax.nn.log_sigmoid(-scores[:, 1:]).sum(1)
        ).mean()

    def step(tables, center, context):
        gradient = jax.grad(loss)(tables, center, context)
        return [t - 0.1 * g for t, g in zip(tables, gradient, strict=True)]

    tables = [weights(vocabulary, width), -weights(vocabulary, width)]
    args = [integers(vocabulary, batch), integers(vocabulary, batch, negatives + 1)]
    return step, [tables, *args]


@models.program((1000, 5000, 32), tiny=(5, 7, 2))
def graph_convolution_gradient(jax, nodes, edges, width):
    def loss(params, x, source, target):
        for w in params:
            gathered = jax.ops.segment_sum(x[source], target, nodes)
            x = jax.nn.relu((x + gathered) @ w)
        return (x**2).mean()

    args = [floats(nodes, width), integers(nodes, edges), integers(nodes, edges + 1)[:edges]]
    return jax.grad(loss), [_layers(width, width, width), *args]


@models.program((8, 10, 20, 1), tiny=(2, 2, 3, 1))
def meta_learning_gradient(jax, tasks, *widths):
    """The gradient through steps of training, for many tasks: grad of vmap of grad."""
    forward = _mlp(jax)

    def loss(params, x, y):
        return ((forward(params, x) - y) ** 2).mean()

    def adapted(params, x, y):
        for _ in range(2):
            gradient = jax.grad(loss)(params, x, y)
            params = [p - 0.1 * g for p, g in zip(params, gradient, strict=True)]
        return loss(params, x, y)

    def total(params, x, y):
        return jax.vmap(adapted, (None, 0, 0))(params, x, y).mean()

    return jax.grad(total), [
        _layers(*widths),
        floats(tasks, 16, widths[0]),
        floats(tasks, 16, widths[-1]),
    ]


@models.program((2000, 100), tiny=(5, 3))
def linear_regression_step(jax, rows, width):
    def step(w, x, y):
        return w - 0.1 * jax.grad(lambda w: ((x @ w - y) ** 2).mean())(w)

    return step, [weights(width), floats(rows, width), floats(rows)]


@models.program((256, 10, 3), tiny=(3, 2, 2))
def mixture_of_experts(jax, tokens, width, experts):
    """Each token goes to its best expert, with the share that the gate gives it."""
    jnp = jax.numpy

    def forward(gate, w, x):
        shares = jax.nn.softmax(x @ gate)
        chosen = jnp.argmax(shares, 1)
        outputs = jnp.einsum("td,edf->tef", x, w)
        picked = jnp.take_along_axis(outputs, chosen[:, None, None], 1)[:, 0]
        return picked * shares.max(1, keepdims=True)

    return forward, [floats(width, experts), weights(experts, width, width), floats(tokens, width)]


@models.program((64, 64, 20), tiny=(3, 4, 2), tolerance=1e-2)
def ray_marching(jax, height, width, steps):
    """Spheres in a field, lit from one side: a loop of all pixels."""
    jnp = jax.numpy

    def distance(p):
        return jnp.minimum(jnp.linalg.norm(p - jnp.asarray([0, 0, 3.0])) - 1, p[1] + 1)

    def shade(direction):
        p = jax.lax.fori_loop(0, steps, lambda _, p: p + distance(p) * direction, jnp.zeros(3))
        normal = jax.grad(distance)(p)
        return jnp.clip(normal @ jnp.asarray([0.5, 0.7, -0.5]), 0, 1)

    x, y = np.meshgrid(np.linspace(-1, 1, width), np.linspace(-1, 1, height))
    rays = np.stack([x, y, np.ones_like(x)], -1)
    rays = (rays / np.linalg.norm(rays, axis=-1, keepdims=True)).astype(np.float32)
    return jax.vmap(jax.vmap(shade)), [rays]

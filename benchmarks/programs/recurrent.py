"""Recurrent networks and their gradients."""

from __future__ import annotations

from benchmarks.harness.program import floats, uniform, weights
from benchmarks.programs.groups import loops


def _rnn(jax):
    def run(w, u, start, xs):
        def step(h, x):
            h = jax.numpy.tanh(h @ w + x @ u)
            return h, h

        return jax.lax.scan(step, start, xs)

    return run


def _rnn_args(n, width):
    return [weights(width, width), weights(width, width) * 0.5, floats(width), floats(n, width)]


@loops.program((500, 64), tiny=(3, 2), cold=True)
def rnn(jax, n, width):
    return _rnn(jax), _rnn_args(n, width)


@loops.program((500, 64), tiny=(3, 2))
def rnn_gradient(jax, n, width):
    run = _rnn(jax)
    return jax.grad(lambda *args: run(*args)[1].sum(), argnums=(0, 1)), _rnn_args(n, width)


@loops.program((100, 32, 64), tiny=(3, 2, 2))
def rnn_of_batches(jax, n, batch, width):
    return _rnn(jax), [*_rnn_args(n, width)[:2], floats(batch, width), floats(n, batch, width)]


@loops.program((100, 16, 32), tiny=(3, 2, 2))
def rnn_batched_gradient(jax, n, batch, width):
    """The gradient of each example on its own: vmap of grad of scan."""
    run = _rnn(jax)
    gradient = jax.grad(lambda *args: run(*args)[1].sum())
    args = [*_rnn_args(n, width)[:2], floats(batch, width), floats(batch, n, width)]
    return jax.vmap(gradient, (None, None, 0, 0)), args


def _lstm(jax):
    jnp, sigmoid = jax.numpy, jax.nn.sigmoid

    def run(w, b, xs):
        def step(state, x):
            h, c = state
            gates = jnp.concatenate([x, h], -1) @ w + b
            i, f, g, o = jnp.split(gates, 4, axis=-1)
            c = sigmoid(f + 1) * c + sigmoid(i) * jnp.tanh(g)
            h = sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zeros = jnp.zeros((*xs.shape[1:-1], w.shape[1] // 4))
        return jax.lax.scan(step, (zeros, zeros), xs)

    return run


def _lstm_args(n, batch, width):
    return [weights(2 * width, 4 * width), floats(4 * width), floats(n, batch, width)]


_SIZES = {"100x16x64": (100, 16, 64), "300x1x32": (300, 1, 32)}


@loops.program(_SIZES, tiny=(2, 2, 3))
def lstm(jax, n, batch, width):
    return _lstm(jax), _lstm_args(n, batch, width)


@loops.program(_SIZES, tiny=(2, 2, 3))
def lstm_gradient(jax, n, batch, width):
    run = _lstm(jax)
    loss = lambda *args: (run(*args)[1] ** 2).mean()  # noqa: E731
    return jax.value_and_grad(loss, argnums=(0, 1)), _lstm_args(n, batch, width)


def _gru(jax):
    jnp, sigmoid = jax.numpy, jax.nn.sigmoid

    def run(params, xs):
        def step(h, x):
            z = sigmoid(x @ params["xz"] + h @ params["hz"])
            r = sigmoid(x @ params["xr"] + h @ params["hr"])
            new = jnp.tanh(x @ params["xn"] + (r * h) @ params["hn"])
            h = (1 - z) * new + z * h
            return h, h

        return jax.lax.scan(step, jnp.zeros_like(xs[0]), xs)

    return run


def _gru_args(n, batch, width):
    names = ("xz", "hz", "xr", "hr", "xn", "hn")
    return [{name: weights(width, width) for name in names}, floats(n, batch, width)]


@loops.program((100, 16, 64), tiny=(2, 2, 3))
def gru(jax, n, batch, width):
    return _gru(jax), _gru_args(n, batch, width)


@loops.program((100, 16, 64), tiny=(2, 2, 3))
def gru_gradient(jax, n, batch, width):
    run = _gru(jax)
    return jax.grad(lambda *args: (run(*args)[1] ** 2).mean()), _gru_args(n, batch, width)


@loops.program((256, 8, 32), tiny=(3, 2, 2))
def linear_attention(jax, n, heads, width):
    """A fast-weight memory: a matrix state for each head."""

    def step(memory, qkv):
        query, key, value = qkv
        memory = 0.95 * memory + key[:, :, None] * value[:, None, :]
        return memory, jax.numpy.einsum("hk,hkv->hv", query, memory)

    def run(query, key, value):
        start = jax.numpy.zeros((heads, width, width))
        return jax.lax.scan(step, start, (query, key, value))[1]

    return run, [floats(n, heads, width), uniform(n, heads, width), floats(n, heads, width)]


@loops.program((512, 128, 16), tiny=(3, 2, 2))
def selective_state_space(jax, n, width, states):
    """A diagonal state-space model with a decay that depends on the input; with its gradient."""
    jnp = jax.numpy

    def loss(a, b, c, xs):
        def step(h, x):
            rate = jnp.exp(-a * jax.nn.softplus(x)[:, None])
            h = rate * h + b * x[:, None]
            return h, (h * c).sum(1)

        return (jax.lax.scan(step, jnp.zeros((width, states)), xs)[1] ** 2).mean()

    args = [uniform(width, states), floats(width, states), weights(width, states)]
    return jax.grad(loss, argnums=(0, 1, 2)), [*args, floats(n, width)]


@loops.program((64, 16, 32), tiny=(3, 2, 2))
def rnn_checkpointed_gradient(jax, n, batch, width):
    """The body is computed again in the backward pass."""

    def loss(w, xs):
        step = jax.checkpoint(lambda h, x: (jax.numpy.tanh(h @ w + x), None))
        return (jax.lax.scan(step, jax.numpy.zeros((batch, width)), xs)[0] ** 2).mean()

    return jax.grad(loss), [weights(width, width), floats(n, batch, width)]

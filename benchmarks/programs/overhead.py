"""Overheads: eager ops, tracing, transformations, calls, imports."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from benchmarks.harness.program import floats, weights
from benchmarks.programs.groups import overhead

_CHAIN = 250
_EAGER = {"compiled": False, "goal": 0.5}


def _x():
    return np.linspace(0.1, 1, 8, dtype=np.float32)


_OPERATIONS = {
    "sin": lambda jnp, x: jnp.sin(x),
    "add": lambda jnp, x: x + x,
    "scale": lambda jnp, x: x * 2.0,
    "sum": lambda jnp, x: jnp.sum(x),
    "index": lambda jnp, x: x[2],
    "slice": lambda jnp, x: x[1:-1],
    "update": lambda jnp, x: x.at[2].set(1.0),
    "where": lambda jnp, x: jnp.where(x > 0.5, x, 0.0),
    "dot": lambda jnp, x: x @ x,
    "reshape": lambda jnp, x: x.reshape(2, 4).T,
    "concatenate": lambda jnp, x: jnp.concatenate([x, x]),
    "zeros": lambda jnp, x: jnp.zeros((8, 8)),
}
for _name, _operation in _OPERATIONS.items():
    overhead.add(
        f"eager-{_name}",
        lambda jax, operation=_operation: (lambda x: operation(jax.numpy, x), [_x()]),
        (),
        (),
        **_EAGER,
    )


@overhead.program((), (), **_EAGER)
def asarray(jax):
    value = _x()
    return lambda: jax.numpy.asarray(value), []


@overhead.program((), (), **_EAGER)
def random_split(jax):
    return lambda key: jax.random.split(key), [np.uint32([0, 1])]


@overhead.program(50, tiny=3, compiled=False, operations=50)
def tree_map(jax, n):
    tree = {f"layer{i}": [1.0, (2.0, 3.0)] for i in range(n)}
    return lambda: jax.tree_util.tree_map(lambda leaf: leaf + 1, tree) and None, []


def _chain(jax, length):
    """Returns a function that no cache of traces knows."""
    sin = jax.numpy.sin

    def chain(x):
        for _ in range(length):
            x = sin(x) * x
        return x

    return chain


_PER_OP = {"compiled": False, "operations": 2 * _CHAIN, "goal": 0.35}


@overhead.program(_CHAIN, 3, **_PER_OP)
def trace_op(jax, n):
    return lambda: jax.make_jaxpr(_chain(jax, n))(1.0), []


@overhead.program(_CHAIN, 3, **_PER_OP)
def trace_gradient_op(jax, n):
    return lambda: jax.make_jaxpr(jax.grad(_chain(jax, n)))(1.0), []


@overhead.program(_CHAIN, 3, **_PER_OP)
def trace_vmap_op(jax, n):
    return lambda x: jax.make_jaxpr(jax.vmap(_chain(jax, n)))(x), [_x()]


@overhead.program(_CHAIN, 3, **_PER_OP)
def eager_gradient_op(jax, n):
    return lambda: jax.grad(_chain(jax, n))(1.0), []


@overhead.program(_CHAIN, 3, **_PER_OP)
def eager_vmap_op(jax, n):
    return lambda x: jax.vmap(_chain(jax, n))(x), [np.ones(8, np.float32)]


def _transformer(jax):
    """The loss of a transformer, written out: attention of 4 heads, MLP, layer norms."""
    jnp, nn = jax.numpy, jax.nn

    def normalize(x):
        centered = x - jnp.mean(x, axis=-1, keepdims=True)
        return centered / jnp.sqrt(jnp.mean(centered**2, axis=-1, keepdims=True) + 1e-6)

    def attend(layer, x):
        length, width = x.shape
        query, key, value = ((normalize(x) @ w).reshape(length, 4, width // 4) for w in layer[:3])
        scores = jnp.einsum("qhd,khd->hqk", query, key) / (width // 4) ** 0.5
        mask = jnp.tril(jnp.ones((length, length), bool))
        shares = nn.softmax(jnp.where(mask, scores, -1e9), axis=-1)
        return jnp.einsum("hqk,khd->qhd", shares, value).reshape(length, width) @ layer[3]

    def loss(params, x):
        for layer in params:
            x = x + attend(layer, x)
            x = x + nn.gelu(normalize(x) @ layer[4]) @ layer[5]
        return jnp.mean(x**2)

    return loss


@overhead.program((12, 64), tiny=(1, 4), compiled=False)
def trace_transformer_gradient(jax, layers, width):
    square, up = weights(width, width), weights(width, 2 * width)
    params = [[square, square, square, square, up, up.T.copy()] for _ in range(layers)]
    trace = lambda p, x: jax.make_jaxpr(jax.value_and_grad(_transformer(jax)))(p, x)  # noqa: E731
    return trace, [params, floats(16, width)]


def _scan(jax):
    def run(x):
        def body(carry, row):
            return jax.numpy.tanh(carry * 0.5 + row), carry

        return jax.lax.scan(body, x[0], x)[0].sum()

    return run


_LENGTHS = {"10": 10, "10000": 10_000}


@overhead.program(_LENGTHS, tiny=3, compiled=False)
def trace_scan_gradient(jax, n):
    return lambda x: jax.make_jaxpr(jax.grad(_scan(jax)))(x), [np.zeros((n, 8), "f4")]


@overhead.program(_LENGTHS, tiny=3, compiled=False)
def trace_scan_vmap(jax, n):
    return lambda x: jax.make_jaxpr(jax.vmap(_scan(jax)))(x), [np.zeros((1, n, 8), "f4")]


@overhead.program((), (), cold=True)
def call_scalar(jax):
    """A compiled call of one number in and out."""
    return lambda x: jax.numpy.tanh(x) * 2 + 1, [np.float32(0.5).reshape(())]


@overhead.program({"1": 1, "50": 50, "500": 500}, tiny=2)
def call_leaves(jax, n):
    return lambda xs: [x + 1 for x in xs], [[np.full(8, i, np.float32) for i in range(n)]]


@overhead.program({"50": 50, "500": 500}, tiny=2)
def call_dict(jax, n):
    tree = {f"layer{i}": {"w": np.ones(8, "f4"), "b": np.ones(1, "f4")} for i in range(n // 2)}
    return lambda params: jax.tree_util.tree_map(lambda x: x + 1, params), [tree]


@overhead.program({"5": 5}, tiny=2, compiled=False)
def call_keywords(jax, n):
    function = jax.jit(lambda **xs: sum(xs.values()))
    return lambda xs: function(**xs), [{f"x{i}": np.ones(8, "f4") for i in range(n)}]


@overhead.program((), (), compiled=False)
def call_static(jax):
    function = jax.jit(lambda x, power: x**power, static_argnums=1)
    return lambda x: function(x, 3), [_x()]


@overhead.program((), (), compiled=False)
def call_numpy_argument(jax):
    function, value = jax.jit(lambda x: x + 1), _x()
    return lambda: function(value), []


@overhead.program((), (), compiled=False)
def call_number(jax):
    function = jax.jit(lambda x: x + 1)
    return lambda: function(2.0), []


@overhead.program(20, tiny=2, compiled=False, operations=20)
def call_chain(jax, n):
    """Compiled calls, each of the result of the one before."""
    function = jax.jit(lambda x: x * 0.5 + 1)

    def run(x):
        for _ in range(n):
            x = function(x)
        return x

    return run, [_x()]


@overhead.program((), (), compiled=False)
def call_donated(jax):
    function = jax.jit(lambda x: x + 1, donate_argnums=0)
    state = [None]

    def run(x):
        state[0] = function(x + 0 if state[0] is None else state[0])
        return state[0].shape and None

    return run, [np.zeros(1000, "f4")]


@overhead.program((), (), compiled=False)
def call_gradient(jax):
    """The gradient of a compiled function, eagerly."""
    function = jax.jit(lambda x: jax.numpy.sin(x).sum())
    return lambda x: jax.grad(function)(x), [_x()]


@overhead.program((), (), compiled=False, goal=0.7)
def import_library(jax):
    """Seconds of a process that imports the library."""
    command = [sys.executable, "-c", f"import {jax.__name__}"]
    return lambda: subprocess.run(command, check=True) and None, []

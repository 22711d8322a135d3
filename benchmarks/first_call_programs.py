"""The forty-five programs of all kinds with measured first calls.

Each is a function of the library, and its arguments as NumPy arrays. Some are programs of
`benchmarks/programs/`, at full size. Elsewhere: how they are measured (`first_calls.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

Function = Callable[..., Any]
_Write = Callable[[ModuleType], Function]


def _three_ops(lib: ModuleType) -> Function:
    return lambda x: lib.numpy.tanh(x) * 2 + 1


def _selu(lib: ModuleType) -> Function:
    jnp = lib.numpy
    return lambda x: 1.05 * jnp.where(x > 0, x, 1.67 * jnp.exp(x) - 1.67)


def _softmax(lib: ModuleType) -> Function:
    return lambda x: lib.nn.softmax(x, axis=-1)


def _matmul(lib: ModuleType) -> Function:
    return lambda a, b: a @ b


def _logistic(lib: ModuleType) -> Function:
    """Gradients of a batch of logistic regressions."""
    jnp = lib.numpy

    def loss(w: Any, x: Any, y: Any) -> Any:
        logits = x @ w
        return jnp.mean(jnp.logaddexp(0.0, logits) - y * logits)

    return lib.vmap(lib.grad(loss))


def _mlp_step(lib: ModuleType) -> Function:
    jnp = lib.numpy

    def loss(params: Any, x: Any, y: Any) -> Any:
        w1, w2, w3 = params
        h = jnp.maximum(jnp.maximum(x @ w1, 0) @ w2, 0)
        return -jnp.mean(jnp.sum(y * lib.nn.log_softmax(h @ w3), axis=1))

    def step(w1: Any, w2: Any, w3: Any, x: Any, y: Any) -> Any:
        gradients = lib.grad(loss)((w1, w2, w3), x, y)
        return [w - 1e-3 * g for w, g in zip((w1, w2, w3), gradients, strict=True)]

    return step


def _attention(lib: ModuleType) -> Function:
    jnp = lib.numpy

    def attention(q: Any, k: Any, v: Any) -> Any:
        scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / 8.0
        return jnp.einsum("bhqk,bhkd->bhqd", lib.nn.softmax(scores, axis=-1), v)

    return attention


def _transformer_block(lib: ModuleType) -> Function:
    """The gradient of the loss of one block: attention of 4 heads, MLP, layer norms."""
    jnp, nn = lib.numpy, lib.nn

    def normalize(x: Any) -> Any:
        centered = x - jnp.mean(x, axis=-1, keepdims=True)
        return centered / jnp.sqrt(jnp.mean(centered**2, axis=-1, keepdims=True) + 1e-6)

    def loss(weights: Any, x: Any) -> Any:
        length, width = x.shape
        query, key, value = ((normalize(x) @ w).reshape(length, 4, width // 4) for w in weights[:3])
        scores = jnp.einsum("qhd,khd->hqk", query, key) / (width // 4) ** 0.5
        mask = jnp.tril(jnp.ones((length, length), bool))
        shares = nn.softmax(jnp.where(mask, scores, -1e9), axis=-1)
        attended = jnp.einsum("hqk,khd->qhd", shares, value).reshape(length, width)
        x = x + attended @ weights[3]
        x = x + nn.gelu(normalize(x) @ weights[4]) @ weights[5]
        return jnp.mean(x**2)

    gradient = lib.value_and_grad(loss)
    return lambda *args: gradient(args[:-1], args[-1])


def _cnn_step(lib: ModuleType) -> Function:
    jnp = lib.numpy

    def convolve(x: Any, w: Any) -> Any:
        return lib.lax.conv_general_dilated(
            x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    def loss(params: Any, x: Any, y: Any) -> Any:
        w1, w2, w3 = params
        h = lib.nn.relu(convolve(lib.nn.relu(convolve(x, w1)), w2))
        logits = h.reshape(h.shape[0], -1) @ w3
        return -jnp.mean(jnp.sum(y * lib.nn.log_softmax(logits), axis=1))

    def step(w1: Any, w2: Any, w3: Any, x: Any, y: Any) -> Any:
        gradients = lib.grad(loss)((w1, w2, w3), x, y)
        return [w - 1e-3 * g for w, g in zip((w1, w2, w3), gradients, strict=True)]

    return step


def _gru(lib: ModuleType) -> Function:
    """The gradient of a scan of 100 steps of a gated recurrent unit."""
    jnp, nn = lib.numpy, lib.nn

    def loss(weights: Any, xs: Any) -> Any:
        w, u, v = weights

        def step(h: Any, x: Any) -> Any:
            gates = nn.sigmoid(x @ w + h @ u)
            update, reset = jnp.split(gates, 2, axis=-1)
            h = update * h + (1 - update) * jnp.tanh((reset * h) @ v)
            return h, h

        return jnp.mean(lib.lax.scan(step, jnp.zeros_like(xs[0]), xs)[1] ** 2)

    gradient = lib.grad(loss)
    return lambda w, u, v, xs: gradient((w, u, v), xs)


def _cholesky(lib: ModuleType) -> Function:
    return lambda a: lib.lax.linalg.cholesky(a @ a.T + 50 * lib.numpy.eye(a.shape[0]))


def _newton(lib: ModuleType) -> Function:
    def root(a: Any) -> Any:
        def unfinished(x: Any) -> Any:
            return abs(x * x - a) > 1e-5 * a

        return lib.lax.while_loop(unfinished, lambda x: 0.5 * (x + a / x), a)

    return lib.vmap(lambda a: root(1 + a * a))


def _key(lib: ModuleType, x: Any) -> Any:
    return lib.random.PRNGKey(x.ravel()[0].astype(int))


def _normal(lib: ModuleType) -> Function:
    return lambda x: x + lib.random.normal(_key(lib, x), x.shape)


def _permutation(lib: ModuleType) -> Function:
    return lambda x: lib.random.permutation(_key(lib, x), x)


def _lexsort(lib: ModuleType) -> Function:
    return lambda x: lib.numpy.lexsort(tuple(x))


def _zeta(lib: ModuleType) -> Function:
    return lambda x: lib.scipy.special.zeta(2 + x * x, 1.0)


def _deep_mlp(lib: ModuleType) -> Function:
    """The gradient of twenty equal layers, written out one after the other."""

    def loss(weights: Any, x: Any) -> Any:
        for w in weights:
            x = lib.numpy.tanh(x @ w)
        return lib.numpy.mean(x**2)

    gradient = lib.grad(loss)
    return lambda x, *weights: gradient(weights, x)


def _chain(lib: ModuleType) -> Function:
    def chain(x: Any, y: Any) -> Any:
        for _ in range(2500):
            x = lib.numpy.sin(x) + y
        return x

    return chain


def _coupled(lib: ModuleType) -> Function:
    """Each value is read twice."""

    def coupled(x: Any, y: Any) -> Any:
        for _ in range(1000):
            x, y = lib.numpy.sin(y) + x, x * y
        return x + y

    return coupled


def _fan(lib: ModuleType) -> Function:
    """Many read one value."""
    return lambda x, y: sum(lib.numpy.sin(x * (number + 1)) for number in range(1666)) * y


def _tree(lib: ModuleType) -> Function:
    def tree(x: Any, y: Any) -> Any:
        level = [x * (number + 1) + y for number in range(1000)]
        while len(level) > 1:
            pairs = zip(level[::2], level[1::2], strict=False)
            level = [a * b for a, b in pairs] + (level[-1:] if len(level) % 2 else [])
        return level[0]

    return tree


def _adam(lib: ModuleType) -> Function:
    """A step of Adam on a tree of 100 weights and as many of each moment."""
    jnp, tree_map = lib.numpy, lib.tree_util.tree_map

    def adam(*leaves: Any) -> Any:
        weights, first, second = leaves[:100], leaves[100:200], leaves[200:]
        gradients = tree_map(lambda w: 0.1 * w, weights)
        first = tree_map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
        second = tree_map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)
        weights = tree_map(
            lambda w, m, v: w - 1e-3 * m / (jnp.sqrt(jnp.abs(v)) + 1e-8), weights, first, second
        )
        return weights, first, second

    return adam


def _host_call(lib: ModuleType) -> Function:
    def host_call(x: Any) -> Any:
        kind = lib.ShapeDtypeStruct(x.shape, x.dtype)
        return lib.pure_callback(np.cumsum, kind, lib.numpy.sin(x)) + 1

    return host_call


def _layer(lib: ModuleType, x: Any, weights: Any) -> Any:
    """A layer of a transformer: attention, and two products around a sigmoid linear unit."""
    jnp, (q, k, v, o, up, down) = lib.numpy, weights

    def normalized(x: Any) -> Any:
        x = x - jnp.mean(x, -1, keepdims=True)
        return x / jnp.sqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5)

    def heads(x: Any) -> Any:
        return x.reshape(x.shape[0], 4, -1)

    y = normalized(x)
    scores = jnp.einsum("ihd,jhd->hij", heads(y @ q), heads(y @ k)) / q.shape[0] ** 0.5
    mixed = jnp.einsum("hij,jhd->ihd", lib.nn.softmax(scores), heads(y @ v))
    x = x + mixed.reshape(x.shape) @ o
    return x + lib.nn.silu(normalized(x) @ up) @ down


def _layers(lib: ModuleType) -> Function:
    def layers(x: Any, *weights: Any) -> Any:
        return lib.lax.scan(lambda x, w: (_layer(lib, x, w), None), x, weights)[0]

    return layers


def _layers_gradient(lib: ModuleType) -> Function:
    layers = _layers(lib)
    gradient = lib.grad(lambda weights, x: lib.numpy.mean(layers(x, *weights) ** 2))
    return lambda x, *weights: gradient(weights, x)


def _powers(lib: ModuleType) -> Function:
    return lambda a, x: lib.lax.fori_loop(0, 100, lambda i, x: (a @ x) * 0.04, x)


def _conjugate_gradients(lib: ModuleType) -> Function:
    jnp = lib.numpy

    def solve(a: Any, b: Any) -> Any:
        a = a @ a.T / a.shape[0] + jnp.eye(a.shape[0])

        def step(state: Any) -> Any:
            n, x, r, p, square = state
            q = a @ p
            step = square / (p @ q)
            x, r = x + step * p, r - step * q
            new = r @ r
            return n + 1, x, r, r + new / square * p, new

        begin = (0, jnp.zeros_like(b), b, b, b @ b)
        return lib.lax.while_loop(lambda s: (s[4] > 1e-6) & (s[0] < 1000), step, begin)[1]

    return solve


def _branches(lib: ModuleType) -> Function:
    jnp = lib.numpy

    def chosen(a: Any, b: Any) -> Any:
        def one() -> Any:
            return jnp.tanh(a @ b) @ b

        def other() -> Any:
            return jnp.sum(a.T @ b, axis=0) + b

        return lib.lax.cond(jnp.sum(a) > 0, one, other)

    return chosen


_LAYERS = ((64, 128), *((4, 128, 128),) * 4, (4, 128, 512), (4, 512, 128))
# By name: the program, and the shapes of its arguments.
_OWN: dict[str, tuple[_Write, tuple[tuple[int, ...], ...]]] = {
    "three-ops": (_three_ops, ((),)),
    "selu-1e6": (_selu, ((1_000_000,),)),
    "softmax-1024": (_softmax, ((1024, 1024),)),
    "matmul-256": (_matmul, ((256, 256), (256, 256))),
    "logistic-128x100x10": (_logistic, ((128, 10), (128, 100, 10), (128, 100))),
    "mlp-step": (_mlp_step, ((784, 512), (512, 512), (512, 10), (128, 784), (128, 10))),
    "attention": (_attention, ((4, 8, 256, 64),) * 3),
    "transformer-block": (_transformer_block, (*((64, 64),) * 4, (64, 128), (128, 64), (16, 64))),
    "cnn-step": (_cnn_step, ((3, 3, 3, 16), (3, 3, 16, 32), (2048, 10), (16, 32, 32, 3), (16, 10))),
    "gru-gradient": (_gru, ((32, 64), (32, 64), (32, 32), (100, 32))),
    "cholesky-32": (_cholesky, ((32, 32),)),
    "newton-while": (_newton, ((1000,),)),
    "normal-1000x1000": (_normal, ((1000, 1000),)),
    "permutation-60000": (_permutation, ((60_000,),)),
    "lexsort-20-keys": (_lexsort, ((20, 1000),)),
    "zeta": (_zeta, ((1000,),)),
    "deep-mlp-gradient": (_deep_mlp, ((32, 64), *((64, 64),) * 20)),
    "chain-5000": (_chain, ((), ())),
    "fan-5000": (_fan, ((100,), (100,))),
    "coupled-3000": (_coupled, ((100,), (100,))),
    "tree-3000": (_tree, ((), ())),  # of arrays XLA takes all memory there is
    "adam-300-leaves": (_adam, ((16,),) * 300),
    "host-call": (_host_call, ((1000,),)),
    "scanned-layers": (_layers, _LAYERS),
    "scanned-layers-gradient": (_layers_gradient, _LAYERS),
    "loop-of-products-512": (_powers, ((512, 512), (512, 512))),
    "conjugate-gradients-1000": (_conjugate_gradients, ((1000, 1000), (1000,))),
    "branches-of-products": (_branches, ((512, 512), (512, 512))),
}
# Programs of `benchmarks/programs/`.
_OTHERS = (
    "layer-norm-1024",
    "lorenz-rk4",
    "kalman-filter-200x4x2",
    "fori-nested",
    "mandelbrot",
    "odeint-gradient",
    "minimize-bfgs",
    "nuts",
    "language-model-step",
    "logistic-hessian-20",
    "solve-32x32",
    "eigh-32x32",
    "sort-1e5",
    "fft-65536",
    "complex-product",
    "convolution-56x64",
    "embedding-gradient",
)
NAMES = (*_OWN, *_OTHERS)


def build(name: str, lib: ModuleType) -> tuple[Function, list[Any]]:
    """Returns a program for a library, and its arguments."""
    if name in _OWN:
        write, shapes = _OWN[name]
        generator = np.random.default_rng(0)
        return write(lib), [generator.normal(size=shape).astype(np.float32) for shape in shapes]
    from benchmarks.programs import PROGRAMS  # late: the others need none of these

    program = PROGRAMS[name]
    return program.build(lib, program.size)

"""Functions with open dimensions of all kinds, for axir and for JAX: the first argument is either.

Each has the texts of its arguments' shapes, and makes arguments for sizes. Dtypes are float32,
unless a name gives another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

CASES: dict[str, OpenCase] = {}


@dataclass(frozen=True)
class OpenCase:
    """A function, the shapes of its arguments, and constraints on the names in them."""

    function: Callable[..., Any]
    shapes: Sequence[str]
    constraints: Sequence[str] = ()
    dtypes: Mapping[int, str] = field(default_factory=dict)
    factor: float = 16.0
    first: int = 1

    def dtype(self, number: int) -> str:
        """Returns the dtype of an argument."""
        return self.dtypes.get(number, "float32")


def case(
    *shapes: str,
    constraints: Sequence[str] = (),
    dtypes: Mapping[int, str] | None = None,
    factor: float = 16.0,
    first: int = 1,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a function for arguments of these shapes."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        name = function.__name__
        CASES[name] = OpenCase(function, shapes, constraints, dtypes or {}, factor, first)
        return function

    return register


@case("b, 3")
def mean_over_batch(m, x):
    return x.mean(0), m.numpy.mean(x), m.numpy.var(x, axis=0)


@case("b, 4", "4", "4")
def batch_norm(m, x, scale, shift):
    mean, variance = x.mean(0), x.var(0)
    return (x - mean) / m.numpy.sqrt(variance + 1e-3) * scale + shift


@case("b, 5")
def softmax_over_rows(m, x):
    return m.nn.softmax(x, axis=0), m.nn.log_softmax(x, axis=0), m.nn.logsumexp(x, axis=0)


@case("b, 2", factor=200)
def cumulative(m, x):
    return m.numpy.cumsum(x, 0), m.numpy.cumprod(x * 0.1 + 1, 0), m.lax.cummax(x, 0)


@case("b, 4, 3")
def reshape_flat(m, x):
    return x.reshape(-1), x.reshape(-1, 6), x.reshape(x.shape[0], -1), x.ravel()


@case("b, 4")
def reshape_by_shape(m, x):
    return x.reshape(x.shape[0] * 2, 2), x.reshape((2, x.shape[0], 2)).sum(0)


@case("b, 3", "c, 3")
def concatenated(m, x, y):
    return m.numpy.concatenate([x, y, x]), m.numpy.stack([x, x], 1), m.numpy.vstack([x, y])


@case("b, 1", "t")
def broadcasting(m, x, y):
    return x + y, m.numpy.broadcast_to(y, (x.shape[0], y.shape[0])), x * m.numpy.ones((1, 4))


@case("b")
def positions(m, x):
    n = m.numpy.arange(x.shape[0])
    return x * n, m.lax.iota("int32", x.shape[0]), m.numpy.linspace(0.0, 1.0, 5) * x.sum()


@case("b, 3", constraints=["b >= 2"], first=2)
def relative_slices(m, x):
    return x[-2:], x[1:], x[:-1], x[-1], x[0], x[::2], x[::-1]


@case("b, 3")
def extent_as_number(m, x):
    n = x.shape[0]
    return x.sum() / n, x * n + 1, m.numpy.sqrt(n) * x[0], m.numpy.full((2,), n), n * 2 - x[0]


@case("b, t")
def two_symbols(m, x):
    return x.T @ x, x.sum(1) / x.shape[1], m.numpy.transpose(x).reshape(-1)


@case("b, h, t, 4", "b, h, t, 4", "b, h, t, 4", factor=64)
def masked_attention(m, q, k, v):
    jnp = m.numpy
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(4.0)
    n = q.shape[2]
    mask = jnp.tril(jnp.ones((n, n), bool))
    weights = m.nn.softmax(jnp.where(mask, scores, -1e9), axis=-1)
    return jnp.einsum("bhqk,bhkd->bhqd", weights, v)


@case("b, t, 2", "3, 2, 4", factor=64)
def convolution(m, x, w):
    same = m.lax.conv_general_dilated(x, w, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"))
    padded = m.lax.conv_general_dilated(
        x, w, (2,), [(2, 2)], dimension_numbers=("NWC", "WIO", "NWC")
    )
    return m.nn.relu(same), padded


@case("b, 3", "3")
def scan_over_rows(m, x, h):
    def step(h, row):
        h = m.numpy.tanh(h * 0.5 + row)
        return h, h.sum()

    return m.lax.scan(step, h, x)


@case("t, b, 3", "3, 3", factor=64)
def recurrent_network(m, x, w):
    start = m.numpy.zeros((x.shape[1], 3))
    last, outputs = m.lax.scan(lambda h, a: (m.numpy.tanh(a + h @ w),) * 2, start, x)
    return last, outputs.mean((0, 1))


@case("b, 3")
def while_loop(m, x):
    def body(carry):
        n, y = carry
        return n + 1, y * 0.5 + x.mean(0)

    return m.lax.while_loop(lambda c: c[0] < x.shape[0], body, (0, x[0]))


@case("b, 3")
def loop_over_rows(m, x):
    total = m.lax.fori_loop(0, x.shape[0], lambda i, s: s + x[i] * i, m.numpy.zeros(3))
    return total, m.lax.map(lambda row: row.max(), x)


@case("b, 3")
def conditional(m, x):
    half = m.lax.cond(x.shape[0] > m.numpy.float32(2.5), lambda y: y.sum(0), lambda y: y[0], x)
    return half, m.numpy.where(m.numpy.arange(x.shape[0])[:, None] < 2, x, 0)


@case("b")
def sorting(m, x):
    jnp = m.numpy
    order = jnp.argsort(x)
    return jnp.sort(x), order, x[order], jnp.sort(jnp.stack([x, -x]), axis=1)


@case("b, 3")
def extrema(m, x):
    jnp = m.numpy
    return jnp.argmax(x, 0), jnp.argmin(x), x.max(0), x.min(), jnp.ptp(x, 0)


@case("b, 3", "b", dtypes={1: "int32"}, factor=64)
def segment_sums(m, x, ids):
    return m.ops.segment_sum(x, ids % 4, num_segments=4), m.ops.segment_max(
        x, ids % 4, num_segments=x.shape[0]
    )


@case("b", dtypes={0: "int32"})
def one_hots(m, ids):
    return m.nn.one_hot(ids % 5, 5), m.nn.one_hot(ids, ids.shape[0])


@case("b, 3")
def padding(m, x):
    jnp = m.numpy
    rows = jnp.pad(x, ((1, 2), (0, 0)), mode="edge")
    grown = m.lax.pad(x, m.numpy.float32(0), ((1, 1, 1), (0, 0, 0)))
    return jnp.pad(x, ((0, x.shape[0]), (1, 0))), rows, grown


@case("b, 3", "", dtypes={1: "int32"}, constraints=["b >= 2"], first=2)
def dynamic_parts(m, x, i):
    part = m.lax.dynamic_slice(x, (i, 0), (2, 3))
    row = m.lax.dynamic_index_in_dim(x, i, keepdims=False)
    return part, row, m.lax.dynamic_update_slice(x, part * 2, (i, 0))


@case("b, 3", "k", dtypes={1: "int32"})
def gathers(m, x, ids):
    jnp = m.numpy
    places = ids % x.shape[0]
    return x[places], jnp.take(x, places, axis=0), x.at[places].add(1.0), x[:, 1][places]


@case("b, i, k", "b, k, j", factor=64)
def contractions(m, x, y):
    jnp = m.numpy
    return (
        jnp.einsum("bik,bkj->bij", x, y),
        x @ y,
        jnp.tensordot(x, y, ((0, 2), (0, 1))),
        jnp.einsum("bii->b", x @ jnp.swapaxes(x, 1, 2)),
    )


def _block(m, x, p):
    jnp = m.numpy
    centred = x - x.mean(-1, keepdims=True)
    x = centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    q, k, v = jnp.split(x @ p["qkv"], 3, axis=-1)
    b, t, d = x.shape
    q, k, v = (y.reshape(b, t, 2, d // 2).transpose(0, 2, 1, 3) for y in (q, k, v))
    scores = q @ k.transpose(0, 1, 3, 2) * (d // 2) ** -0.5
    mask = jnp.arange(t)[:, None] >= jnp.arange(t)[None, :]
    mixed = m.nn.softmax(jnp.where(mask, scores, -jnp.inf)) @ v
    x = x + mixed.transpose(0, 2, 1, 3).reshape(b, t, d)
    return x + m.nn.gelu(x @ p["up"]) @ p["down"]


def _weights():
    generator = np.random.default_rng(3)
    shapes = {"embed": (11, 8), "pos": (1000, 8), "qkv": (8, 24), "up": (8, 16), "down": (16, 8)}
    return {n: generator.normal(size=s).astype("float32") / 3 for n, s in shapes.items()}


def _transformer(m, tokens, p):
    x = p["embed"][tokens % 11] + p["pos"][: tokens.shape[1]]
    return _block(m, x, p) @ p["embed"].T


@case("b, t", dtypes={0: "int32"}, constraints=["t <= 1000"], factor=200)
def transformer(m, tokens):
    p = {name: m.numpy.asarray(w) for name, w in _weights().items()}
    return _transformer(m, tokens, p)


@case("b, 3", "b", "3", factor=64)
def gradient_of_loss(m, x, y, w):
    return m.value_and_grad(lambda w: ((m.numpy.tanh(x @ w) - y) ** 2).mean())(w)


@case("b, t", dtypes={0: "int32"}, constraints=["t <= 1000", "t >= 2"], factor=500, first=2)
def gradient_of_transformer(m, tokens):
    def loss(p):
        logits = m.nn.log_softmax(_transformer(m, tokens, p))[:, :-1]
        picked = m.numpy.take_along_axis(logits, tokens[:, 1:, None] % 11, axis=-1)
        return -picked.mean()

    p = {name: m.numpy.asarray(w) for name, w in _weights().items()}
    return m.grad(loss)(p)["qkv"]


@case("b, 3")
def vectorized(m, x):
    per_row = m.vmap(lambda row: row / row.sum() * x.mean(0))(x)
    return per_row, m.vmap(lambda a: m.vmap(lambda c: (a * c).sum())(x))(x)


@case("b, 3")
def gradients_of_rows(m, x):
    rows = m.vmap(m.grad(lambda row: m.numpy.sin(row).sum()))(x)
    return rows, m.grad(lambda y: (y - y.mean(0)).std())(x + m.numpy.arange(3.0))


@case("b, 3", factor=64)
def jacobians(m, x):
    primal, tangent = m.jvp(lambda y: m.numpy.cumsum(y, 0) / y.shape[0], (x,), (x * 2,))
    return primal, tangent, m.jacfwd(lambda w: (x @ w).mean())(m.numpy.ones(3))


@case("b, t, 3", dtypes={}, factor=64)
def gradient_of_scan(m, x):
    def loss(w):
        h = m.numpy.zeros((x.shape[0], 3))
        h, _ = m.lax.scan(lambda h, a: (m.numpy.tanh(a * w + h), None), h, x.transpose(1, 0, 2))
        return (h**2).mean()

    return m.grad(loss)(m.numpy.ones(3))


@case("2*b, 3")
def halves(m, x):
    n = x.shape[0] // 2
    return x[:n] * x[n:], x.reshape(2, -1, 3).sum(0), m.numpy.split(x, 2)[1]


@case("b, 4*h", "4*h, 5", factor=64)
def heads(m, x, w):
    y = x.reshape(x.shape[0], 4, -1)
    return y.mean(1), x @ w, m.numpy.concatenate([y, y[:, :1]], 1)


@case("b, k", constraints=["mod(k, 2) == 0"], first=2)
def even_columns(m, x):
    return x.reshape(x.shape[0], -1, 2).sum(-1), x[:, ::2], x[:, : x.shape[1] // 2]


@case("b, t", constraints=["t <= b"])
def bounded(m, x):
    return x[: x.shape[1]] @ x.T, m.numpy.zeros((x.shape[0] - x.shape[1], 2))


@case("b, 3")
def repeated(m, x):
    jnp = m.numpy
    return jnp.repeat(x, 2, axis=0), jnp.tile(x, (2, 1)), jnp.roll(x, 1, axis=0), jnp.flip(x, 0)


@case("b, b", factor=64)
def square_matrices(m, x):
    jnp = m.numpy
    return jnp.eye(x.shape[0]) + x, jnp.trace(x), jnp.triu(x), jnp.diag(x), x @ x.T


@case("b, 6, 6, 2", factor=64)
def pooling(m, x):
    window, strides = (1, 2, 2, 1), (1, 2, 2, 1)
    largest = m.lax.reduce_window(x, -np.inf, m.lax.max, window, strides, "VALID")
    return largest, m.lax.reduce_window(x, 0.0, m.lax.add, window, strides, "VALID").mean((1, 2))


@case("b, 3", factor=64)
def normalized(m, x):
    jnp = m.numpy
    scaled = x / jnp.linalg.norm(x, axis=0)
    return scaled, jnp.outer(x[:, 0], x[:, 1]), jnp.maximum(x, jnp.median(x[:, 0] * 0))


@case("b, 3")
def words_of_rbg(m, x):
    key = m.random.key(3, impl="rbg")
    keys = m.random.split(m.random.key(4, impl="unsafe_rbg"), x.shape[0])
    drawn = m.random.normal(key, x.shape) + x
    return drawn, m.random.bits(key, x.shape, "uint8"), m.random.key_data(keys)


SIZES = ((1, 1), (2, 3), (3, 2), (7, 7), (64, 5), (5, 64), (1000, 2), (2, 1000))
"""Pairs of sizes, for the first names of a function and for the others, turn by turn."""


def sizes_of(found: OpenCase, names: Sequence[str], pair: tuple[int, int]) -> dict[str, int]:
    """Returns sizes that the constraints of a function allow, near a pair."""
    sizes = {name: pair[number % 2] for number, name in enumerate(names)}
    if found.constraints:
        for name in sizes:
            sizes[name] = max(sizes[name], found.first)
        if any("mod(k, 2)" in text for text in found.constraints):
            sizes["k"] += sizes["k"] % 2
        if "t <= b" in found.constraints:
            sizes["b"] = max(sizes["b"], sizes["t"])
    if "h" in sizes and "t" in sizes:
        sizes["t"] = min(sizes["t"], 64)
    for large in ("t",) if "gradient_of_transformer" == found.function.__name__ else ():
        sizes[large] = min(sizes[large], 64)
    return sizes


def arguments(found: OpenCase, sizes: Mapping[str, int], seed: int = 0) -> list[np.ndarray]:
    """Returns arguments of these sizes."""
    generator = np.random.default_rng(seed)
    made = []
    for number, text in enumerate(found.shapes):
        shape = tuple(int(eval(word, {}, dict(sizes))) for word in text.split(",") if word.strip())
        if found.dtype(number) == "int32":
            made.append(generator.integers(0, 1000, shape).astype(np.int32))
        else:
            made.append(generator.normal(size=shape).astype(np.float32))
    return made

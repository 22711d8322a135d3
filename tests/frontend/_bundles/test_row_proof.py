"""Which functions are proved to treat rows one by one, and which are refused."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.rows import export_rows

import axir
import axir.numpy as jnp
from axir import lax, nn, random
from axir._bundles.batching import DependentRowsError
from axir.export import export, symbolic_args_specs

RNG = np.random.default_rng(5)


def _numbers(*shape: int) -> Any:
    return jnp.asarray(RNG.normal(size=shape).astype(np.float32))


W, V, BIAS = _numbers(6, 4), _numbers(4, 6), _numbers(4)
KERNEL = _numbers(3, 1, 2, 2)
TABLE = _numbers(10, 4)
SQUARE = _numbers(6, 6)
KEY = random.key(0)
NORM = {"mean": _numbers(6), "var": jnp.abs(_numbers(6))}


# Independent rows ---------------------------------------------------------------------------


def mlp(x: Any) -> Any:
    return nn.relu(x @ W + BIAS) @ V


def mlp_of_results(x: Any) -> Any:
    hidden = jnp.tanh(x @ W)
    return {"label": jnp.argmax(hidden, -1), "scores": nn.softmax(hidden), "weights": W}


def cnn(x: Any) -> Any:
    image = x.reshape(x.shape[0], 1, 2, 3)
    found = lax.conv_general_dilated(image, KERNEL, (1, 1), "SAME")
    pooled = lax.reduce_window(
        nn.relu(found), -jnp.inf, lax.max, (1, 1, 1, 2), (1, 1, 1, 1), "VALID"
    )
    return pooled.reshape(x.shape[0], -1)


def attention(x: Any) -> Any:
    tokens = x.reshape(x.shape[0], 3, 2)
    scores = jnp.einsum("bqd,bkd->bqk", tokens, tokens) / jnp.sqrt(2.0)
    mask = jnp.tril(jnp.ones((3, 3), bool))
    weights = nn.softmax(jnp.where(mask, scores, -1e9))
    return (weights @ tokens).reshape(x.shape)


def transformer(x: Any) -> Any:
    def norm(t: Any) -> Any:
        return (t - t.mean(-1, keepdims=True)) / jnp.sqrt(t.var(-1, keepdims=True) + 1e-5)

    tokens = x.reshape(x.shape[0], 3, 2) + jnp.arange(3.0)[:, None]
    heads = jnp.transpose(norm(tokens).reshape(x.shape[0], 3, 2, 1), (0, 2, 1, 3))
    weights = nn.softmax(heads @ jnp.swapaxes(heads, -1, -2))
    tokens = tokens + jnp.transpose(weights @ heads, (0, 2, 1, 3)).reshape(tokens.shape)
    return (tokens + nn.gelu(norm(tokens))).mean(1)


def batch_norm_with_running_statistics(x: Any) -> Any:
    return (x - NORM["mean"]) * lax.rsqrt(NORM["var"] + 1e-5)


def layer_norm(x: Any) -> Any:
    return nn.standardize(x, axis=-1)


def softmax(x: Any) -> Any:
    return nn.softmax(x) + nn.log_softmax(x) + nn.logsumexp(x, axis=-1, keepdims=True)


def argmax(x: Any) -> Any:
    return jnp.argmax(x, 1), jnp.max(x, axis=1), jnp.argsort(x, axis=-1)


def normalized_rows(x: Any) -> Any:
    return x / jnp.linalg.norm(x, axis=-1, keepdims=True)


def clipped_by_own_norm(x: Any) -> Any:
    norm = jnp.sqrt((x**2).sum(-1, keepdims=True))
    return jnp.where(norm > 1.0, x / norm, x)


def embedding(x: Any) -> Any:
    tokens = jnp.clip(jnp.abs(x * 3).astype(int), 0, 9)
    return TABLE[tokens].mean(1) + jnp.take(TABLE, tokens[:, 0], axis=0)


def one_hot(x: Any) -> Any:
    return nn.one_hot(jnp.argmax(x, -1), 6) * x


def scan_over_time(x: Any) -> Any:
    def step(h: Any, t: Any) -> Any:
        h = jnp.tanh(h * 0.5 + t[:, None])
        return h, h.sum(-1)

    last, seen = lax.scan(step, jnp.zeros((x.shape[0], 4)), x.T)
    return last, seen.T


def vmap_over_rows(x: Any) -> Any:
    return axir.vmap(lambda r: jnp.outer(r, r).sum(0) / r.size)(x)


def vmap_of_scan(x: Any) -> Any:
    return axir.vmap(lambda r: lax.scan(lambda c, t: (c * 0.9 + t, c), 0.0, r)[1])(x)


def vmap_of_while(x: Any) -> Any:
    def root(r: Any) -> Any:
        start = (jnp.abs(r).sum() + 1.0, 0)
        return lax.while_loop(
            lambda s: (s[0] ** 2 - 2.0) > 0.01,
            lambda s: (0.5 * (s[0] + 2.0 / s[0]), s[1] + 1),
            start,
        )

    return axir.vmap(root)(x)


def vmap_of_loop_with_own_end(x: Any) -> Any:
    def count(r: Any) -> Any:
        return lax.fori_loop(0, jnp.argmax(r), lambda i, s: s + r[i], 0.0)

    return axir.vmap(count)(x)


def vmap_of_nested_while(x: Any) -> Any:
    def inner(v: Any) -> Any:
        return lax.while_loop(lambda s: s < 3.0, lambda s: s + jnp.abs(v) + 1.0, v)

    return axir.vmap(axir.vmap(inner))(x)


def vmap_of_cond(x: Any) -> Any:
    return axir.vmap(lambda r: lax.cond(r.sum() > 0, jnp.sin, jnp.cos, r))(x)


def cond_of_a_constant(x: Any) -> Any:
    return lax.cond(W.sum() > 0, lambda x: x * 2, lambda x: x - 1, x)


def loop_of_fixed_length(x: Any) -> Any:
    return lax.fori_loop(0, 4, lambda i, y: y * 0.5 + x * i, jnp.zeros_like(x))


def loop_until_a_parameter_ends_it(x: Any) -> Any:
    return lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * 1.1), (0, x))[1]


def map_over_rows(x: Any) -> Any:
    return lax.map(lambda r: jnp.cumsum(r) / r.shape[0], x)


def rows_and_tokens_merged(x: Any) -> Any:
    flat = x.reshape(-1, 2)
    return (nn.relu(flat @ W[:2]) + BIAS).reshape(x.shape[0], 3, 4)


def rows_behind_tokens(x: Any) -> Any:
    tokens = jnp.transpose(x.reshape(x.shape[0], 3, 2), (1, 0, 2)).reshape(-1, 2)
    return jnp.transpose((tokens @ W[:2]).reshape(3, -1, 4), (1, 0, 2))


def transposed_and_back(x: Any) -> Any:
    return jnp.cumsum(jnp.sin(x.T) * SQUARE[:, :1], 0).T


def own_label(x: Any) -> Any:
    label = jnp.argmax(x, -1)
    return -nn.log_softmax(x)[jnp.arange(x.shape[0]), label]


def own_label_written(x: Any) -> Any:
    return x.at[jnp.arange(len(x)), jnp.argmax(x, 1)].set(0.0)


def own_label_counted(x: Any) -> Any:
    return jnp.zeros((x.shape[0], 6)).at[jnp.arange(len(x)), jnp.argmax(x, 1)].add(1.0)


def taken_along_rows(x: Any) -> Any:
    return jnp.take_along_axis(x, jnp.argsort(x, -1), -1)


def own_slice(x: Any) -> Any:
    return axir.vmap(lambda r: lax.dynamic_slice(r, (jnp.argmax(r),), (2,)))(x)


def sorted_rows(x: Any) -> Any:
    return jnp.sort(x, -1), jnp.median(x, axis=1), lax.top_k(x, 2)


def cumulative(x: Any) -> Any:
    return jnp.cumsum(x, 1), jnp.cumprod(x, -1), lax.cummax(x, axis=1)


def columns(x: Any) -> Any:
    left, right = jnp.split(x, 2, axis=1)
    return jnp.concatenate([right, left, x[:, ::-1], x[:, 1:3]], -1), jnp.roll(x, 1, axis=1)


def padded_columns(x: Any) -> Any:
    return jnp.pad(x, ((0, 0), (1, 2))), jnp.tile(x, (1, 2)), jnp.repeat(x, 2, axis=1)


def with_ones(x: Any) -> Any:
    return jnp.concatenate([jnp.ones((x.shape[0], 1)), x], axis=1)


def learned_token_for_all(x: Any) -> Any:
    token = jnp.broadcast_to(W[:, 0], (x.shape[0], 6))
    return jnp.stack([token, x], 1)


def positions_for_all(x: Any) -> Any:
    return x + jnp.tile(jnp.arange(6.0), (x.shape[0], 1))


def nan_guard_of_values(x: Any) -> Any:
    return jnp.where(jnp.isnan(x), 0.0, x), jnp.nan_to_num(x)


def nan_guard_of_rows(x: Any) -> Any:
    return jnp.where(jnp.isnan(x).any(-1, keepdims=True), 0.0, x)


def gradient_of_rows(x: Any) -> Any:
    return axir.vmap(axir.grad(lambda r: (jnp.tanh(r @ W) ** 2).sum()))(x)


def gradient_of_a_sum(x: Any) -> Any:
    return axir.grad(lambda x: nn.softmax(x @ W)[:, 0].sum())(x)


def jacobian_of_rows(x: Any) -> Any:
    return axir.vmap(axir.jacfwd(lambda r: jnp.sin(r @ W)))(x)


def solved(x: Any) -> Any:
    matrix = x.reshape(x.shape[0], 2, 3) @ x.reshape(x.shape[0], 3, 2) + 3 * jnp.eye(2)
    return jnp.linalg.solve(matrix, jnp.ones((x.shape[0], 2, 1))), jnp.linalg.cholesky(matrix)


def transformed(x: Any) -> Any:
    return jnp.fft.fft(x).real, jnp.fft.rfft(x, axis=-1).imag


def pairs_within_rows(x: Any) -> Any:
    points = x.reshape(-1, 3, 2)
    return jnp.linalg.norm(points[:, :, None] - points[:, None], axis=-1)


def polynomial(x: Any) -> Any:
    return jnp.stack([x**n for n in range(3)], axis=-1) @ jnp.array([1.0, 0.5, 0.25])


def scalar_results(x: Any) -> Any:
    return (x**2).sum(1), x[:, 0], x.mean(axis=1)


def nested_jit(x: Any) -> Any:
    return axir.jit(lambda y: axir.jit(jnp.sin)(y) + jnp.ones(y.shape[0])[:, None])(x)


def checkpointed(x: Any) -> Any:
    return axir.checkpoint(mlp)(x)


def custom_rule(x: Any) -> Any:
    @axir.custom_jvp
    def f(x: Any) -> Any:
        return jnp.sin(x)

    f.defjvps(lambda t, out, x: t * jnp.cos(x))
    return f(x)


def noise_that_all_rows_share(x: Any) -> Any:
    return x + random.normal(KEY, (6,))


def noise_of_own_seed(x: Any) -> Any:
    seeds = jnp.abs(x[:, 0] * 100).astype(jnp.uint32)
    return x + axir.vmap(lambda s: random.normal(random.fold_in(KEY, s), (6,)))(seeds)


def weights_alone(x: Any) -> Any:
    return x * 2, W.sum()


def histogram(x: Any) -> Any:
    return axir.vmap(lambda r: jnp.histogram(r, bins=4, range=(-2.0, 2.0))[0])(x)


def interpolated(x: Any) -> Any:
    return jnp.interp(x, jnp.linspace(-1.0, 1.0, 5), jnp.arange(5.0))


def recurrent_decoder(x: Any) -> Any:
    def step(state: Any, _: Any) -> Any:
        h, token = state
        h = jnp.tanh(h @ SQUARE + TABLE[token][:, :1])
        token = jnp.argmax(h @ W, -1)
        return (h, token), token

    start = (x, jnp.zeros(x.shape[0], int))
    return lax.scan(step, start, None, length=3)[1].T


OWN = [
    mlp, mlp_of_results, cnn, attention, transformer, batch_norm_with_running_statistics,
    layer_norm, softmax, argmax, normalized_rows, clipped_by_own_norm, embedding, one_hot,
    scan_over_time, vmap_over_rows, vmap_of_scan, vmap_of_while, vmap_of_loop_with_own_end,
    vmap_of_nested_while, vmap_of_cond, cond_of_a_constant, loop_of_fixed_length,
    loop_until_a_parameter_ends_it, map_over_rows, rows_and_tokens_merged, rows_behind_tokens,
    transposed_and_back, own_label, own_label_written, own_label_counted, taken_along_rows,
    own_slice, sorted_rows, cumulative, columns, padded_columns, with_ones,
    learned_token_for_all, positions_for_all, nan_guard_of_values, nan_guard_of_rows,
    gradient_of_rows, gradient_of_a_sum, jacobian_of_rows, solved, transformed,
    pairs_within_rows, polynomial, scalar_results, nested_jit, checkpointed, custom_rule,
    noise_that_all_rows_share, noise_of_own_seed, weights_alone, histogram, interpolated,
    recurrent_decoder,
]  # fmt: skip


@pytest.mark.parametrize("function", OWN, ids=lambda f: f.__name__)
def test_rows_of_their_own_are_proved(function: Callable[[Any], Any]) -> None:
    x = RNG.normal(size=(5, 6)).astype(np.float32)
    exported = export(function)(*symbolic_args_specs((x,), "b, ..."))
    with axir.disable_jit():
        found = exported.of_rows(len(x)).function.evaluate(jnp.asarray(x))
        expected = axir.tree.leaves(function(jnp.asarray(x)))
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=2e-5)


# Mixed or distinguished rows ---------------------------------------------------------------


def _own_step(x: Any) -> Any:
    return x + 1.0


MIXED: list[tuple[Callable[[Any], Any], str]] = [
    # thresholds of the whole batch
    (lambda x: x + jnp.where(x.max() > 100.0, x.sum(0), 0.0), "'reduce_max' mixes"),
    (lambda x: jnp.where(x.max() > 100.0, x, -x), "'reduce_max' mixes"),
    (lambda x: lax.cond(jnp.any(x > 100.0), lambda x: x * 2, lambda x: x, x), "'reduce_or' mixes"),
    (lambda x: jnp.where((x > 50).sum() > 2, x * 0, x), "'reduce_sum' mixes"),
    # masks by the number of a row
    (lambda x: jnp.where(jnp.arange(x.shape[0])[:, None] < 64, x, 0.0), "tells rows apart"),
    (lambda x: x * (jnp.arange(len(x)) < 1000)[:, None], "tells rows apart"),
    (lambda x: x.at[100:].set(0.0), "depends on how many"),
    (lambda x: jnp.tril(jnp.ones((len(x), len(x)))) @ x, "tells rows apart"),
    (lambda x: x * (1 + lax.iota("int32", len(x)) // 1000)[:, None], "tells rows apart"),
    # guards against nan
    (lambda x: jnp.where(jnp.isnan(x).any(), 0.0, x), "'reduce_or' mixes"),
    (lambda x: jnp.where(jnp.isfinite(x).all(), x, jnp.zeros_like(x)), "'reduce_and' mixes"),
    (lambda x: lax.select(jnp.isnan(x.sum()), jnp.zeros_like(x), x), "'reduce_sum' mixes"),
    # clipping by the norm of all
    (lambda x: x / jnp.maximum(1.0, jnp.linalg.norm(x) / 1e3), "'reduce_sum' mixes"),
    (lambda x: x * jnp.minimum(1.0, 1e6 / jnp.sqrt(jnp.vdot(x, x))), "mixes"),
    # equal rows
    (lambda x: (x[:, None] == x[None]).all(-1).sum(1), "mixes|depends on how many"),
    (lambda x: jnp.unique(x, axis=0, size=len(x)), "tells rows apart"),
    (lambda x: jnp.where((x == x[0]).all(-1, keepdims=True), x, x + 0.0), "'slice' mixes"),
    (lambda x: x + (x == jnp.roll(x, 1, 0)).all(-1, keepdims=True), "mixes"),
    # statistics of the batch
    (lambda x: x - x.mean(0), "'reduce_sum' mixes"),
    (lambda x: (x - x.mean()) / x.std(), "'reduce_sum' mixes"),
    (lambda x: nn.softmax(x, axis=0), "'reduce_max' mixes"),
    (lambda x: x - jnp.median(x, axis=0), "'sort' mixes"),
    (lambda x: jnp.argmax(x, 0)[None] + jnp.zeros((len(x), 1)), "'argmax' mixes"),
    # orders, and neighbours
    (lambda x: jnp.sort(x, 0), "'sort' mixes"),
    (lambda x: jnp.cumsum(x, 0), "'cumsum' mixes"),
    (lambda x: x[::-1], "'rev' mixes"),
    (lambda x: jnp.flip(x, 0), "'rev' mixes"),
    (lambda x: jnp.roll(x, 1, axis=0), "mixes"),
    (lambda x: jnp.concatenate([x[1:], x[:1]]), "'slice' mixes"),
    (lambda x: jnp.diff(x, axis=0, prepend=x[:1]), "'slice' mixes"),
    (lambda x: jnp.convolve(x[:, 0], jnp.ones(3), mode="same"), "shapes"),
    (lambda x: lax.associative_scan(jnp.add, x), "mixes|depends on how many"),
    (lambda x: jnp.fft.fft(x, axis=0).real, "'fft' mixes"),
    (lambda x: x.reshape(6, len(x)).T, "mixes"),
    (lambda x: x.reshape(2, -1, 3).transpose(1, 0, 2).reshape(x.shape), "mixes"),
    (lambda x: x[jnp.argsort(x[:, 0])], "'sort' mixes"),
    (lambda x: x[jnp.clip(jnp.arange(len(x)) + 1, 0, len(x) - 1)], "tells rows apart"),
    (lambda x: x[(jnp.arange(len(x)) * 0)], "'mul' tells rows apart"),
    (lambda x: x.at[jnp.argmax(x[:, 0])].set(0.0), "mixes"),
    (lambda x: jnp.zeros_like(x).at[jnp.zeros(len(x), int)].add(x), "mixes"),
    (lambda x: TABLE[jnp.arange(len(x)) % 10], "tells rows apart"),
    (lambda x: TABLE[jnp.arange(len(x))], "elsewhere|apart"),
    # products of rows with rows
    (lambda x: (x @ x.T) @ x, "mixes|depends on how many"),
    (lambda x: x @ (x.T @ x), "'dot_general' mixes"),
    (lambda x: x @ jnp.linalg.inv(x.T @ x + jnp.eye(6)), "'dot_general' mixes"),
    # how many rows there are
    (lambda x: x / x.shape[0], r"float32\[\], depends on how many"),
    (lambda x: x * jnp.float32(len(x)), "depends on how many"),
    (lambda x: lax.fori_loop(0, len(x), lambda i, y: y * 0.9, x), "depends|passes"),
    (lambda x: x if x.shape[0] < 100 else x * 2, "depends on how many"),
    (lambda x: x * 2 if x.shape[0] == 1 else x, "in another way"),
    (lambda x: sum((x + i for i in range(len(x))), 0.0 * x), "depends on how many"),
    (lambda x: x + jnp.linspace(0.0, 1.0, len(x))[:, None] * 0.0, "tells rows apart"),
    (lambda x: jnp.pad(x, ((0, 1), (0, 0)))[: len(x)], "'pad' mixes"),
    # one key for all rows
    (lambda x: x + random.normal(KEY, x.shape), "tells rows apart|mixes|depends"),
    (lambda x: x + random.normal(KEY, (len(x), 1)), "tells rows apart|mixes|depends"),
    (lambda x: jnp.where(random.bernoulli(KEY, 0.9, x.shape), x, 0.0), "apart|mixes|depends"),
    (
        lambda x: x + axir.vmap(lambda k: random.normal(k, (6,)))(random.split(KEY, len(x))),
        "apart|mixes|depends",
    ),
    # loops that rows enter together
    (lambda x: lax.while_loop(lambda y: (y < 3.0).any(), _own_step, x), "last of them is done"),
    (lambda x: lax.while_loop(lambda y: (y < 3.0).all(), _own_step, x), "last of them is done"),
    (lambda x: lax.scan(lambda c, r: (c + r, c), jnp.zeros(6), x)[1], "from row to row"),
    (
        lambda x: lax.while_loop(lambda s: s[1] > 1e-3, lambda s: (s[0] / 2, jnp.abs(s[0]).max()),
                                 (x, 1.0))[0],
        "mixes",
    ),
    (lambda x: lax.fori_loop(0, 3, lambda i, y: y - y.mean(0), x), "'reduce_sum' mixes"),
    # an unknown value
    (
        lambda x: axir.pure_callback(lambda y: np.asarray(y)[::-1].copy(), x, x),
        "is not known",
    ),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(MIXED)))
def test_rows_that_meet_are_refused(number: int) -> None:
    function, reason = MIXED[number]
    x = np.ones((5, 6), np.float32)
    with pytest.raises(DependentRowsError, match=reason) as caught:
        export_rows(function)(*symbolic_args_specs((x,), "b, ..."))
    text = str(caught.value)
    lines, start = inspect.getsourcelines(function)
    if "in another way" not in text:
        places = [f"{__file__}:{start + n}" for n in range(len(lines) + 1)]
        assert any(place in text for place in places), text

"""Random functions of rows: independent rows are proved, and proved functions are right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.rows import export_rows

import axir
import axir.numpy as jnp
from axir import lax, nn
from axir._bundles.batching import DependentRowsError
from axir.export import symbolic_args_specs

WIDTH = 4
SQUARE = jnp.asarray(np.random.default_rng(0).normal(size=(WIDTH, WIDTH)).astype(np.float32))

Step = Callable[[Any, Any], Any]

# From two arrays (b, 4) to another one, row by row.
APART: list[Step] = [
    lambda x, y: x + jnp.sin(y),
    lambda x, y: x * nn.sigmoid(y),
    lambda x, y: jnp.where(x > y, x, -y),
    lambda x, y: nn.softmax(x) + y,
    lambda x, y: jnp.tanh(x @ SQUARE),
    lambda x, y: x - y.mean(-1, keepdims=True),
    lambda x, y: x / (1.0 + jnp.linalg.norm(y, axis=1, keepdims=True)),
    lambda x, y: jnp.concatenate([x[:, 2:], y[:, :2]], 1),
    lambda x, y: jnp.sort(x, -1) + y[:, ::-1],
    lambda x, y: jnp.cumsum(x, 1) * 0.5,
    lambda x, y: jnp.take_along_axis(x, jnp.argsort(y, -1), -1),
    lambda x, y: x.at[jnp.arange(len(x)), jnp.argmax(y, -1)].set(0.5),
    lambda x, y: jnp.broadcast_to(x[jnp.arange(len(x)), jnp.argmin(y, -1)][:, None], x.shape),
    lambda x, y: jnp.einsum("bi,bj->bij", x, y).sum(1) * 0.1,
    lambda x, y: (x.reshape(-1, 2) @ SQUARE[:2, :2]).reshape(y.shape),
    lambda x, y: jnp.transpose(x.reshape(-1, 2, 2), (1, 0, 2)).reshape(2, -1, 2)[0].repeat(2, 1),
    lambda x, y: (x.T * SQUARE[:, :1]).T + y,
    lambda x, y: jnp.stack([x, y], 1).max(1),
    lambda x, y: axir.vmap(lambda r, s: jnp.dot(r, s) * r)(x, y) * 0.1,
    lambda x, y: axir.vmap(lambda r: lax.cond(r[0] > 0, jnp.sin, jnp.cos, r))(x),
    lambda x, y: axir.vmap(_until_small)(x),
    lambda x, y: lax.scan(lambda c, t: (c * 0.5 + t[:, None], t), y, x.T)[0],
    lambda x, y: lax.scan(lambda c, t: (c, c[:, :1] + t[:, None]), y, x.T)[1][0].repeat(4, 1),
    lambda x, y: lax.map(lambda r: jnp.roll(r, 1), x),
    lambda x, y: lax.fori_loop(0, 3, lambda i, z: z * 0.5 + x, y),
    lambda x, y: lax.cond(SQUARE.sum() > 0, lambda: x, lambda: y),
    lambda x, y: axir.grad(lambda z: (jnp.tanh(z) * y).sum())(x),
    lambda x, y: jnp.pad(x, ((0, 0), (1, 0)))[:, :WIDTH] + jnp.zeros_like(y),
    lambda x, y: jnp.concatenate([jnp.ones((len(x), 1)), x[:, 1:]], 1),
    lambda x, y: axir.jit(lambda z: z * jnp.float32(2.0))(x) - y,
]

# The same, but rows meet, or are told apart: sometimes only for other numbers than most.
MIXING: list[Step] = [
    lambda x, y: x + jnp.where(y.max() > 1e3, 1.0, 0.0),
    lambda x, y: x * jnp.where(jnp.isnan(y).any(), 0.0, 1.0),
    lambda x, y: x / jnp.maximum(1.0, jnp.sqrt((y**2).sum()) / 1e4),
    lambda x, y: jnp.where((jnp.arange(len(x)) < 150)[:, None], x, y),
    lambda x, y: x + (jnp.abs(x[:1] - y).sum() == 0),
    lambda x, y: x + jnp.where(jnp.abs(y - y[::-1]).max() > 1e3, 1.0, 0.0),
    lambda x, y: x.at[jnp.argmax(jnp.abs(y[:, 0])) * 0].add(0.25),
    lambda x, y: jnp.sort(x, 0),
    lambda x, y: jnp.transpose(x.reshape(2, 2, -1), (2, 0, 1)).reshape(y.shape),
    lambda x, y: x + jnp.float32(len(x) > 100),
    lambda x, y: lax.while_loop(lambda z: jnp.abs(z).max() > 0.5, lambda z: z * 0.5, x),
    lambda x, y: lax.scan(lambda c, r: (jnp.maximum(c, r), c), y[0] - 1e3, x)[1] * 1e-3 + x,
    lambda x, y: x + jnp.roll(y, 1, 0) * (jnp.abs(y) > 1e3),
    lambda x, y: x[jnp.clip(jnp.arange(len(x)), 0, 150)],
    lambda x, y: lax.cond(jnp.any(y > 1e3), lambda: x, lambda: x * 2),
    lambda x, y: axir.vmap(lambda r: r * lax.rsqrt(jnp.mean(y**2) + 1.0))(x),
]


def _until_small(r: Any) -> Any:
    return lax.while_loop(lambda z: jnp.abs(z).max() > 0.5, lambda z: z * 0.6, r)


def _drawn(seed: int, steps: list[Step], count: int) -> Callable[[Any], Any]:
    generator = np.random.default_rng(seed)
    drawn = [
        (steps[generator.integers(len(steps))], *(int(n) for n in generator.integers(0, 99, 2)))
        for _ in range(count)
    ]

    def function(x: Any) -> Any:
        pool = [x]
        for step, first, second in drawn:
            pool.append(step(pool[-1 - first % min(3, len(pool))], pool[second % len(pool)]))
        return pool[-1], pool[len(pool) // 2]

    return function


def _proved(function: Callable[[Any], Any]) -> Any:
    return export_rows(function)(*symbolic_args_specs((np.ones((3, WIDTH), np.float32),), "b, ..."))


def _check(function: Callable[[Any], Any], exported: Any, seed: int) -> None:
    """Compares a function with its export, on rows that are large, nan, or equal."""
    generator = np.random.default_rng(seed)
    for count in (1, 2, 6, 160):
        x = generator.normal(size=(count, WIDTH)).astype(np.float32)
        if count > 2:
            x[0], x[1], x[2, 0] = x[-1], 1e5 * x[1], np.nan
        with axir.disable_jit(), np.errstate(all="ignore"):
            found = exported.of_rows(count).function.evaluate(jnp.asarray(x))
            expected = function(jnp.asarray(x))
        for got, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("seed", range(12))
def test_functions_that_keep_rows_apart_are_proved(seed: int) -> None:
    function = _drawn(seed, APART, 8)
    _check(function, _proved(function), seed)


@pytest.mark.parametrize("seed", range(len(MIXING)))
def test_functions_that_mix_rows_are_refused(seed: int) -> None:
    before, after = (_drawn(10 * seed + n, APART[:6], 2) for n in (1, 2))

    def function(x: Any) -> Any:
        mixed = MIXING[seed](before(x)[0], x)
        return after(mixed)[0] + mixed

    with pytest.raises(DependentRowsError):
        _proved(function)


def test_what_is_proved_of_random_functions_is_right() -> None:
    proved = 0
    for seed in range(40):
        function = _drawn(seed + 100, [*APART, *MIXING], 3)
        try:
            exported = _proved(function)
        except DependentRowsError:
            continue
        proved += 1
        _check(function, exported, seed)
    assert proved >= 8

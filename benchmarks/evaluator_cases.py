"""Cases of the evaluator: an operation applied eagerly, against NumPy's own function.

No operation of the evaluator should take more than 20 times as long as NumPy's function, where
there is one. Where NumPy has none, SciPy's or the usual formulation stands in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.signal
import scipy.special
from measure import Case
from numpy.lib.stride_tricks import sliding_window_view

import axir.numpy as jnp
from axir import lax

_GOAL = 20.0
Pair = tuple[Callable[[], Any], Callable[[], Any]]


def _unary(ours: Callable[..., Any], theirs: Callable[..., Any], size: int) -> Pair:
    host = np.linspace(0.1, 0.9, size, dtype=np.float32)
    device = jnp.asarray(host)
    return lambda: ours(device), lambda: theirs(host)


def _binary(ours: Callable[..., Any], theirs: Callable[..., Any], size: int) -> Pair:
    host = np.linspace(0.1, 0.9, size, dtype=np.float32)
    device = jnp.asarray(host)
    return lambda: ours(device, device), lambda: theirs(host, host)


_UNARY: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "exp": (lax.exp, np.exp),
    "tanh": (lax.tanh, np.tanh),
    "erf": (lax.erf, scipy.special.erf),
    "lgamma": (lax.lgamma, scipy.special.gammaln),
    "reduce_sum": (lambda x: lax.reduce_sum(x, (0,)), lambda x: np.sum(x, 0)),
    "reduce_max": (lambda x: lax.reduce_max(x, (0,)), lambda x: np.max(x, 0)),
    "argmax": (lambda x: lax.argmax(x, 0, np.int32), lambda x: np.argmax(x, 0)),
    "cumsum": (lax.cumsum, np.cumsum),
    "cummax": (lax.cummax, np.maximum.accumulate),
    "sort": (lax.sort, np.sort),
    "argsort": (jnp.argsort, lambda x: np.argsort(x, stable=True)),
    "top_k": (lambda x: lax.top_k(x, 4), lambda x: np.sort(x)[::-1][:4]),
    "rev": (lambda x: lax.rev(x, (0,)), lambda x: np.ascontiguousarray(x[::-1])),
    "convert": (
        lambda x: lax.convert_element_type(x, np.int32),
        lambda x: x.astype(np.int32),
    ),
    "pad": (lambda x: lax.pad(x, np.float32(0), [(1, 1, 0)]), lambda x: np.pad(x, 1)),
    "reduce_window": (
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (4,), (1,), "VALID"),
        lambda x: sliding_window_view(x, 4).max(-1),
    ),
    "fft": (lambda x: jnp.fft.fft(x), lambda x: np.fft.fft(x)),
}
_BINARY: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "add": (lax.add, np.add),
    "pow": (lax.pow, np.power),
    "lt": (lax.lt, np.less),
    "select": (lambda x, y: jnp.where(x > 0.5, x, y), lambda x, y: np.where(x > 0.5, x, y)),
    "concatenate": (lambda x, y: lax.concatenate([x, y], 0), lambda x, y: np.concatenate([x, y])),
    "dot": (lax.dot, np.dot),
}


def _gather(size: int) -> Pair:
    host = np.ones((size, 4), np.float32)
    rows = np.arange(size, dtype=np.int32)[::-1].copy()
    device, indices = jnp.asarray(host), jnp.asarray(rows)
    return lambda: device[indices], lambda: host[rows]


def _scatter_add(size: int) -> Pair:
    host = np.ones((size, 4), np.float32)
    rows = (np.arange(size, dtype=np.int32) // 2).copy()
    device, indices = jnp.asarray(host), jnp.asarray(rows)

    def theirs() -> Any:
        result = host.copy()
        np.add.at(result, rows, host)
        return result

    return lambda: device.at[indices].add(device), theirs


def _convolution(size: int) -> Pair:
    side = max(4, int(size**0.5))
    image = np.ones((side, side), np.float32)
    kernel = np.ones((3, 3), np.float32)
    ours, weights = jnp.asarray(image[None, None]), jnp.asarray(kernel[None, None])
    return (
        lambda: lax.conv(ours, weights, (1, 1), "VALID"),
        lambda: scipy.signal.correlate2d(image, kernel, "valid"),
    )


def _linear_algebra(name: str) -> Callable[[int], Pair]:
    def make(size: int) -> Pair:
        side = max(2, int(size**0.5) // 2)
        generator = np.random.default_rng(0)
        half = generator.normal(size=(side, side)).astype(np.float32)
        matrix = half @ half.T + side * np.eye(side, dtype=np.float32)
        device = jnp.asarray(matrix)
        ours, theirs = getattr(jnp.linalg, name), getattr(np.linalg, name)
        return lambda: ours(device), lambda: theirs(matrix)

    return make


_FURTHER: dict[str, Callable[[int], Pair]] = {
    "gather": _gather,
    "scatter_add": _scatter_add,
    "conv": _convolution,
    **{f"linalg-{n}": _linear_algebra(n) for n in ("cholesky", "inv", "qr", "eigh", "svd", "det")},
}


def _cases() -> dict[str, Case]:
    cases: dict[str, Case] = {}
    for size in (8, 100_000):
        for name, (ours, theirs) in _UNARY.items():
            cases[f"numpy-{name}-{size}"] = _case(_unary, ours, theirs, size)
        for name, (ours, theirs) in _BINARY.items():
            cases[f"numpy-{name}-{size}"] = _case(_binary, ours, theirs, size)
        for name, make in _FURTHER.items():
            cases[f"numpy-{name}-{size}"] = _case(make, size)
    return cases


def _case(make: Callable[..., Pair], *args: Any) -> Case:
    return Case(lambda: make(*args), goal=_GOAL)


EVALUATOR_CASES = _cases()

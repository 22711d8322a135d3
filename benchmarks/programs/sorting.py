"""The sort family."""

from __future__ import annotations

import numpy as np

from benchmarks.harness.program import floats, integers, seed
from benchmarks.programs.groups import kernels

# The goal for sorts with rows long enough that sorting dominates the time.
_GOAL = 0.15


@kernels.program(
    {"1e5": (100_000,), "odd": (99_991,), "1e6": (1_000_000,), "rows-of-1000": (1000, 1000)},
    tiny=(2, 5),
    goal=_GOAL,
    cold=True,
    numpy=np.sort,
    torch=lambda torch, x: torch.sort(x)[0],
)
def sort(jax, *shape):
    return jax.numpy.sort, [floats(*shape)]


@kernels.program({"8-of-10000": (10_000, 8), "100": (100,), "one": (1,), "empty": (0,)}, tiny=(5,))
def sort_short(jax, *shape):
    return jax.numpy.sort, [floats(*shape)]


@kernels.program((1000, 1000), tiny=(4, 3), goal=_GOAL)
def sort_columns(jax, *shape):
    return lambda x: jax.numpy.sort(x, axis=0), [floats(*shape)]


@kernels.program(100_000, tiny=6, goal=_GOAL)
def sort_integers(jax, n):
    return jax.numpy.sort, [integers(2**30, n)]


@kernels.program(100_000, tiny=6, goal=_GOAL, x64=True)
def sort_float64(jax, n):
    return jax.numpy.sort, [floats(n, dtype=np.float64)]


@kernels.program({"1e5": (100_000,), "rows": (300, 300)}, tiny=(2, 5), goal=_GOAL, numpy=np.argsort)
def argsort(jax, *shape):
    return jax.numpy.argsort, [floats(*shape)]


@kernels.program(100_000, tiny=6, goal=_GOAL)
def sort_by_key(jax, n):
    def sort(keys, values):
        return jax.lax.sort((keys, values), num_keys=1)

    return sort, [floats(n), floats(n)[::-1].copy()]


@kernels.program((3, 5000), tiny=(3, 6), goal=_GOAL)
def lexsort(jax, *shape):
    return lambda x: jax.numpy.lexsort(tuple(jax.numpy.round(x))), [floats(*shape)]


@kernels.program((1000, 300), tiny=(5, 3), goal=_GOAL, numpy=lambda x: np.median(x, axis=0))
def median(jax, *shape):
    return lambda x: jax.numpy.median(x, axis=0), [floats(*shape)]


@kernels.program(100_000, tiny=9, goal=_GOAL)
def quantiles(jax, n):
    return lambda x, q: jax.numpy.quantile(x, q), [floats(n), np.float32([0.1, 0.5, 0.9])]


@kernels.program({"10-of-1e5": (1, 100_000, 10), "rows": (256, 1000, 5)}, tiny=(2, 6, 3))
def top_k(jax, rows, columns, count):
    return lambda x: jax.lax.top_k(x, count), [floats(rows, columns)]


@kernels.program(60_000, tiny=8, goal=_GOAL)
def permutation(jax, n):
    return lambda number: jax.random.permutation(jax.random.key(number), n), [seed()]


@kernels.program(50_000, tiny=8, goal=_GOAL)
def unique(jax, n):
    return lambda x: jax.numpy.unique(x, size=1000, fill_value=0), [integers(1000, n)]


@kernels.program((10_000, 100_000), tiny=(6, 9), numpy=lambda x, y: np.searchsorted(x, y))
def searchsorted(jax, size, queries):
    return jax.numpy.searchsorted, [np.sort(floats(size)), floats(queries)]


@kernels.program(8192, tiny=9, goal=_GOAL)
def rank_correlation(jax, n):
    def correlation(x, y):
        ranks = [jax.numpy.argsort(jax.numpy.argsort(v)).astype(np.float32) for v in (x, y)]
        return jax.numpy.corrcoef(*ranks)[0, 1]

    return correlation, [floats(n), floats(n) + floats(n)[::-1]]

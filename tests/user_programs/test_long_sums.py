"""Sums, products and running sums of millions of numbers keep their digits, compiled or not.

What is added is 0.1, or numbers between 0.1 and 0.6: one after the other in float32, millions of
them are off by hundreds to a million roundings.
"""

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import lax

EPSILON = float(np.finfo(np.float32).eps)
RNG = np.random.default_rng(29)
COUNT = 1_500_000


def drawn(*shape):
    return (RNG.random(shape, dtype=np.float32) * np.float32(0.5) + np.float32(0.1)).astype("f4")


def near_one(*shape):
    return (1 + (drawn(*shape) - np.float32(0.35)) * np.float32(2**-10)).astype(np.float32)


LINE, TALL, TENTHS = drawn(COUNT), drawn(COUNT, 3), np.full((COUNT, 2), 0.1, np.float32)
MIDDLE, WIDE, ROWS = drawn(20, 30_000, 3), drawn(60_000, 20), drawn(3, COUNT)
SEGMENTS = (np.arange(COUNT) % 3).astype(np.int32)
HALVES, FACTORS = np.full((200_000, 2), 0.1, np.float16), near_one(COUNT)
HALF_ROWS = np.full((60_000, 20), 0.1, np.float16)
COMPLEX = (drawn(300_000, 2) + 1j * drawn(300_000, 2)).astype(np.complex64)


def wide(x):
    return x.astype(complex if x.dtype.kind == "c" else float)


def segments(x):
    return np.bincount(SEGMENTS, wide(x), 3)


def gradient_of_a_bias(x, y):
    return axir.grad(lambda b: (x * b + y[:, None]).sum())(jnp.ones(3))


def pairs(x):
    zero = np.float32(0)
    return lax.reduce((x, x), (zero, zero), lambda a, b: (a[0] + b[0], a[1] + b[1]), (0,))[0]


# The function, what it takes, and what is right.
CASES = {
    "sum of a line": (jnp.sum, [LINE], lambda x: x.sum()),
    "sum down three columns": (lambda x: x.sum(0), [TALL], lambda x: x.sum(0)),
    "sum of rows, transposed": (lambda x: x.T.sum(0), [ROWS], lambda x: x.sum(1)),
    "sum of every other number": (lambda x: x[::2, 0].sum(), [TALL], lambda x: x[::2, 0].sum()),
    "mean of tenths": (lambda x: x.mean(0), [TENTHS], lambda x: x.mean(0)),
    "mean of halves": (lambda x: x.mean(0), [HALVES], lambda x: x.mean(0)),
    "sum of a middle axis": (lambda x: x.sum(1), [MIDDLE], lambda x: x.sum(1)),
    "sum of outer axes": (lambda x: x.sum((0, 2)), [MIDDLE], lambda x: x.sum((0, 2))),
    "sum down wide columns": (lambda x: x.sum(0), [WIDE], lambda x: x.sum(0)),
    "variance": (lambda x: jnp.var(x, 0), [TALL], lambda x: x.var(0)),
    "norm": (lambda x: jnp.linalg.norm(x, axis=0), [TALL], lambda x: (x**2).sum(0) ** 0.5),
    "sum of complex numbers": (lambda x: x.sum(0), [COMPLEX], lambda x: x.sum(0)),
    "sum of pairs": (pairs, [TALL], lambda x: x.sum(0)),
    "logsumexp": (
        lambda x: jnp.exp(axir.nn.logsumexp(x, 0) - 14),
        [TALL],
        lambda x: np.exp(x).sum(0) * np.exp(-14.0),
    ),
    "product": (jnp.prod, [FACTORS], lambda x: x.prod()),
    "running sum": (jnp.cumsum, [LINE], np.cumsum),
    "running sum of columns": (lambda x: jnp.cumsum(x, 0), [WIDE], lambda x: x.cumsum(0)),
    "running sum of rows": (lambda x: jnp.cumsum(x, 1), [MIDDLE], lambda x: x.cumsum(1)),
    "running sum of complex numbers": (
        lambda x: jnp.cumsum(x[:, 0]),
        [COMPLEX],
        lambda x: x[:, 0].cumsum(),
    ),
    "running sum from the end": (
        lambda x: lax.cumsum(x, reverse=True),
        [LINE],
        lambda x: x[::-1].cumsum()[::-1],
    ),
    "running sum of exponentials": (
        lax.cumlogsumexp,
        [LINE],
        lambda x: np.log(np.exp(x).cumsum()),
    ),
    "running product": (jnp.cumprod, [FACTORS], np.cumprod),
    "dot product": (lambda x: x @ x, [LINE], lambda x: x @ x),
    "dot product of what is computed": (lambda x: x @ (x + 1), [LINE], lambda x: x @ (x + 1)),
    "matrix times vector": (lambda x, y: x @ y, [ROWS, LINE], lambda x, y: x @ y),
    "vector times matrix": (lambda x, y: x @ y, [LINE, TALL], lambda x, y: x @ y),
    "wide rows": (lambda x: x[:, 0] @ x, [WIDE], lambda x: x[:, 0] @ x),
    "product of columns": (lambda x: x.T @ x, [TALL], lambda x: x.T @ x),
    "product of wide columns": (lambda x: x.T @ x, [WIDE], lambda x: x.T @ x),
    "product of rows": (lambda x: x @ x.T, [ROWS], lambda x: x @ x.T),
    "products of a batch": (
        lambda x: jnp.einsum("aib,aic->abc", x, x),
        [MIDDLE],
        lambda x: np.einsum("aib,aic->abc", x, x),
    ),
    "column by column": (lambda x: jnp.einsum("ij,ij->j", x, x), [TALL], lambda x: (x * x).sum(0)),
    "gradient of a bias": (gradient_of_a_bias, [TALL, LINE], lambda x, y: x.sum(0)),
    "segments": (
        lambda x: axir.ops.segment_sum(x, SEGMENTS, 3),
        [LINE],
        segments,
    ),
    "segments of rows": (
        lambda x: axir.ops.segment_sum(x, SEGMENTS[:60_000], 3),
        [WIDE],
        lambda x: x.reshape(-1, 3, 20).sum(0),
    ),
    "segments of rows of halves": (
        lambda x: axir.ops.segment_sum(x, SEGMENTS[:60_000], 3),
        [HALF_ROWS],
        lambda x: x.reshape(-1, 3, 20).sum(0),
    ),
    "segments of complex numbers": (
        lambda x: axir.ops.segment_sum(x, SEGMENTS[:300_000], 3),
        [COMPLEX],
        lambda x: x.reshape(-1, 3, 2).sum(0),
    ),
    "counts": (lambda x: jnp.bincount(SEGMENTS, x, length=3), [LINE], segments),
    "one element": (
        lambda x: jnp.zeros(2).at[jnp.zeros(COUNT, int)].add(x)[0],
        [LINE],
        lambda x: x.sum(),
    ),
    "windows": (
        lambda x: lax.reduce_window(x, np.float32(0), lax.add, (50_000,), (50_000,), "VALID"),
        [LINE],
        lambda x: x.reshape(-1, 50_000).sum(1),
    ),
    "sums in a loop": (
        lambda x: lax.fori_loop(
            0, 2, lambda i, total: total + (x[:20_000] + i).sum(0), jnp.zeros(3)
        ),
        [TALL],
        lambda x: 2 * x[:20_000].sum(0) + 20_000,
    ),
    "running sums in a loop": (
        lambda x: lax.fori_loop(0, 2, lambda i, y: jnp.cumsum(x[:20_000] + i), jnp.zeros(20_000)),
        [LINE],
        lambda x: (x[:20_000] + 1).cumsum(),
    ),
}


@pytest.fixture(scope="module")
def compiled():
    """The results of one program with all cases."""
    functions = [case[0] for case in CASES.values()]
    call = axir.jit(lambda *groups: [f(*x) for f, x in zip(functions, groups, strict=True)])
    results = call(*(list(map(jnp.asarray, case[1])) for case in CASES.values()))
    return dict(zip(CASES, map(np.asarray, results), strict=True))


def roundings(name, result):
    """By how many roundings a result is off at most, relative to what is right."""
    _, arguments, right = CASES[name]
    exact = np.asarray(right(*map(wide, arguments)))
    assert result.shape == exact.shape
    unit = 2.0**-10 if result.dtype == np.float16 else EPSILON
    return (np.abs(result.astype(exact.dtype) - exact) / np.abs(exact)).max() / unit


@pytest.mark.parametrize("name", CASES)
def test_evaluated(name: str) -> None:
    function, arguments, _ = CASES[name]
    assert roundings(name, np.asarray(function(*map(jnp.asarray, arguments)))) < 16


@pytest.mark.parametrize("name", CASES)
def test_compiled(compiled, name: str) -> None:
    assert roundings(name, compiled[name]) < 16


def test_ones_are_counted() -> None:
    ones = jnp.ones((2**24 + 2**20, 2))
    count = 2**24 + 2**20
    assert jnp.cumsum(ones[:, 0])[-1] == count
    assert jnp.mean(ones, 0).tolist() == [1, 1]
    sums = axir.jit(lambda x: (jnp.cumsum(x[:, 0])[-1], x.mean(0), x.sum(0), x[:, 0] @ x))(ones)
    assert [np.asarray(x).tolist() for x in sums] == [count, [1, 1], [count] * 2, [count] * 2]

"""Functions of nan, infinities and signed zeros give the same results compiled and eager.

The compiler knows some of these numbers: `x * nan` is nan whatever `x` is. Kernels read large
arrays row by row; small ones are part of a kernel of the whole program.

Elsewhere: single operations (`tests/dialect/table/test_constants.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import lax, nn
from axir.scipy import special, stats

NAN, INF = np.nan, np.inf
X = np.arange(1, 5, dtype=np.float32)

_NN = (
    "celu elu gelu glu hard_sigmoid hard_silu hard_tanh leaky_relu log_sigmoid log_softmax "
    "logsumexp mish relu relu6 selu sigmoid silu soft_sign softmax softplus squareplus standardize"
).split()
_NUMPY = (
    "abs arccos arccosh arcsin arcsinh arctan arctanh cbrt ceil cos cosh degrees exp exp2 expm1 "
    "floor log log10 log1p log2 negative reciprocal rint round sign sin sinc sinh sqrt square tan "
    "tanh trunc sum prod max min mean std var median ptp cumsum cumprod sort argsort argmax argmin "
    "any all nansum nanprod nan_to_num isnan isinf isfinite signbit"
).split()
_SPECIAL = "entr erf erfc expit log_ndtr logit ndtr gammaln i0e".split()
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    **{f"nn.{name}": getattr(nn, name) for name in _NN},
    **{f"numpy.{name}": getattr(jnp, name) for name in _NUMPY},
    **{f"special.{name}": getattr(special, name) for name in _SPECIAL},
    "power of nan": lambda x: x**1.5,
    "power to nan": lambda x: 1.5**x,
    "hypot": lambda x: jnp.hypot(x, 1.0),
    "logaddexp": lambda x: jnp.logaddexp(x, -jnp.inf),
    "maximum": lambda x: jnp.maximum(x, 1.0),
    "clip": lambda x: jnp.clip(x, 0.0, 1.0),
    "where": lambda x: jnp.where(x > 0, jnp.exp(x), jnp.exp(-x)),
    "product": lambda x: jnp.exp(x @ x),
    "quantile": lambda x: jnp.quantile(x, 0.3),
    "integers": lambda x: [x.astype(kind) for kind in (jnp.int8, jnp.uint8, jnp.int32, jnp.uint32)],
    "halves": lambda x: [jnp.exp(x.astype(kind)) for kind in (jnp.float16, jnp.bfloat16)],
    "cumulative": lambda x: [lax.cummax(x), lax.cummin(x), lax.cumlogsumexp(x)],
    "logpdf": lambda x: [
        stats.norm.logpdf(1.0, 0.0, x), stats.laplace.pdf(1.0, x, 1.0), stats.logistic.cdf(x),
        stats.expon.logpdf(1.0, scale=x), stats.norm.cdf(0.5, x), stats.poisson.pmf(1, x),
    ],
    "means of nothing": lambda x: [jnp.exp(f(x[:0]) + x) for f in (jnp.mean, jnp.var, jnp.std)],
}  # fmt: skip


def _differences(got: Any, expected: Any, resolution: float) -> list[int]:
    """Places of the leaves that differ in nan, infinities, signs of zeros, or by the resolution."""
    wrong = []
    pairs = zip(axir.tree.leaves(got), axir.tree.leaves(expected), strict=True)
    for place, (left, right) in enumerate(pairs):
        x, y = (np.asarray(value) for value in (left, right))
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        x, y = x.astype(np.float64), y.astype(np.float64)
        is_same = np.array_equal(np.signbit(x[y == 0]), np.signbit(y[y == 0]))
        largest = np.abs(y[np.isfinite(y)]).max(initial=1.0)
        is_near = np.allclose(x, y, 64 * resolution, largest * resolution, equal_nan=True)
        if not (is_same and is_near):
            wrong.append(place)
    return wrong


def _problems(arguments: Any, of: Callable[[Any], Any]) -> list[str]:
    """Names of the functions that give other values compiled than eagerly, all in one program."""
    compiled = axir.jit(lambda x: {name: f(of(x)) for name, f in _FUNCTIONS.items()})(arguments)
    known = of(jnp.asarray(arguments))
    return [
        f"{name}: {compiled[name]}, not {f(known)}"
        for name, f in _FUNCTIONS.items()
        if _differences(compiled[name], f(known), 8e-3 if name == "halves" else 1e-6)
    ]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "of", [lambda x: x * NAN, lambda x: x + INF, lambda x: x - INF], ids=["nan", "inf", "-inf"]
)
def test_functions_of_a_number_that_the_compiler_knows(of: Callable[[Any], Any]) -> None:
    assert not (found := _problems(X, of)), "\n".join(found)


ROWS, COLUMNS = 257, 300  # too many for a kernel of the whole program
_KINDS = [
    [NAN, 1, 2, 3],
    [INF, 1, 2, 3],
    [-INF, 1, 2, 3],
    [INF, -INF, 1, 2],
    [-INF] * 4,
    [-0.0] * 4,
]
_ALONG_ROWS: dict[str, Callable[[Any], Any]] = {
    "softmax": nn.softmax,
    "log_softmax": nn.log_softmax,
    "logsumexp": lambda x: nn.logsumexp(x, axis=-1),
    "sigmoid": lambda x: nn.sigmoid(x).sum(-1),
    "gelu": lambda x: nn.gelu(x).max(-1),
    "layer norm": nn.standardize,
    "extrema": lambda x: [x.max(-1), x.argmax(-1), x.argmin(-1), jnp.ptp(x, 1)],
    "softmax with mask": lambda x: nn.softmax(x, where=x > 0),
    "softmax of nan": lambda x: nn.softmax(x * NAN),
    "columns": lambda x: [x.max(0), jnp.exp(x - x.max(0)).sum(0)],
    "gradient": axir.grad(lambda x: (nn.log_softmax(x) * jnp.sin(jnp.arange(COLUMNS))).sum()),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64, jnp.bfloat16])
def test_kernels_of_rows_keep_nan(dtype: Any) -> None:
    axir.config.update("jax_enable_x64", True)
    x = np.random.default_rng(0).uniform(-2, 2, (ROWS, COLUMNS))
    for row, kind in enumerate(_KINDS):
        x[row] = np.resize(kind, COLUMNS)
    array = jnp.asarray(x, dtype)
    resolution = float(jnp.finfo(dtype).eps)
    compiled = axir.jit(lambda x: {name: f(x) for name, f in _ALONG_ROWS.items()})(array)
    found = [
        name
        for name, f in _ALONG_ROWS.items()
        if _differences(compiled[name], f(array), 16 * resolution)
    ]
    assert not found


_NUMBERS = [0.0, -0.0, 1.0, -1.0, 0.5, 3.0, -3.0, 7.0, -7.0, 5.5, 1e30, -1e30, INF, -INF, NAN]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_divisions_are_those_of_numpy(dtype: Any) -> None:
    axir.config.update("jax_enable_x64", True)
    x, y = (
        np.array(z).astype(dtype) for z in zip(*itertools.product(_NUMBERS, _NUMBERS), strict=True)
    )
    names = ("floor_divide", "remainder", "fmod")

    def divisions(x: Any, y: Any) -> list[Any]:
        return [getattr(jnp, name)(x, y) for name in names]

    for results in (divisions(jnp.asarray(x), jnp.asarray(y)), axir.jit(divisions)(x, y)):
        for name, result in zip(names, results, strict=True):
            expected = getattr(np, name)(x, y)
            np.testing.assert_array_equal(result, expected)
            signs = [np.signbit(z[~np.isnan(expected)]) for z in (np.asarray(result), expected)]
            np.testing.assert_array_equal(*signs, err_msg=name)


def test_derivatives_of_remainders_of_multiples() -> None:
    # Where nothing is left the zero has another sign, and the tangents of every other remainder.
    for x, y in ((6.0, 3.0), (-6.0, 3.0), (6.0, -3.0), (7.0, 3.0)):
        slopes = axir.jit(axir.grad(jnp.remainder, (0, 1)))(x, y)
        assert tuple(map(float, slopes)) == (1.0, -np.floor(x / y))

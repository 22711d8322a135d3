"""The evaluator against NumPy: an operation applied eagerly, and NumPy's own function.

No operation of the evaluator should take more than 20 times as long as NumPy's function, if it
exists; otherwise SciPy's function, or the usual formulation.
"""

from __future__ import annotations

import numpy as np
import scipy.signal
import scipy.special
from numpy.lib.stride_tricks import sliding_window_view

from benchmarks.programs.groups import evaluator

_SIZES = {"8": 8, "100000": 100_000}
_OPTIONS = {"compiled": False, "jax": False}


def _host(size):
    return np.linspace(0.1, 0.9, size, dtype=np.float32)


_UNARY = {
    "exp": (lambda jax, x: jax.lax.exp(x), np.exp),
    "tanh": (lambda jax, x: jax.lax.tanh(x), np.tanh),
    "erf": (lambda jax, x: jax.lax.erf(x), scipy.special.erf),
    "lgamma": (lambda jax, x: jax.lax.lgamma(x), scipy.special.gammaln),
    "reduce-sum": (lambda jax, x: jax.lax.reduce_sum(x, (0,)), lambda x: np.sum(x, 0)),
    "reduce-max": (lambda jax, x: jax.lax.reduce_max(x, (0,)), lambda x: np.max(x, 0)),
    "argmax": (lambda jax, x: jax.lax.argmax(x, 0, np.int32), lambda x: np.argmax(x, 0)),
    "cumsum": (lambda jax, x: jax.lax.cumsum(x), np.cumsum),
    "cummax": (lambda jax, x: jax.lax.cummax(x), np.maximum.accumulate),
    "sort": (lambda jax, x: jax.lax.sort(x), np.sort),
    "argsort": (lambda jax, x: jax.numpy.argsort(x), lambda x: np.argsort(x, stable=True)),
    "top-k": (lambda jax, x: jax.lax.top_k(x, 4)[0], lambda x: np.sort(x)[::-1][:4]),
    "rev": (lambda jax, x: jax.lax.rev(x, (0,)), lambda x: np.ascontiguousarray(x[::-1])),
    "convert": (
        lambda jax, x: jax.lax.convert_element_type(x, np.int32),
        lambda x: x.astype(np.int32),
    ),
    "pad": (lambda jax, x: jax.lax.pad(x, np.float32(0), [(1, 1, 0)]), lambda x: np.pad(x, 1)),
    "reduce-window": (
        lambda jax, x: jax.lax.reduce_window(x, -np.inf, jax.lax.max, (4,), (1,), "VALID"),
        lambda x: sliding_window_view(x, 4).max(-1),
    ),
    "fft": (lambda jax, x: jax.numpy.fft.fft(x), np.fft.fft),
}
_BINARY = {
    "add": (lambda jax, x, y: jax.lax.add(x, y), np.add),
    "pow": (lambda jax, x, y: jax.lax.pow(x, y), np.power),
    "lt": (lambda jax, x, y: jax.lax.lt(x, y), np.less),
    "select": (
        lambda jax, x, y: jax.numpy.where(x > 0.5, x, y),
        lambda x, y: np.where(x > 0.5, x, y),
    ),
    "concatenate": (
        lambda jax, x, y: jax.lax.concatenate([x, y], 0),
        lambda x, y: np.concatenate([x, y]),
    ),
    "dot": (lambda jax, x, y: jax.lax.dot(x, y), np.dot),
}


def _declare(name, ours, theirs, make_args, **options):
    def make(jax, size):
        return lambda *args: ours(jax, *args), make_args(size)

    evaluator.add(f"numpy-{name}", make, _SIZES, 5, numpy=theirs, **_OPTIONS, **options)


for _name, (_ours, _theirs) in _UNARY.items():
    _declare(_name, _ours, _theirs, lambda size: [_host(size)])
for _name, (_ours, _theirs) in _BINARY.items():
    _declare(_name, _ours, _theirs, lambda size: [_host(size), _host(size)])


def _add_at(x, rows):
    result = x.copy()
    np.add.at(result, rows, x)
    return result


_declare(
    "gather",
    lambda jax, x, rows: x[rows],
    lambda x, rows: x[rows],
    lambda size: [np.ones((size, 4), np.float32), np.arange(size, dtype=np.int32)[::-1].copy()],
)
_declare(
    "scatter-add",
    lambda jax, x, rows: x.at[rows].add(x),
    _add_at,
    lambda size: [np.ones((size, 4), np.float32), np.arange(size, dtype=np.int32) // 2],
)


def _image(size):
    side = max(4, int(size**0.5))
    return [np.ones((side, side), np.float32), np.ones((3, 3), np.float32)]


_declare(
    "conv",
    lambda jax, x, w: jax.lax.conv(x[None, None], w[None, None], (1, 1), "VALID")[0, 0],
    lambda x, w: scipy.signal.correlate2d(x, w, "valid"),
    _image,
)


def _matrix(size):
    side = max(2, int(size**0.5) // 2)
    half = np.random.default_rng(0).normal(size=(side, side)).astype(np.float32)
    return [half @ half.T + side * np.eye(side, dtype=np.float32)]


for _name in ("cholesky", "inv", "qr", "eigh", "svd", "det"):
    _declare(
        f"linalg-{_name}",
        lambda jax, a, name=_name: getattr(jax.numpy.linalg, name)(a),
        getattr(np.linalg, _name),
        _matrix,
        # Vectors are defined up to a sign, and the determinant of the large matrix is infinite.
        check=np.abs,
        tolerance=1e-2,
    )

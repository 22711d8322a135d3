"""Edits of arrays, positions in flattened ones, indices as ranges: compared with JAX."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import jax.numpy
import numpy as np
import pytest
from support.against_jax import assert_same

import axir
import axir.numpy as jnp

V = np.array([5, 6, 7], np.int32)
W = np.array([1, 2, 3, 4], np.int32)
B = np.arange(12, dtype=np.int32).reshape(3, 4)
BYTES = B.astype(np.uint8)
JIT = {jnp: axir.jit, jax.numpy: jax.jit}
FLAGS = np.array([True, False, True])

CASES: dict[str, Callable[[Any], Any]] = {
    "delete": lambda m: m.delete(W, np.array([0, -1])),
    "delete from an axis": lambda m: m.delete(B, 1, axis=1),
    "delete a slice": lambda m: m.delete(B, slice(0, 2)),
    "insert": lambda m: m.insert(W, 1, 9),
    "insert at several places": lambda m: m.insert(W, np.array([1, 3]), np.array([7, 8])),
    "insert into an axis": lambda m: m.insert(B, 1, 5, axis=1),
    "insert a column": lambda m: m.insert(B, 1, V, axis=1),
    "insert beyond the ends": lambda m: m.insert(V, np.array([-9, 99, 0]), 5),
    "insert at a place beyond the end": lambda m: m.insert(V, 99, 5),
    "insert a row": lambda m: m.insert(B, 2, W, axis=0),
    "compress": lambda m: m.compress(FLAGS, B, axis=0),
    "compress to a size": lambda m: m.compress(FLAGS, V, size=3, fill_value=5),
    "place": lambda m: m.place(B, B > 2, np.array([7, 8]), inplace=False),
    "fill_diagonal": lambda m: m.fill_diagonal(B, 9, inplace=False),
    "fill_diagonal with a vector": lambda m: m.fill_diagonal(B, V, inplace=False),
    "block": lambda m: m.block([[B, B], [B, B]]),
    "block of a scalar": lambda m: m.block([1, V]),
    "trim_zeros": lambda m: m.trim_zeros(np.array([0, 0, 1, 0, 2, 0]), "f"),
    "trim_zeros of a matrix": lambda m: m.trim_zeros(np.pad(B, 2)),
    "trim_zeros along an axis": lambda m: m.trim_zeros(np.pad(B, 1), axis=1),
    "trim_zeros of zeros": lambda m: m.trim_zeros(np.zeros(3, np.int32)),
    "unravel_index": lambda m: m.unravel_index(np.array([0, 5, 11, -1, 40]), (3, 4)),
    "ravel_multi_index": lambda m: m.ravel_multi_index((W[:2], V[:2] - 5), (3, 4)),
    "unravel for traced extents": lambda m: JIT[m](m.unravel_index)(5, (2, 3)),
    "unravel for an array of extents": lambda m: JIT[m](m.unravel_index)(-2, np.array([2, 3])),
    "unravel a number": lambda m: m.unravel_index(5, (2, 3)),
    "ravel numbers": lambda m: m.ravel_multi_index((1, 2), (2, 3)),
    "ravel and wrap": lambda m: m.ravel_multi_index((V, V - 7), (3, 4), mode="wrap"),
    "ravel and clip": lambda m: m.ravel_multi_index((V, V - 7), (3, 4), mode="clip", order="F"),
    "mask_indices": lambda m: m.mask_indices(3, m.triu),
    "packbits": lambda m: m.packbits(B % 2, axis=1),
    "packbits from the lowest": lambda m: m.packbits(B, bitorder="little"),
    "unpackbits": lambda m: m.unpackbits(BYTES, axis=0),
    "unpackbits but three": lambda m: m.unpackbits(BYTES, count=-3, bitorder="little"),
    "unpackbits beyond the end": lambda m: m.unpackbits(BYTES, axis=1, count=40),
    "apply_along_axis": lambda m: m.apply_along_axis(m.cumsum, 0, B),
    "apply_along_axis to matrices": lambda m: m.apply_along_axis(
        lambda v: m.outer(v, v), 1, np.ones((2, 3, 2), np.float32)
    ),
    "apply_over_axes": lambda m: m.apply_over_axes(m.sum, B, [0, 1]),
    "piecewise": lambda m: m.piecewise(B, [B < 2, B > 4], [lambda x: x * 2, -1, 7]),
    "piecewise without a rest": lambda m: m.piecewise(B, [B < 2, B > 4], [lambda x: x * 2, -1]),
    "i0": lambda m: m.i0(np.array([0.0, 1.0, -3.0], np.float32)),
    "r_": lambda m: m.r_[1:4, 0, V],
    "r_ of rows": lambda m: m.r_["0,2", V, V],
    "r_ of columns": lambda m: m.r_["1,2,0", V, V],
    "r_ along the last axis": lambda m: m.r_["-1", B, B],
    "r_ of a count": lambda m: m.r_[0:1:3j],
    "c_": lambda m: m.c_[V, V],
    "c_ of matrices": lambda m: m.c_[B, B],
    "mgrid": lambda m: m.mgrid[0:2, 0:3],
    "mgrid of a count": lambda m: m.mgrid[0:1:3j],
    "ogrid": lambda m: m.ogrid[0:2, 0:3],
    "mgrid of a count and integers": lambda m: m.mgrid[0:1:3j, 0:2],
    "ogrid of a count and integers": lambda m: m.ogrid[0:1:3j, 0:2],
}


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_jax(name: str) -> None:
    assert_same(CASES[name](jnp), CASES[name](jax.numpy), what=name)


@pytest.mark.parametrize(
    "options", [{}, {"w": True}, {"cov": True}, {"cov": "unscaled", "w": True}]
)
@pytest.mark.parametrize("columns", [1, 2])
def test_polyfit_finds_the_polynomial_of_jax(options: dict[str, Any], columns: int) -> None:
    generator = np.random.default_rng(0)
    x = np.linspace(-1, 1, 9, dtype=np.float32)
    y = generator.normal(size=(9, columns)).astype(np.float32).squeeze()
    if "w" in options:
        options = {**options, "w": np.linspace(1, 2, 9, dtype=np.float32)}
    ours, theirs = (m.polyfit(x, y, 2, **options) for m in (jnp, jax.numpy))
    for mine, other in zip(*map(axir.tree.leaves, (_listed(ours), _listed(theirs))), strict=True):
        np.testing.assert_allclose(np.asarray(mine), np.asarray(other), rtol=1e-4, atol=1e-5)


def _listed(result: Any) -> list[Any]:
    parts = result if isinstance(result, tuple) else [result]
    return [np.asarray(part) for part in parts]


def test_polyfit_returns_diagnostics() -> None:
    x = np.arange(4, dtype=np.float32)
    ours, theirs = (m.polyfit(x, x * x, 1, full=True) for m in (jnp, jax.numpy))
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(np.asarray(mine), np.asarray(other), rtol=1e-4)
    with pytest.raises(axir.errors.ShapeError, match="polyfit"):
        jnp.polyfit(x, x[:2], 1)
    with pytest.raises(axir.errors.ParameterError, match="negative"):
        jnp.polyfit(x, x, -1)


def test_traced_arrays_may_be_edited() -> None:
    f = axir.jit(lambda x: jnp.insert(jnp.delete(jnp.r_[x, 1.0:3.0], 0), 1, x[0]))
    np.testing.assert_array_equal(np.asarray(f(jnp.array([7.0, 8.0]))), [8, 7, 1, 2])


def test_arrays_are_saved_and_loaded() -> None:
    file = io.BytesIO()
    jnp.savez(file, first=jnp.arange(3), second=jnp.ones(2))
    file.seek(0)
    loaded = jnp.load(file)
    assert loaded["first"].tolist() == [0, 1, 2]
    file = io.BytesIO()
    jnp.save(file, jnp.array([1.5, -2.0], jnp.bfloat16))
    file.seek(0)
    loaded = jnp.load(file)
    assert loaded.dtype == jnp.bfloat16
    assert loaded.tolist() == [1.5, -2.0]
    assert jnp.frombuffer(b"\x00\x01", "uint8", offset=1).tolist() == [1]
    assert jnp.fromstring("1.5 2", sep=" ").tolist() == [1.5, 2.0]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: jnp.place(B, B > 2, V), axir.errors.ImmutableArrayError),
        (lambda: jnp.fill_diagonal(B, 1), axir.errors.ImmutableArrayError),
        (lambda: jnp.fill_diagonal(V, 1, inplace=False), axir.errors.ShapeError),
        (lambda: jnp.ravel_multi_index((V, V), (3, 4)), axir.errors.OutOfBoundsError),
        (lambda: jnp.unpackbits(B), axir.errors.DTypeError),
        (lambda: jnp.packbits(B, bitorder="middle"), axir.errors.ParameterError),
        (lambda: jnp.block([[V], V]), axir.errors.ParameterError),
        (lambda: jnp.piecewise(V, [V > 5], [1, 2, 3]), axir.errors.ParameterError),
        (lambda: jnp.r_["x", V], axir.errors.ParameterError),
        (lambda: axir.jit(jnp.trim_zeros)(V), axir.errors.ConcretizationTypeError),
    ],
)
def test_errors_are_of_the_documented_classes(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        call()

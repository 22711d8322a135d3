"""Random reads and updates at indices, compiled, batched and differentiated, against NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp

DTYPES = ("float32", "int32", "uint8")
UPDATES: dict[str, Callable[..., Any]] = {
    "set": lambda at, index, value: at.__setitem__(index, value),
    "add": np.add.at,
    "multiply": np.multiply.at,
    "min": np.minimum.at,
    "max": np.maximum.at,
}


def whole_numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return rng.integers(0, 7, shape).astype(dtype)


def random_index(
    rng: np.random.Generator, shape: tuple[int, ...], margin: int, repeats: bool = True
) -> tuple[tuple[Any, ...], list[np.ndarray]]:
    """An index with arrays for some dimensions and slices for the others; and these arrays.

    Indices lie up to `margin` outside of the dimension on both sides.
    """
    while True:
        by_array = rng.random(len(shape)) < 0.5
        if by_array.any():
            break
    count = 5 if repeats else min(shape)
    index, arrays = [], []
    for size, has_array in zip(shape, by_array, strict=True):
        if has_array:
            low, high = -size - margin, size + margin
            values = rng.integers(low, high, count) if repeats else rng.permutation(size)[:count]
            arrays.append(values.astype(np.int32))
            index.append(arrays[-1])
        else:
            index.append(slice(int(rng.integers(0, 2)), None, int(rng.integers(1, 3))))
    return tuple(index), arrays


def substituted(index: tuple[Any, ...], arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    """The index with its arrays replaced by others."""
    left = iter(arrays)
    return tuple(part if isinstance(part, slice) else next(left) for part in index)


def updated(x: np.ndarray, index: tuple[Any, ...], kind: str, value: np.ndarray) -> np.ndarray:
    """The reference: indices out of bounds are dropped, which a margin around `x` catches."""
    sizes = x.shape
    padded = np.concatenate([x.reshape(-1), np.zeros(1, x.dtype)])
    places = np.full([3 * size for size in sizes], x.size)
    places[tuple(slice(size, 2 * size) for size in sizes)] = np.arange(x.size).reshape(sizes)
    # An index i in [-size, size) counts from either end; in `places` it stands at size + i % size.
    shifted = tuple(
        slice(size + (part.start or 0), 2 * size, part.step)
        if isinstance(part, slice)
        else np.where((part >= -size) & (part < size), size + part % size, 0)
        for part, size in zip(index, sizes, strict=True)
    )
    UPDATES[kind](padded, places[shifted], value)
    return padded[:-1].reshape(sizes)


def test_reads() -> None:
    cases = []
    for dtype, seed in itertools.product(DTYPES, range(6)):
        rng = np.random.default_rng(seed)
        x = whole_numbers(rng, (3, 4, 5, 6)[: 2 + seed % 3], dtype)
        cases.append((x, *random_index(rng, x.shape, 0)))

    def read(operands: Any) -> list[Any]:
        return [
            x[substituted(index, arrays)]
            for (x, arrays), (_, index, _) in zip(operands, cases, strict=True)
        ]

    results = axir.jit(read)([(x, arrays) for x, _, arrays in cases])
    for (x, index, _), result in zip(cases, results, strict=True):
        assert result.dtype == x.dtype
        np.testing.assert_array_equal(result, x[index], err_msg=f"{x.dtype} {x.shape} {index}")


@pytest.mark.parametrize("kind", UPDATES)
def test_updates(kind: str) -> None:
    cases = []
    for dtype, seed in itertools.product(DTYPES, range(3)):
        rng = np.random.default_rng([seed, list(UPDATES).index(kind)])
        x = whole_numbers(rng, (3, 4, 5, 6)[: 2 + seed % 3], dtype)
        index, arrays = random_index(rng, x.shape, 2, repeats=kind != "set")
        inside = substituted(index, [np.zeros_like(array) for array in arrays])
        cases.append((x, index, arrays, whole_numbers(rng, x[inside].shape, dtype)))

    def update(operands: Any) -> list[Any]:
        return [
            getattr(x.at[substituted(index, arrays)], kind)(value)
            for (x, arrays, value), (_, index, *_) in zip(operands, cases, strict=True)
        ]

    results = axir.jit(update)([(x, arrays, value) for x, _, arrays, value in cases])
    for (x, index, _, value), result in zip(cases, results, strict=True):
        assert result.dtype == x.dtype
        expected = updated(x, index, kind, value)
        np.testing.assert_array_equal(result, expected, err_msg=f"{x.dtype} {x.shape} {index}")


def test_updates_of_a_batch() -> None:
    rng = np.random.default_rng(0)
    x = whole_numbers(rng, (3, 2, 4, 5, 6), "float32")
    places = rng.integers(-6, 6, (3, 5)).astype(np.int32)
    value = whole_numbers(rng, (3, 5, 2, 5), "float32")
    expected = [
        updated(x[b], (np.s_[::1], places[b], np.s_[::1], places[b]), "add", value[b])
        for b in range(3)
    ]

    def update(x, places, value):
        return x.at[:, places, :, places].add(value)

    np.testing.assert_array_equal(axir.jit(axir.vmap(update))(x, places, value), expected)
    last = axir.jit(axir.vmap(update, in_axes=(4, 0, 0), out_axes=2))
    result = last(np.moveaxis(x, 0, 4), places, value)
    np.testing.assert_array_equal(np.moveaxis(result, 2, 0), expected)


def test_gradient_of_reads() -> None:
    """The gradient of a sum of squares adds twice each value read to its place."""
    rng = np.random.default_rng(0)
    x = whole_numbers(rng, (3, 4, 5, 6), "float32")
    places = np.array([0, -1, 0, 3, -4], np.int32)
    index = (np.s_[::1], places, np.s_[1::2], places)

    def squares(x, places):
        return (x[:, places, 1::2, places] ** 2).sum()

    expected = updated(np.zeros_like(x), index, "add", 2 * x[index])
    np.testing.assert_array_equal(axir.jit(axir.grad(squares))(x, places), expected)
    batched = axir.jit(axir.vmap(axir.grad(squares)))
    result = batched(np.stack([x, 2 * x]), np.stack([places, places]))
    np.testing.assert_array_equal(result, [expected, 2 * expected])


def test_sorts_and_reversals_of_slices() -> None:
    x = np.random.default_rng(0).normal(size=(4, 5, 6)).astype(np.float32)
    np.testing.assert_array_equal(
        axir.jit(lambda x: jnp.sort(x[:, 1:, ::2], 1))(x), np.sort(x[:, 1:, ::2], 1)
    )
    rows = np.array([1, 0], np.int32)
    np.testing.assert_array_equal(
        axir.jit(lambda x, rows: x[:, ::-1, ::2][:, rows])(x, rows), x[:, ::-1, ::2][:, rows]
    )

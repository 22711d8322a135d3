"""Products with dimensions in any order: both compilers agree with the evaluator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import axir
from axir import lax
from axir.dialect.core.config import config

RNG = np.random.default_rng(11)
EXTENTS = (1, 2, 3, 5, 7, 16, 19, 33)
DTYPES = (np.float32, np.int32, np.float64, np.float16, np.bool_)

Dims = tuple[int, ...]
Numbers = tuple[tuple[Dims, Dims], tuple[Dims, Dims]]


def drawn(count: int) -> Iterator[tuple[np.ndarray, np.ndarray, Numbers]]:
    """Operands of small integers, with equal sums for every order of additions."""
    for number in range(count):
        batch, sums, lhs_free, rhs_free = (int(RNG.integers(0, n)) for n in (3, 3, 3, 3))
        shared = [int(RNG.choice(EXTENTS[:6])) for _ in range(batch + sums)]
        sides, places = [], []
        for free in (lhs_free, rhs_free):
            extents = [*shared, *(int(RNG.choice(EXTENTS)) for _ in range(free))]
            order = RNG.permutation(len(extents))
            values = RNG.integers(-3, 4, [extents[axis] for axis in order])
            sides.append(values.astype(DTYPES[number % len(DTYPES)]))
            places.append([int(np.flatnonzero(order == axis)[0]) for axis in range(batch + sums)])
        (lhs, rhs), (left, right) = sides, places
        numbers = (
            (tuple(left[batch:]), tuple(right[batch:])),
            (tuple(left[:batch]), tuple(right[:batch])),
        )
        if lhs.size * rhs.size < 1 << 20:
            yield lhs, rhs, numbers


PRODUCTS = list(drawn(60))


def alone(*pairs: Any) -> list[Any]:
    return [
        lax.dot_general(lhs, rhs, numbers)
        for (lhs, rhs), (_, _, numbers) in zip(pairs, PRODUCTS, strict=True)
    ]


def in_loop(*pairs: Any) -> list[Any]:
    def step(total: list[Any], _: Any) -> tuple[list[Any], None]:
        made = alone(*[(lhs + 0 * rhs.sum(), rhs) for lhs, rhs in pairs])
        return [x + y.astype(x.dtype) for x, y in zip(total, made, strict=True)], None

    return lax.scan(step, [x * 0 for x in alone(*pairs)], None, length=2)[0]


@pytest.mark.parametrize("form", [alone, in_loop])
@pytest.mark.parametrize("compiler", ["native", "iree"])
def test_dimensions_in_any_order(form: Any, compiler: str) -> None:
    pairs = [(lhs, rhs) for lhs, rhs, _ in PRODUCTS]
    with axir.enable_x64(), config(axir_compiler=compiler):
        with axir.disable_jit():
            expected = form(*pairs)
        found = axir.jit(form)(*pairs)
    for (lhs, rhs, numbers), got, wanted in zip(PRODUCTS, found, expected, strict=True):
        np.testing.assert_array_equal(got, wanted, f"{lhs.shape} {rhs.shape} {numbers}")


STRIPS = [  # rows and columns of matrices that are read by rows side by side, and their dtypes
    ((250, 1101), np.float32),
    ((517, 700), np.float32),
    ((1030, 700), np.float16),
    ((1027, 519), np.int32),
]


def test_rows_of_large_matrices_are_added_up_as_those_of_small_ones() -> None:
    def step(_: int, x: Any, y: Any) -> Any:
        products = x @ y, (x[None] @ y)[0], lax.dot_general(y, x, (((0,), (0,)), ((), ())))
        # Other passes may take large matrices; the addition makes the products part of the loop.
        return x + 0 * sum(products).sum().astype(x.dtype), products

    def run(*pairs: tuple[Any, Any]) -> Any:
        return [
            lax.fori_loop(0, 2, lambda i, c, y=y: step(i, c[0], y), step(0, x, y)) for x, y in pairs
        ]

    pairs = [
        (RNG.integers(-3, 4, shape[0]).astype(dtype), RNG.integers(-3, 4, shape).astype(dtype))
        for shape, dtype in STRIPS
    ]
    for made, (x, y) in zip(axir.jit(run)(*pairs), pairs, strict=True):
        for product in made[1]:
            np.testing.assert_array_equal(product, x.astype(int) @ y.astype(int))

"""`store-compared`: results that are compared with the largest of their own elements."""

from __future__ import annotations

import numpy as np
import pytest
from support.stablehlo_runner import Example, deviations, run_examples, text_after

import axir
import axir.numpy as jnp
from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.legalize_for_iree import STAGES
from axir.passes.legalize.stages import looks_for

ROWS, COLUMNS = 300, 400
RNG = np.random.default_rng(0)
X, Y, Z = (RNG.uniform(-1, 1, (ROWS, COLUMNS)).astype(np.float32) for _ in range(3))
MASK = X * Y + Z == (X * Y + Z).max(0)


def largest(s):
    (found,) = hlo.reduce([s], [hlo.full(-np.inf, (), np.float32)], [0], hlo.maximum)
    return found


def is_largest(x, y, z):
    """Where the sum is largest, next to what else reads the product."""
    product = hlo.multiply(x, y)
    total = hlo.add(product, z)
    spread = hlo.broadcast_in_dim(largest(total), (ROWS, COLUMNS), (1,))
    return [hlo.compare(total, spread, "EQ"), hlo.add(product, product), hlo.tanh(product)]


def is_large(x, y, z):
    """The mean is made of all elements, and none of them."""
    total = hlo.add(hlo.multiply(x, y), z)
    zero = hlo.full(0, (), np.float32)
    (mean,) = hlo.reduce([total], [zero], [0], hlo.add)
    return [hlo.compare(total, hlo.broadcast_in_dim(mean, (ROWS, COLUMNS), (1,)), "GT")]


def sum_is_largest(x, y, z):
    total = hlo.add(x, z)
    spread = hlo.broadcast_in_dim(largest(total), (ROWS, COLUMNS), (1,))
    return [hlo.compare(total, spread, "EQ")]


def is_nan(x, y, z):
    total = hlo.add(hlo.multiply(x, y), z)
    return [hlo.compare(total, total, "NE")]


LARGEST = Example("largest", (X, Y, Z), is_largest, [MASK, 2 * X * Y, np.tanh(X * Y)])
OTHERS = [
    Example("mean", (X, Y, Z), is_large, []),
    Example("nan", (X, Y, Z), is_nan, []),
    Example("sum", (X, Y, Z), sum_is_largest, []),
]


def test_the_largest_elements_are_found() -> None:
    found = run_examples([LARGEST], "store-compared")["largest"]
    assert found[0].any(0).all()
    assert deviations(found, LARGEST, ulps=8) == []


@pytest.mark.parametrize("example", OTHERS, ids=lambda e: e.name)
def test_what_is_rounded_in_one_way_stays(example: Example) -> None:
    assert text_after(example, "store-compared") == text_after(example, "")


def places_of_maxima(number: float) -> np.ndarray:
    """Where the derivative of maxima is not zero, by a program that has this number in it."""

    @axir.jit
    def slopes(x, y, z):
        def total(z):
            product = x * y
            return (jnp.max(product + z, 0) + jnp.sin(product).sum(0)).sum()

        return axir.grad(total)(z) * number, jnp.cos(x * y)

    return np.asarray(slopes(X, Y, Z)[0]) != 0


def test_derivatives_of_maxima_find_their_places() -> None:
    np.testing.assert_array_equal(places_of_maxima(2.0), MASK)


def test_the_pass_is_still_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    # In its place: taken out and put back it would be the last one.
    monkeypatch.setitem(STAGES, "store-compared", looks_for("no_operation"))
    assert not places_of_maxima(3.0).any(0).all()


def test_derivatives_of_maxima_of_segments_find_their_places() -> None:
    segments = np.arange(ROWS) % 7

    def total(x, y, z):
        product = x * y
        return axir.ops.segment_max(product + z, segments).sum() + jnp.sin(product).sum()

    slope = axir.grad(total)
    x, y, z = map(jnp.asarray, (X, Y, Z))
    np.testing.assert_allclose(axir.jit(slope)(x, y, z), slope(x, y, z), rtol=1e-5, atol=1e-6)

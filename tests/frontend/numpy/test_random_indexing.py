"""Random index expressions select the same elements as in NumPy (out of bounds, as in JAX)."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import axir
import axir.numpy as jnp

EXAMPLES = settings(
    max_examples=100, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
KINDS = ("integer", "slice", "new axis", "array", "mask")


@st.composite
def broadcastable(draw: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Draws a shape that broadcasts to another."""
    kept = draw(st.integers(0, len(shape)))
    return tuple(draw(st.sampled_from((1, extent))) for extent in shape[len(shape) - kept :])


@st.composite
def slices(draw: Any, extent: int) -> slice:
    bound = st.none() | st.integers(-extent - 2, extent + 2)
    step = st.none() | st.integers(-3, 3).filter(bool)
    return slice(draw(bound), draw(bound), draw(step))


@st.composite
def entries(
    draw: Any, shape: tuple[int, ...], common: tuple[int, ...], count: int, is_inside: bool
) -> tuple[list[Any], int]:
    """Draws one entry of an index for the next axes, and how many of them it uses."""
    kind = draw(st.sampled_from(KINDS))
    if kind == "new axis" or not shape:
        return [None], 0
    extent = shape[0]
    low, high = (-extent, extent - 1) if is_inside else (-extent - 3, extent + 3)
    if kind == "mask":
        # The number of true elements must broadcast with the arrays beside it.
        axes = draw(st.integers(1, len(shape)))
        size = math.prod(shape[:axes])
        if size >= count:
            chosen = draw(st.permutations(range(size)))[:count]
            mask = np.zeros(size, np.bool_)
            mask[chosen] = True
            return [mask.reshape(shape[:axes])], axes
    if kind == "slice" or not extent:
        return [draw(slices(extent))], 1
    if kind == "integer":
        return [draw(st.integers(-extent, extent - 1))], 1
    positions = draw(broadcastable(common))
    values = draw(
        st.lists(
            st.integers(low, high), min_size=math.prod(positions), max_size=math.prod(positions)
        )
    )
    return [np.array(values, np.int32).reshape(positions)], 1


@st.composite
def indexed(draw: Any, is_inside: bool = True) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """Draws a shape and an index of arrays of that shape."""
    shape = tuple(draw(st.lists(st.integers(0 if is_inside else 1, 4), max_size=4)))
    count = draw(st.integers(0, 3))
    common = (*draw(st.lists(st.integers(1, 2), max_size=1)), count)
    used, index = 0, []
    for _ in range(draw(st.integers(0, len(shape) + 1))):
        entry, axes = draw(entries(shape[used:], common, count, is_inside))
        index += entry
        used += axes
    if draw(st.booleans()):
        index.insert(draw(st.integers(0, len(index))), Ellipsis)
        index = _valid(shape, index)
    return shape, tuple(index)


def _valid(shape: tuple[int, ...], index: list[Any]) -> list[Any]:
    """Drops the ellipsis again where the axes behind it have other extents than those drawn."""
    try:
        np.zeros(shape)[tuple(index)]
    except IndexError:
        index.remove(Ellipsis)
    return index


def numbers(shape: tuple[int, ...], start: float = 0) -> np.ndarray:
    return (np.arange(math.prod(shape), dtype=np.float32) + start).reshape(shape)


def values_for(part: np.ndarray) -> np.ndarray:
    return numbers(part.shape, 100) if part.ndim < 3 else np.float32(7)


@EXAMPLES
@given(indexed())
def test_reading_is_numpy_s(case: tuple[Any, Any]) -> None:
    shape, index = case
    x = numbers(shape)
    np.testing.assert_array_equal(jnp.asarray(x)[index], x[index], strict=True)
    read = axir.numpy.asarray(x).at[index].get(mode="fill")
    np.testing.assert_array_equal(read, x[index], strict=True)


@EXAMPLES
@given(indexed(), st.sampled_from(("add", "subtract", "multiply", "min", "max")))
def test_combining_is_that_of_ufunc_at(case: tuple[Any, Any], kind: str) -> None:
    shape, index = case
    ufunc = {"min": np.minimum, "max": np.maximum}.get(kind) or getattr(np, kind)
    x = numbers(shape)
    values = values_for(x[index])
    expected = x.copy()
    ufunc.at(expected, index, values)
    for mode in (None, "clip"):  # the latter takes the way of large arrays
        result = getattr(jnp.asarray(x).at[index], kind)(values, mode=mode)
        np.testing.assert_allclose(result, expected, rtol=1e-5)


@EXAMPLES
@given(indexed())
def test_setting_is_numpy_s(case: tuple[Any, Any]) -> None:
    shape, index = case
    x = numbers(shape)
    expected = x.copy()
    # Which of several values stays is not defined: let them be equal.
    expected[index] = -1
    for mode in (None, "drop"):
        np.testing.assert_array_equal(jnp.asarray(x).at[index].set(-1, mode=mode), expected)


@EXAMPLES
@given(indexed(is_inside=False), st.sampled_from(("fill", "clip")))
def test_out_of_bounds_is_jax_s(case: tuple[Any, Any], mode: str) -> None:
    shape, index = case
    if any(type(item) is int for item in index):
        return  # JAX counts static positions out of bounds in its own way
    x = numbers(shape)
    theirs = jax.numpy.asarray(x).at[index].get(mode=mode)
    np.testing.assert_array_equal(jnp.asarray(x).at[index].get(mode=mode), theirs)
    theirs = jax.numpy.asarray(x).at[index].add(1, mode=mode)
    np.testing.assert_array_equal(jnp.asarray(x).at[index].add(1, mode=mode), theirs)


def test_compiled_indexing_is_numpy_s() -> None:
    """A batch of expressions with traced positions, compiled as one program."""
    cases = _drawn(24)

    def function(arrays: Any, positions: Any) -> list[Any]:
        results = []
        for (_, index), x, traced in zip(cases, arrays, positions, strict=True):
            replaced = iter(traced)
            filled = tuple(next(replaced) if _is_positions(item) else item for item in index)
            results += [x[filled], x.at[filled].add(1.0)]
        return results

    arrays = [numbers(shape) for shape, _ in cases]
    positions = [[item for item in index if _is_positions(item)] for _, index in cases]
    results = iter(axir.jit(function)(arrays, positions))
    for (shape, index), x in zip(cases, arrays, strict=True):
        np.testing.assert_array_equal(next(results), x[index], err_msg=f"{shape}[{index}]")
        expected = x.copy()
        np.add.at(expected, index, 1)
        np.testing.assert_array_equal(next(results), expected, err_msg=f"{shape}[{index}]")


def _is_positions(item: Any) -> bool:
    return isinstance(item, np.ndarray) and item.dtype != np.bool_


def _drawn(count: int) -> list[tuple[Any, Any]]:
    """Examples of `indexed`, always the same ones: those with arrays and without empty axes."""
    found: list[tuple[Any, Any]] = []

    @settings(max_examples=25 * count, deadline=None, derandomize=True, database=None)
    @given(indexed())
    def collect(case: tuple[Any, Any]) -> None:
        shape, index = case
        if len(found) < count and math.prod(shape) and any(map(_is_positions, index)):
            found.append((shape, index))

    collect()
    assert len(found) == count
    return found


def test_a_traced_mask_is_an_error_with_a_way_out() -> None:
    x = jnp.arange(3.0)
    with pytest.raises(axir.errors.NonConcreteBooleanIndexError, match=r"jnp\.where"):
        axir.jit(lambda x: x[x > 1])(x)
    with pytest.raises(IndexError):
        axir.jit(lambda x: x.at[x > 1].set(jnp.ones(2)))(x)
    np.testing.assert_array_equal(axir.jit(lambda x: x.at[x > 1].set(5.0))(x), [0, 1, 5])

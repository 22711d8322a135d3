"""Laws that hold for all shapes: hypothesis draws them, NumPy gives the expected results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from support.op_cases import differences

from axir.dialect.core.array import as_array
from axir.dialect.ops import OPS
from axir.dialect.ops.contraction.dot_general import dot_general
from axir.dialect.ops.elementwise.arithmetic import add, clamp, max, min, mul
from axir.dialect.ops.elementwise.comparison import select_n
from axir.dialect.ops.indexing.dynamic_slicing import dynamic_slice, dynamic_update_slice
from axir.dialect.ops.indexing.static_slicing import slice as static_slice
from axir.dialect.ops.reductions.reduce import reduce_max, reduce_sum
from axir.dialect.ops.shape.broadcasting import broadcast_in_dim
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.padding import pad
from axir.dialect.ops.shape.rearranging import reshape, rev, transpose
from axir.dialect.ops.sorting.sort import sort

_SHAPES = array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
_INTEGERS = st.integers(-9, 9)


def _arrays(shape: Any = _SHAPES) -> st.SearchStrategy[np.ndarray]:
    return arrays(np.int32, shape, elements=_INTEGERS)


def _assert_equal(result: Any, expected: Any) -> None:
    assert list(differences("result", [result.host()], [np.asarray(expected)], 0)) == []


@given(_arrays(), st.data())
def test_transposing_back_is_the_identity(x: np.ndarray, data: st.DataObject) -> None:
    order = tuple(data.draw(st.permutations(range(x.ndim))))
    moved = transpose(as_array(x), order)
    _assert_equal(moved, x.transpose(order))
    _assert_equal(transpose(moved, tuple(int(i) for i in np.argsort(order))), x)


@given(_arrays(), st.data())
def test_broadcasting_repeats_elements(x: np.ndarray, data: st.DataObject) -> None:
    rank = data.draw(st.integers(x.ndim, x.ndim + 2))
    dimensions = tuple(sorted(data.draw(st.permutations(range(rank)))[: x.ndim]))
    shape = [data.draw(st.integers(0, 3)) for _ in range(rank)]
    for extent, dimension in zip(x.shape, dimensions, strict=True):
        if extent != 1:
            shape[dimension] = extent
    aligned = [1] * rank
    for extent, dimension in zip(x.shape, dimensions, strict=True):
        aligned[dimension] = extent
    result = broadcast_in_dim(as_array(x), tuple(shape), dimensions)
    _assert_equal(result, np.broadcast_to(x.reshape(aligned), shape))


@given(_arrays(), _INTEGERS, st.data())
def test_padding_places_elements_by_their_formula(
    x: np.ndarray, filler: int, data: st.DataObject
) -> None:
    amount = st.integers(-3, 3)
    config = tuple(
        (data.draw(amount), data.draw(amount), data.draw(st.integers(0, 2))) for _ in x.shape
    )
    spread = [
        extent + (extent - 1) * inner if extent else 0
        for extent, (_, _, inner) in zip(x.shape, config, strict=True)
    ]
    shape = [s + low + high for s, (low, high, _) in zip(spread, config, strict=True)]
    config = tuple(
        c if s >= 0 else (c[0], c[1] - s, c[2]) for s, c in zip(shape, config, strict=True)
    )
    expected = np.full([s if s >= 0 else 0 for s in shape], filler, np.int32)
    for index in np.ndindex(x.shape):
        place = tuple(
            low + i * (inner + 1) for i, (low, _, inner) in zip(index, config, strict=True)
        )
        if all(0 <= p < extent for p, extent in zip(place, expected.shape, strict=True)):
            expected[place] = x[index]
    _assert_equal(pad(as_array(x), as_array(np.int32(filler)), config), expected)


@given(_arrays(array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=5)), st.data())
def test_slicing_is_python_slicing(x: np.ndarray, data: st.DataObject) -> None:
    starts = tuple(data.draw(st.integers(0, n)) for n in x.shape)
    limits = tuple(data.draw(st.integers(s, n)) for s, n in zip(starts, x.shape, strict=True))
    strides = tuple(data.draw(st.integers(1, 3)) for _ in x.shape)
    expected = x[tuple(map(slice, starts, limits, strides))]
    _assert_equal(static_slice(as_array(x), starts, limits, strides), expected)


@given(_arrays(array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=5)), st.data())
def test_dynamic_slices_stay_inside(x: np.ndarray, data: st.DataObject) -> None:
    sizes = tuple(data.draw(st.integers(0, n)) for n in x.shape)
    starts = [data.draw(st.integers(-7, 7)) for _ in x.shape]
    # A negative start counts from the end; then all are moved so that the window fits.
    inside = [
        int(np.clip(s + n if s < 0 else s, 0, n - k))
        for s, n, k in zip(starts, x.shape, sizes, strict=True)
    ]
    window = tuple(slice(s, s + k) for s, k in zip(inside, sizes, strict=True))
    indices = [as_array(np.int32(s)) for s in starts]
    _assert_equal(dynamic_slice(as_array(x), indices, sizes), x[window])
    update = np.full(sizes, 100, np.int32)
    expected = x.copy()
    expected[window] = update
    _assert_equal(dynamic_update_slice(as_array(x), as_array(update), indices), expected)


@given(_arrays(), st.data())
def test_reversing_twice_is_the_identity(x: np.ndarray, data: st.DataObject) -> None:
    axes = tuple(axis for axis in range(x.ndim) if data.draw(st.booleans()))
    reversed_ = rev(as_array(x), axes)
    _assert_equal(reversed_, np.flip(x, axes))
    _assert_equal(rev(reversed_, axes), x)


@given(_arrays(), st.data())
def test_reshaping_keeps_the_order_of_elements(x: np.ndarray, data: st.DataObject) -> None:
    shapes = [(x.size,), (1, x.size), (*x.shape, 1), x.shape[::-1], x.shape]
    shape = data.draw(st.sampled_from(shapes))
    _assert_equal(reshape(as_array(x), shape), x.reshape(shape))


@given(_arrays(array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4)), st.data())
def test_concatenating_slices_gives_the_whole(x: np.ndarray, data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, x.ndim - 1))
    cuts = sorted(data.draw(st.lists(st.integers(0, x.shape[axis]), max_size=3)))
    parts = [as_array(np.ascontiguousarray(part)) for part in np.split(x, cuts, axis)]
    _assert_equal(concatenate(parts, axis), x)


@given(_arrays(array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4)), st.data())
def test_reducing_axis_by_axis_is_reducing_at_once(x: np.ndarray, data: st.DataObject) -> None:
    axes = tuple(axis for axis in range(x.ndim) if data.draw(st.booleans()))
    for reduce, reference in ((reduce_sum, np.sum), (reduce_max, np.max)):
        at_once = reduce(as_array(x), axes)
        _assert_equal(at_once, reference(x, axes).astype(np.int32))
        step_by_step = as_array(x)
        for axis in reversed(axes):
            step_by_step = reduce(step_by_step, (axis,))
        _assert_equal(step_by_step, at_once.host())


@given(st.data())
def test_dot_general_is_a_sum_over_shared_axes(data: st.DataObject) -> None:
    def extents(most: int) -> list[int]:
        return data.draw(st.lists(st.integers(0, 3), max_size=most))

    batch, contracted, lhs_free, rhs_free = extents(2), extents(2), extents(1), extents(1)

    def operand(free: list[int], letters: str) -> tuple[np.ndarray, str, list[int], list[int]]:
        labels = "ab"[: len(batch)] + "cd"[: len(contracted)] + letters[: len(free)]
        sizes = [*batch, *contracted, *free]
        order = data.draw(st.permutations(range(len(labels))))
        shape = tuple(sizes[i] for i in order)
        mixed = "".join(labels[i] for i in order)
        places = [mixed.index(c) for c in labels]
        return (
            data.draw(_arrays(shape)),
            mixed,
            places[: len(batch)],
            places[len(batch) : len(batch) + len(contracted)],
        )

    lhs, lhs_labels, lhs_batch, lhs_contracted = operand(lhs_free, "e")
    rhs, rhs_labels, rhs_batch, rhs_contracted = operand(rhs_free, "g")
    result = dot_general(
        as_array(lhs),
        as_array(rhs),
        (
            (tuple(lhs_contracted), tuple(rhs_contracted)),
            (tuple(lhs_batch), tuple(rhs_batch)),
        ),
    )
    kept = "ab"[: len(batch)]
    kept += "".join(c for c in lhs_labels if c == "e") + "".join(c for c in rhs_labels if c == "g")
    _assert_equal(result, np.einsum(f"{lhs_labels},{rhs_labels}->{kept}", lhs, rhs))


@given(_arrays(array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=6)), st.data())
def test_sorting_is_idempotent_and_sorted(x: np.ndarray, data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, x.ndim - 1))
    result = sort(as_array(x), dimension=axis)
    _assert_equal(result, np.sort(x, axis))
    _assert_equal(sort(result, dimension=axis), result.host())


_FLOATS = arrays(np.float32, array_shapes(max_dims=2, max_side=4), elements=st.floats(width=32))


@given(_FLOATS, st.data())
def test_lattice_laws_hold_with_nan(x: np.ndarray, data: st.DataObject) -> None:
    y = data.draw(arrays(np.float32, x.shape, elements=st.floats(width=32)))
    a, b = as_array(x), as_array(y)
    largest, least = max(a, b), min(a, b)
    is_nan = np.isnan(x) | np.isnan(y)
    np.testing.assert_array_equal(np.isnan(largest.host()), is_nan)
    np.testing.assert_array_equal(np.isnan(least.host()), is_nan)
    assert bool((is_nan | (largest.host() >= least.host())).all())
    np.testing.assert_array_equal(max(b, a).host(), largest.host())
    np.testing.assert_array_equal(clamp(least, a, largest).host(), np.where(is_nan, np.nan, x))


@given(_arrays(), st.data())
def test_scalars_broadcast_in_elementwise_ops(x: np.ndarray, data: st.DataObject) -> None:
    scalar = as_array(np.int32(data.draw(_INTEGERS)))
    for function in (add, mul, max):
        whole = broadcast_in_dim(scalar, x.shape, ())
        _assert_equal(function(as_array(x), scalar), function(as_array(x), whole).host())
        _assert_equal(function(scalar, as_array(x)), function(as_array(x), whole).host())


@given(st.integers(0, 2), _arrays(), st.data())
def test_select_chooses_whole_cases_by_scalars(
    which: int, x: np.ndarray, data: st.DataObject
) -> None:
    cases = [x, *(data.draw(_arrays(st.just(x.shape))) for _ in range(2))]
    chosen = select_n(as_array(np.int32(which)), *map(as_array, cases))
    _assert_equal(chosen, cases[which])


@pytest.mark.parametrize("name", ["shift_left", "shift_right_logical", "shift_right_arithmetic"])
@given(st.integers(-128, 127), st.integers(0, 20))
def test_shifts_are_python_shifts(name: str, value: int, count: int) -> None:
    x, n = as_array(np.int8(value)), as_array(np.int8(count))
    expected = {
        "shift_left": value << count,
        "shift_right_logical": (value % 256) >> count,
        "shift_right_arithmetic": value >> count,
    }[name]
    result = OPS[name].bind(x, n)
    assert int(result) % 256 == expected % 256

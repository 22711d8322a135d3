"""Gathers and scatters: against loops over single elements, and against JAX."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axir.dialect.core import dtypes
from axir.dialect.core.array import as_array
from axir.dialect.core.config import config
from axir.dialect.core.errors import DTypeError, ParameterError, ShapeError, UnsupportedRuleError
from axir.dialect.core.symbolic_zeros import UndefinedPrimal, Zero
from axir.dialect.ops import OPS
from axir.dialect.ops.indexing import scatter
from axir.dialect.ops.indexing.gather import GatherDimensionNumbers, GatherScatterMode, gather
from axir.dialect.ops.indexing.scatter import ScatterDimensionNumbers, scatter_add, scatter_mul

GATHER_ROWS = GatherDimensionNumbers((1,), (0,), (0,))
SCATTER_ROWS = ScatterDimensionNumbers((1,), (0,), (0,))
MODES = ("clip", "fill", "promise_in_bounds")
COMBINE = {
    "scatter": lambda current, update: update,
    "scatter_add": lambda current, update: current + update,
    "scatter_sub": lambda current, update: current - update,
    "scatter_mul": lambda current, update: current * update,
    "scatter_min": min,
    "scatter_max": max,
}
SCATTERS = {name: getattr(scatter, name) for name in COMBINE}


@pytest.fixture(autouse=True)
def both_with_x64() -> Iterator[None]:
    config.update("jax_enable_x64", True)
    with jax.enable_x64(True):
        yield


def assert_same(ours: Any, theirs: Any, tolerance: float = 0.0) -> None:
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
    wide = np.complex128 if dtypes.is_complex(ours.dtype) else np.float64
    if dtypes.is_inexact(ours.dtype):
        ours, theirs = ours.astype(wide), theirs.astype(wide)
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


# Against loops ---------------------------------------------------------------------------------


def window_start(vector: Any, extents: Any, sizes: Any, index_map: Any, mode: str) -> Any:
    """The start of a window in each indexed dimension; None if it is outside and not moved."""
    start = {d: int(i) for d, i in zip(index_map, vector, strict=True)}
    limits = {d: extents[d] - sizes[d] for d in index_map}
    if mode == "clip":
        return {d: min(max(i, 0), limits[d]) for d, i in start.items()}
    return start if all(0 <= i <= limits[d] for d, i in start.items()) else None


def window_places(
    operand_shape: Any, indices: Any, numbers: Any, sizes: Any, mode: str
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...] | None]]:
    """Yields each place of a gather's result (of a scatter's updates) and its operand place."""
    offset_dims, collapsed, index_map, operand_batching, indices_batching = numbers
    hidden = {*collapsed, *operand_batching}
    window_dims = [d for d in range(len(operand_shape)) if d not in hidden]
    rank = indices.ndim - 1 + len(window_dims)
    batch_dims = [d for d in range(rank) if d not in offset_dims]
    for batch in np.ndindex(*indices.shape[:-1]):
        start = window_start(indices[batch], operand_shape, sizes, index_map, mode)
        for offset in np.ndindex(*[sizes[d] for d in window_dims]):
            outer = [0] * rank
            for d, i in zip((*batch_dims, *offset_dims), (*batch, *offset), strict=True):
                outer[d] = i
            inner = [0] * len(operand_shape)
            for d, i in zip(window_dims, offset, strict=True):
                inner[d] = i
            for d, axis in zip(operand_batching, indices_batching, strict=True):
                inner[d] = batch[axis]
            for d, i in (start or {}).items():
                inner[d] += i
            yield tuple(outer), None if start is None else tuple(inner)


@st.composite
def geometries(draw: Any) -> tuple[Any, ...]:
    """An operand shape, indices, gather dimension numbers and slice sizes that fit together."""
    rank = draw(st.integers(1, 4))
    kinds = draw(
        st.lists(st.sampled_from(["window", "collapsed", "batching"]), min_size=rank, max_size=rank)
    )
    shape = tuple(draw(st.integers(1, 4)) for _ in range(rank))
    batching = tuple(draw(st.permutations([d for d in range(rank) if kinds[d] == "batching"])))
    collapsed = tuple(d for d in range(rank) if kinds[d] == "collapsed")
    sizes = tuple(
        draw(st.integers(1, extent)) if kind == "window" else 1
        for kind, extent in zip(kinds, shape, strict=True)
    )
    indexable = [d for d in range(rank) if kinds[d] != "batching"]
    index_map = tuple(draw(st.permutations(indexable)))[: draw(st.integers(0, len(indexable)))]
    batch = [shape[d] for d in batching] + draw(st.lists(st.integers(0, 3), max_size=2))
    order = draw(st.permutations(range(len(batch))))
    indices_batching = tuple(order.index(i) for i in range(len(batching)))
    batch_shape = tuple(batch[i] for i in order)
    window_rank = rank - len(batching) - len(collapsed)
    places = draw(st.permutations(range(window_rank + len(batch_shape))))
    offset_dims = tuple(sorted(places[:window_rank]))
    count = math.prod(batch_shape) * len(index_map)
    flat = draw(st.lists(st.integers(-2, 5), min_size=count, max_size=count))
    indices = np.array(flat, np.int32).reshape((*batch_shape, len(index_map)))
    numbers = GatherDimensionNumbers(offset_dims, collapsed, index_map, batching, indices_batching)
    return shape, indices, numbers, sizes


@settings(max_examples=150)
@given(geometry=geometries(), mode=st.sampled_from(MODES[:2]))
def test_gather_reads_what_a_loop_reads(geometry: Any, mode: str) -> None:
    shape, indices, numbers, sizes = geometry
    operand = np.arange(1, 1 + math.prod(shape), dtype=np.int32).reshape(shape)
    result = np.asarray(gather(operand, indices, numbers, sizes, mode=mode, fill_value=-7))
    count = 0
    for outer, inner in window_places(shape, indices, numbers, sizes, mode):
        assert result[outer] == (-7 if inner is None else operand[inner])
        count += 1
    assert count == result.size


@settings(max_examples=150)
@given(
    geometry=geometries(),
    mode=st.sampled_from(MODES[:2]),
    name=st.sampled_from(sorted(SCATTERS)),
)
def test_scatter_writes_what_a_loop_writes(geometry: Any, mode: str, name: str) -> None:
    shape, indices, numbers, sizes = geometry
    operand = np.arange(1, 1 + math.prod(shape), dtype=np.int32).reshape(shape)
    places = list(window_places(shape, indices, numbers, sizes, mode))
    rank = indices.ndim - 1 + len(numbers.offset_dims)
    batch = iter(indices.shape[:-1])
    hidden = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    window = iter([size for d, size in enumerate(sizes) if d not in hidden])
    updates_shape = [next(window if d in numbers.offset_dims else batch) for d in range(rank)]
    updates = np.arange(5, 5 + math.prod(updates_shape), dtype=np.int32).reshape(updates_shape)
    expected = operand.copy()
    with np.errstate(over="ignore"):
        for outer, inner in places:
            if inner is not None:
                expected[inner] = COMBINE[name](expected[inner], updates[outer])
    result = SCATTERS[name](operand, indices, updates, ScatterDimensionNumbers(*numbers), mode=mode)
    np.testing.assert_array_equal(np.asarray(result), expected)
    assert expected.size == 0 or operand.flat[0] == 1, "the operand must stay as it is"


# Against JAX -----------------------------------------------------------------------------------

ROWS = [[1], [-1], [2], [7], [1]]


@pytest.mark.parametrize("mode", [*MODES, None, "drop"])
@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_gather_agrees_with_jax(dtype: np.dtype, mode: str | None) -> None:
    x = np.arange(8).reshape(4, 2).astype(dtype)
    indices = np.array(ROWS, np.int32)
    theirs = jax.lax.gather(
        x, indices, jax.lax.GatherDimensionNumbers(*GATHER_ROWS), (1, 2), mode=mode
    )
    assert_same(gather(x, indices, GATHER_ROWS, (1, 2), mode=mode), theirs)


@pytest.mark.parametrize("name", sorted(SCATTERS))
@pytest.mark.parametrize("mode", MODES)
def test_scatters_agree_with_jax(name: str, mode: str) -> None:
    x = np.linspace(-1, 1, 8).reshape(4, 2)
    updates = np.linspace(-3, 2, 10).reshape(5, 2)
    indices = np.array(ROWS, np.int32)
    numbers = jax.lax.ScatterDimensionNumbers(*SCATTER_ROWS)
    for dtype in (np.float32, np.float64, np.int16, np.complex64):
        args = x.astype(dtype), indices, updates.astype(dtype)
        theirs = getattr(jax.lax, name)(*args, numbers, mode=mode)
        assert_same(SCATTERS[name](*args, SCATTER_ROWS, mode=mode), theirs, 1e-6)


@pytest.mark.parametrize("index_dtype", [*dtypes.SIGNED, *dtypes.UNSIGNED], ids=str)
@pytest.mark.parametrize("mode", MODES[:2])
def test_extreme_indices_of_any_dtype_are_out_of_bounds(index_dtype: np.dtype, mode: str) -> None:
    limits = np.iinfo(index_dtype)
    indices = np.array([[limits.min], [limits.max], [1]], index_dtype)
    x = np.array([[1.0], [2.0], [3.0]], np.float32)
    below = 1.0 if mode == "clip" or limits.min == 0 else np.nan
    above = 3.0 if mode == "clip" else np.nan
    result = np.asarray(gather(x, indices, GATHER_ROWS, (1, 1), mode=mode))
    np.testing.assert_array_equal(result[:, 0], np.array([below, above, 2.0], np.float32))
    written = scatter_add(np.zeros((3, 1), np.float32), indices, x, SCATTER_ROWS, mode=mode)
    expected = [[1.0 * (below == 1.0)], [3.0], [2.0 * (above == 3.0)]]
    np.testing.assert_array_equal(np.asarray(written), expected)


@pytest.mark.parametrize("fill", [2, 2.5, True, np.float32(1.5), 1 + 2j])
def test_fill_values_take_the_dtype_of_the_operand(fill: Any) -> None:
    dtype = np.complex64 if isinstance(fill, complex) else np.float32
    outside = np.array([[9]], np.int32)
    result = gather(
        np.ones((2, 1), dtype), outside, GATHER_ROWS, (1, 1), mode="fill", fill_value=fill
    )
    assert_same(result, np.array([[fill]], dtype))


def test_fill_value_nan_is_the_default() -> None:
    outside = np.array([[9]], np.int32)
    for fill in (float("nan"), np.float32(np.nan), None):
        result = gather(X, outside, GATHER_ROWS, (1, 2), mode="fill", fill_value=fill)
        assert np.isnan(np.asarray(result)).all()


def test_modes_have_names_and_an_enumeration() -> None:
    x, indices = np.ones((2, 1), np.float32), np.array([[5]], np.int32)
    for mode in (GatherScatterMode.CLIP, "clip"):
        assert np.asarray(gather(x, indices, GATHER_ROWS, (1, 1), mode=mode)).item() == 1
    assert GatherScatterMode.from_any(None) is GatherScatterMode.FILL_OR_DROP
    with pytest.raises(ParameterError, match="'wrap' is not a mode"):
        GatherScatterMode.from_any("wrap")


# Derivatives -----------------------------------------------------------------------------------


def scatter_params(**changes: Any) -> dict[str, Any]:
    defaults = {"indices_are_sorted": False, "unique_indices": False, "mode": "clip"}
    return {"dimension_numbers": ScatterDimensionNumbers((), (0,), (0,)), **defaults, **changes}


def test_cotangent_of_overwritten_updates_is_zero() -> None:
    x, indices = as_array(np.zeros(3, np.float32)), as_array(np.array([[1], [0], [1]], np.int32))
    updates = as_array(np.ones(3, np.float32))
    rule = scatter.scatter.primitive.transpose
    ct = as_array(np.array([1, 10, 100], np.float32))
    linear = UndefinedPrimal(x.type), indices, UndefinedPrimal(updates.type)
    ct_operand, _, ct_updates = rule(ct, *linear, **scatter_params())
    assert_same(ct_operand, np.array([0, 0, 100], np.float32))
    assert_same(ct_updates, np.array([0, 1, 10], np.float32))


@pytest.mark.parametrize("name", ["scatter_min", "scatter_max"])
def test_ties_share_the_tangent(name: str) -> None:
    x, indices = np.array([2.0, 5.0]), np.array([[0], [0], [1]], np.int32)
    updates = np.array([2.0, 2.0, 5.0])
    tangents = np.array([1.0, 10.0]), np.array([2.0, 3.0, 20.0])
    out = SCATTERS[name](x, indices, updates, ScatterDimensionNumbers((), (0,), (0,)))
    zero = Zero(as_array(indices).type.to_tangent_aval())
    ours = SCATTERS[name].primitive.jvp(
        list(map(as_array, (x, indices, updates))),
        [as_array(tangents[0]), zero, as_array(tangents[1])],
        out,
        **scatter_params(),
    )
    np.testing.assert_allclose(np.asarray(ours), [(1 + 2 + 3) / 3, (10 + 20) / 2])


def test_product_has_no_derivative_in_overlapping_updates() -> None:
    x, indices = as_array(np.ones(3, np.float32)), as_array(np.array([[1], [1]], np.int32))
    updates = as_array(np.ones(2, np.float32))
    zeros = [Zero(v.type.to_tangent_aval()) for v in (x, indices)]
    out = scatter_mul(x, indices, updates, ScatterDimensionNumbers((), (0,), (0,)))
    with pytest.raises(UnsupportedRuleError, match="unique_indices=True"):
        scatter_mul.primitive.jvp([x, indices, updates], [*zeros, updates], out, **scatter_params())


def test_gather_of_tangents_fills_with_zero() -> None:
    x, indices = as_array(np.ones((2, 1), np.float32)), as_array(np.array([[9]], np.int32))
    out = gather(x, indices, GATHER_ROWS, (1, 1), mode="fill")
    assert np.isnan(np.asarray(out)).all()
    zero = Zero(indices.type.to_tangent_aval())
    params = {
        "dimension_numbers": GATHER_ROWS,
        "slice_sizes": (1, 1),
        "unique_indices": False,
        "indices_are_sorted": False,
        "mode": "fill",
        "fill_value": None,
    }
    assert_same(OPS["gather"].jvp([x, indices], [x, zero], out, **params), [[np.float32(0)]])


# Batching --------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 2])
@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0), (2, 1)])
def test_gather_of_a_batch_is_a_batch_of_gathers(axes: tuple[Any, Any], size: int) -> None:
    rows = np.array(ROWS, np.int32)
    single = np.arange(8, dtype=np.float32).reshape(4, 2), rows
    batched = [
        x
        if axis is None
        else np.stack([x + i for i in range(size)] or [x], axis).take(range(size), axis)
        for x, axis in zip(single, axes, strict=True)
    ]
    params = {
        "dimension_numbers": GATHER_ROWS,
        "slice_sizes": (1, 2),
        "unique_indices": False,
        "indices_are_sorted": True,
        "mode": "clip",
        "fill_value": None,
    }
    result, axis = OPS["gather"].batch(list(map(as_array, batched)), axes, **params)
    assert result.shape[axis] == size
    for i in range(size):
        one = [x if a is None else x.take(i, a) for x, a in zip(batched, axes, strict=True)]
        expected = gather(*one, GATHER_ROWS, (1, 2), mode="clip")
        assert_same(np.asarray(result).take(i, axis), expected)


@pytest.mark.parametrize(
    "axes",
    [a for a in itertools.product((None, 0), repeat=3) if any(axis is not None for axis in a)],
)
@pytest.mark.parametrize("name", ["scatter", "scatter_add"])
def test_scatter_of_a_batch_is_a_batch_of_scatters(name: str, axes: tuple[Any, ...]) -> None:
    rows = np.array(ROWS, np.int32)
    single = np.zeros((4, 2), np.float32), rows, np.arange(10, dtype=np.float32).reshape(5, 2)
    batched = [
        x if axis is None else np.stack([x, x + 1, x - 1], axis)
        for x, axis in zip(single, axes, strict=True)
    ]
    params = scatter_params(dimension_numbers=SCATTER_ROWS)
    result, axis = SCATTERS[name].primitive.batch(list(map(as_array, batched)), axes, **params)
    for i in range(3):
        one = [x if a is None else x.take(i, a) for x, a in zip(batched, axes, strict=True)]
        assert_same(
            np.asarray(result).take(i, axis), SCATTERS[name](*one, SCATTER_ROWS, mode="clip")
        )


# Errors ----------------------------------------------------------------------------------------

X = np.zeros((3, 2), np.float32)
INDICES = np.zeros((4, 1), np.int32)


@pytest.mark.parametrize(
    ("error", "text", "indices", "numbers", "sizes"),
    [
        (DTypeError, "indices must be integers, not float32", X[:, :1], GATHER_ROWS, (1, 2)),
        (ShapeError, "vectors of 1 entries", INDICES[:, 0], GATHER_ROWS, (1, 2)),
        (ShapeError, "must have 2 entries", INDICES, GATHER_ROWS, (1,)),
        (ShapeError, "slice size 3 of dimension 1 exceeds", INDICES, GATHER_ROWS, (1, 3)),
        (ShapeError, "must be 1 in the dimensions", INDICES, GATHER_ROWS, (2, 2)),
        (ShapeError, "one result dimension for each", INDICES, ((1, 2), (0,), (0,)), (1, 2)),
        (ParameterError, "must increase strictly", INDICES, ((5,), (0,), (0,)), (1, 2)),
        (ParameterError, "must be distinct", INDICES, ((1,), (7,), (0,)), (1, 2)),
        (ParameterError, "both name", INDICES, ((), (0,), (0,), (0,), (0,)), (1, 2)),
        (ShapeError, "must correspond", INDICES, ((), (1,), (1,), (0,), (0,)), (1, 1)),
    ],
)
def test_gather_explains_what_does_not_fit(
    error: type[Exception], text: str, indices: Any, numbers: Any, sizes: Any
) -> None:
    with pytest.raises(error, match=text):
        gather(X, indices, GatherDimensionNumbers(*numbers), sizes)


@pytest.mark.parametrize(
    ("error", "text", "updates", "numbers"),
    [
        (DTypeError, "equal dtype", np.zeros((4, 2), np.int32), SCATTER_ROWS),
        (ShapeError, "have \\(5,\\) windows", np.zeros((5, 2), np.float32), SCATTER_ROWS),
        (ShapeError, "do not fit into the operand", np.zeros((4, 3), np.float32), SCATTER_ROWS),
        (ShapeError, "must have 3 axes", np.zeros((4, 1, 2), np.float32), ((2,), (0,), (0,))),
        (ParameterError, "must name one dimension", np.zeros((4, 2), np.float32), ((1,), (), (0,))),
        (
            ParameterError,
            "must increase strictly",
            np.zeros((4, 2), np.float32),
            ((9,), (0,), (0,)),
        ),
    ],
)
def test_scatter_explains_what_does_not_fit(
    error: type[Exception], text: str, updates: Any, numbers: Any
) -> None:
    with pytest.raises(error, match=text):
        scatter_add(X, INDICES, updates, ScatterDimensionNumbers(*numbers))


def test_booleans_have_no_sum() -> None:
    flags = np.ones((3, 2), bool)
    with pytest.raises(DTypeError, match="scatter_max for 'or'"):
        scatter_add(flags, np.zeros((3, 1), np.int32), flags, SCATTER_ROWS)

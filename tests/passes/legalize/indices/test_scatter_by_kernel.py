"""`scatter-by-kernel`: scatters of any dimensions, dtypes and indices, as loops over updates."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.stablehlo_runner import Example, build, deviations, run_examples, text_after

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.pipeline import run_passes

RNG = np.random.default_rng(0)
PASS = "scatter-by-kernel"
WHOLE = "legalize-for-iree,tune-for-cpu"


def overwrite(_: Any, update: Any) -> Any:
    return update


NUMPY: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "multiply": np.multiply,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "overwrite": overwrite,
}


@dataclasses.dataclass(frozen=True)
class Numbers:
    """The dimension numbers of a scatter."""

    window: tuple[int, ...]
    inserted: tuple[int, ...]
    indexed: tuple[int, ...]
    vector: int
    batching: tuple[int, ...] = ()
    index_batching: tuple[int, ...] = ()


def scattered(
    x: np.ndarray, indices: np.ndarray, updates: np.ndarray, combine: Any, numbers: Numbers
) -> np.ndarray:
    """The reference: one update after the other."""
    result = x.copy()
    scatter_axes = [axis for axis in range(updates.ndim) if axis not in numbers.window]
    missing = {*numbers.inserted, *numbers.batching}
    axes = [axis for axis in range(x.ndim) if axis not in missing]
    extents = [1] * x.ndim
    for axis, own in zip(axes, numbers.window, strict=True):
        extents[axis] = updates.shape[own]
    order = [*scatter_axes, *numbers.window]
    for lead in np.ndindex(*(updates.shape[axis] for axis in scatter_axes)):
        full: list[Any] = list(lead)
        if numbers.vector < indices.ndim:
            full.insert(numbers.vector, slice(None))
        starts = np.zeros(x.ndim, object)
        starts[list(numbers.indexed)] = np.atleast_1d(indices[tuple(full)]).astype(object)
        for axis, batch in zip(numbers.batching, numbers.index_batching, strict=True):
            starts[axis] = full[batch]
        if not all(0 <= s <= n - e for s, n, e in zip(starts, x.shape, extents, strict=True)):
            continue
        target = tuple(slice(s, s + e) for s, e in zip(starts, extents, strict=True))
        window = updates.transpose(order)[lead].reshape(extents)
        with np.errstate(all="ignore"):
            result[target] = combine(result[target], window)
    return result


def example(
    name: str,
    x: np.ndarray,
    indices: np.ndarray,
    updates: np.ndarray,
    kind: str,
    numbers: Numbers,
) -> Example:
    body = overwrite if kind == "overwrite" else getattr(hlo, kind)

    def builder(x: Any, indices: Any, updates: Any) -> Any:
        return hlo.scatter(
            [x],
            indices,
            [updates],
            body,
            update_window_dims=numbers.window,
            inserted_window_dims=numbers.inserted,
            scatter_dims_to_operand_dims=numbers.indexed,
            index_vector_dim=numbers.vector,
            input_batching_dims=numbers.batching,
            scatter_indices_batching_dims=numbers.index_batching,
        )

    expected = scattered(x, indices, updates, NUMPY[kind], numbers)
    return Example(name, (x, indices, updates), builder, expected)


def values(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    return RNG.integers(-4, 5, shape).astype(dtype)


def places(shape: tuple[int, ...], extent: int, dtype: Any = np.int32) -> np.ndarray:
    """Indices that repeat, and that lie outside."""
    low = 0 if np.dtype(dtype).kind == "u" else -3
    return RNG.integers(low, extent + 3, shape).astype(dtype)


def rows(name: str, shape: tuple[int, ...], count: int, kind: str = "add", **kinds: Any) -> Example:
    window = tuple(range(1, len(shape)))
    return example(
        name,
        values(shape, kinds.get("dtype", np.float32)),
        places((count, 1), shape[0], kinds.get("index", np.int32)),
        values((count, *shape[1:]), kinds.get("dtype", np.float32)),
        kind,
        Numbers(window, (0,), (0,), 1),
    )


def many(name: str, shape: tuple[int, ...], count: int, kind: str = "add", **kinds: Any) -> Example:
    """Many updates of few rows, which are summed in blocks; small numbers give exact sums."""
    x, indices, updates = rows(name, shape, count, kind, **kinds).arguments
    if kind == "multiply":
        x, updates = np.sign(x) + (x == 0), np.sign(updates) + (updates == 0)
    indices[:100] = 1
    numbers = Numbers(tuple(range(1, len(shape))), (0,), (0,), 1)
    return example(name, x, indices, updates.astype(x.dtype), kind, numbers)


def with_specials() -> Example:
    x, updates = values((9, 5)), values((30, 5))
    x[2], updates[::3, 1], updates[4, 2], updates[7, 3] = -0.0, np.nan, np.inf, -np.inf
    numbers = Numbers((1,), (0,), (0,), 1)
    return example("specials", x, places((30, 1), 9), updates, "maximum", numbers)


def far_indices(dtype: Any) -> Example:
    info = np.iinfo(dtype)
    indices = np.array([[info.min], [info.max], [3], [3], [info.max - 1]], dtype)
    numbers = Numbers((1,), (0,), (0,), 1)
    return example(
        f"far_{np.dtype(dtype)}", values((7, 6)), indices, values((5, 6)), "add", numbers
    )


DTYPES = (
    np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64,
    np.float16, ml_dtypes.bfloat16, np.float32, np.float64,
)  # fmt: skip
EXAMPLES = [
    *(
        rows(f"{kind}_{np.dtype(dtype)}", (6, 21), 17, kind, dtype=dtype)
        for dtype in DTYPES
        for kind in ("add", "maximum")
    ),
    *(rows(kind, (11, 5), 40, kind) for kind in NUMPY),
    *(far_indices(dtype) for dtype in DTYPES[:8]),
    *(rows(f"wide_{width}", (5, width), 9) for width in (1, 2, 15, 16, 17, 31, 33, 100)),
    rows("vector", (13,), 50),
    rows("matrices", (4, 3, 7), 11, "multiply"),
    rows("one_row", (1, 8), 3, "overwrite"),
    rows("one_update", (8, 3), 1),
    rows("shared_out", (50, 1024), 300),
    rows("shared_out_odd", (50, 1001), 300),
    *(many(f"many_{kind}", (5, 21), 1100, kind) for kind in NUMPY),
    many("many_halves", (40, 19), 1500, dtype=np.float16),
    many("many_bfloats", (40, 16), 1500, "multiply", dtype=ml_dtypes.bfloat16),
    many("many_complex", (4,), 1100, dtype=np.complex64),
    many("many_rows_of_complex", (4, 11), 1100, dtype=np.complex64),
    many("many_narrow", (7, 3), 1300),
    many("many_matrices", (6, 3, 7), 1100),
    many("many_shared_out", (3, 200), 1100),
    example("many_columns_first", values((17, 3)), places((1200, 1), 3), values((17, 1200)), "add",
            Numbers((0,), (1,), (1,), 1)),
    example("many_batches", values((4, 3, 16)), places((4, 400, 1), 3), values((4, 400, 16)), "add",
            Numbers((2,), (1,), (1,), 2, (0,), (0,))),
    example("many_overlap", values((6, 9)), places((1100, 2), 6), values((1100, 4, 5)), "add",
            Numbers((1, 2), (), (0, 1), 1)),
    rows("large_operand", (3000, 40), 20, "overwrite"),
    with_specials(),
    example("no_updates", values((4, 3)), places((0, 1), 4), values((0, 3)), "add",
            Numbers((1,), (0,), (0,), 1)),
    example("empty_operand", values((0, 3)), places((2, 1), 1), values((2, 3)), "add",
            Numbers((1,), (0,), (0,), 1)),
    example("one_index", values((4, 3)), np.array([2], np.int32), values((3,)), "add",
            Numbers((0,), (0,), (0,), 0)),
    example("scalar_indices", values((9,)), places((20,), 9), values((20,)), "add",
            Numbers((), (0,), (0,), 1)),
    example("columns", values((6, 9)), places((5, 1), 9), values((5, 6)), "maximum",
            Numbers((1,), (1,), (1,), 1)),
    example("columns_first", values((6, 9)), places((5, 1), 9), values((6, 5)), "add",
            Numbers((0,), (1,), (1,), 1)),
    example("points", values((6, 9)), places((2, 40), 7), values((40,)), "add",
            Numbers((), (0, 1), (1, 0), 0)),
    example("windows", values((6, 9)), places((8, 2), 6), values((8, 3, 4)), "add",
            Numbers((1, 2), (), (0, 1), 1)),
    example("part_of_row", values((6, 9)), places((8, 1), 6), values((8, 4)), "add",
            Numbers((1,), (0,), (0,), 1)),
    example("grid_of_indices", values((7, 5)), places((3, 4, 1), 7), values((3, 4, 5)), "add",
            Numbers((2,), (0,), (0,), 2)),
    example("batches", values((4, 6, 5)), places((4, 7, 1), 6), values((4, 7, 5)), "add",
            Numbers((2,), (1,), (1,), 2, (0,), (0,))),
    example("batches_behind", values((6, 4)), places((1, 7, 4), 6), values((7, 4)), "add",
            Numbers((), (0,), (0,), 0, (1,), (2,))),
]  # fmt: skip


def into_rows(x: Any, indices: Any, updates: Any) -> Any:
    (result,) = EXAMPLES[0].builder(x, indices, updates)
    return result


def after_another(x: Any, indices: Any, updates: Any) -> Any:
    return into_rows(into_rows(x, indices, updates), indices, updates)


def uniform(x: Any, indices: Any, updates: Any) -> Any:
    return into_rows(hlo.full_like(x, 3), indices, updates)


def in_loop(x: Any, indices: Any, updates: Any) -> Any:
    """Adds to a constant, and to the carried array, three times each."""

    def step(i: Any, carried: Any) -> list[Any]:
        added = into_rows(carried, indices, updates)
        fresh = into_rows(hlo.full_like(x, 3), indices, updates)
        return [hlo.add(i, hlo.constant(1, np.int32)), hlo.add(added, fresh)]

    zero, end = hlo.constant(0, np.int32), hlo.constant(3, np.int32)
    return hlo.while_([zero, x], lambda i, _: hlo.compare(i, end, "LT"), step)[1]


def put_together(x: Any, rows: Any, columns: Any, updates: Any) -> Any:
    """Index vectors with components in separate arrays."""
    (points,) = [e for e in EXAMPLES if e.name == "points"]
    (result,) = points.builder(x, hlo.concatenate([rows, columns], 0), updates)
    return result


def apart() -> Example:
    x, indices, updates = values((6, 9)), places((2, 40), 7), values((40,))
    expected = scattered(x, indices, updates, np.add, Numbers((), (0, 1), (1, 0), 0))
    return Example("put_together", (x, indices[:1], indices[1:], updates), put_together, expected)


def composed() -> list[Example]:
    x, indices = values((6, 21)), places((17, 1), 6)
    updates = values((17, 21))
    numbers = Numbers((1,), (0,), (0,), 1)

    def once(start: np.ndarray) -> np.ndarray:
        return scattered(start, indices, updates, np.add, numbers)

    looped = x
    for _ in range(3):
        looped = once(looped) + once(np.full_like(x, 3))
    arguments = (x, indices, updates)
    return [
        Example("after_another", arguments, after_another, once(once(x))),
        Example("uniform", arguments, uniform, once(np.full_like(x, 3))),
        Example("in_loop", arguments, in_loop, looped),
    ]


COMPOSED = composed()
ALL = [*EXAMPLES, *COMPOSED, apart()]


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(ALL, WHOLE)


@pytest.mark.parametrize("example", ALL, ids=lambda e: e.name)
def test_values(results: dict[str, list[np.ndarray]], example: Example) -> None:
    arguments = [np.array(x) for x in example.arguments]
    assert deviations(results[example.name], example, zero_signs=False) == []
    for before, after in zip(arguments, example.arguments, strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_no_scatter_is_left(example: Example) -> None:
    text = text_after(example, PASS)
    assert "stablehlo.scatter" not in text
    assert ("flow.dispatch" in text) == bool(
        example.arguments[2].size and example.arguments[0].size
    )


def test_a_second_scatter_works_in_place() -> None:
    text = text_after(COMPOSED[0], PASS)
    assert text.count("-> %") == 1


def test_components_are_read_where_they_are() -> None:
    assert "(%arg0, %arg1, %arg2, %arg3)" in text_after(ALL[-1], PASS)


def test_long_sums_have_totals() -> None:
    for name, is_counted in (("many_add", True), ("many_narrow", False), ("many_overlap", False)):
        text = text_after(next(x for x in EXAMPLES if x.name == name), PASS)
        assert ("f64" in text, "tensor<5x21xf64>" in text, "i8" in text) == (
            True,
            False,
            is_counted,
        )


def test_wide_rows_are_shared_out() -> None:
    (wide,) = [x for x in EXAMPLES if x.name == "shared_out"]
    assert "%c8 = arith.constant 8 : index" in text_after(wide, PASS)


def pair(x: Any, indices: Any, updates: Any) -> Any:
    return hlo.scatter(
        [x, x],
        indices,
        [updates, updates],
        lambda a, b, c, d: [hlo.add(a, c), hlo.add(b, d)],
        update_window_dims=(1,),
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
        index_vector_dim=1,
    )


def test_scatters_of_several_arrays_and_of_complex_numbers_stay() -> None:
    x, indices, updates = values((4, 3)), places((5, 1), 4), values((5, 3))
    complexes = (x.astype(np.complex64), indices, updates.astype(np.complex64))
    for arguments, builder in (((x, indices, updates), pair), (complexes, into_rows)):
        module = build({"f": (arguments, builder)})
        before = str(module)
        run_passes(module, PASS)
        assert str(module) == before

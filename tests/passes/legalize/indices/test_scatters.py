"""Scatters: their windows, and the dimensions that they index."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from support.stablehlo_runner import (
    CompilationError,
    Compiled,
    Example,
    build,
    deviations,
    run_examples,
    text_after,
)

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.pipeline import run_passes

X = np.arange(20, dtype=np.float32).reshape(4, 5)
ROWS = np.array([[3], [0], [3]], np.int32)
NOWHERE = np.zeros((3, 0), np.int32)
COLUMNS = (np.arange(9) + 1).reshape(3, 3).astype(np.float32)
PIPELINE = "drop-scatter,fit-scatter-operands,index-scatter-windows,lead-scatter-dims"


def adding(**numbers: Any) -> Any:
    return lambda x, i, u: hlo.scatter([x], i, [u], hlo.add, index_vector_dim=1, **numbers)


def after(*updates: tuple[Any, Any]) -> np.ndarray:
    result = X.copy()
    for place, update in updates:
        result[place] += update
    return result


EXAMPLES = [
    Example(
        "front_of_rows",
        (X, ROWS, COLUMNS),
        adding(
            update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
        ),
        after(*((np.s_[row, :3], u) for row, u in zip(ROWS[:, 0], COLUMNS, strict=True))),
    ),
    Example(
        "first_of_rows",
        (X, ROWS, COLUMNS[0]),
        adding(
            update_window_dims=(), inserted_window_dims=(0, 1), scatter_dims_to_operand_dims=(0,)
        ),
        after(*(((row, 0), u) for row, u in zip(ROWS[:, 0], COLUMNS[0], strict=True))),
    ),
    Example(
        "nothing_indexed",
        (X, NOWHERE, np.ones((3, 4, 5), np.float32)),
        adding(update_window_dims=(1, 2), inserted_window_dims=(), scatter_dims_to_operand_dims=()),
        X + 3,
    ),
    Example(
        "one_element",
        (X, NOWHERE, COLUMNS[0]),
        adding(update_window_dims=(), inserted_window_dims=(0, 1), scatter_dims_to_operand_dims=()),
        after(((0, 0), COLUMNS[0].sum())),
    ),
]


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES, PIPELINE)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_values(results: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results[example.name], example) == []


@pytest.mark.parametrize(
    ("number", "message"), [(0, "must match original value"), (2, "at least one element")]
)
def test_the_pass_is_still_needed(number: int, message: str) -> None:
    example = EXAMPLES[number]
    with pytest.raises(CompilationError, match=message):
        Compiled(build({"f": (example.arguments, example.builder)}))


def test_windows_that_cover_what_is_not_indexed_stay() -> None:
    whole = Example("f", (X, ROWS, X[:3]), EXAMPLES[0].builder, X)
    assert text_after(whole, "fit-scatter-operands") == text_after(whole, "")


STARTS = np.array([[0, 1], [1, 0], [2, 2], [0, 0]], np.int32)
LONG = np.zeros((200, 3), np.int32)


def scatter(x, indices, updates, **numbers):
    return hlo.scatter([x], indices, [updates], hlo.add, index_vector_dim=1, **numbers)[0]


def expected(x, starts, windows):
    """What adding windows [number, extents...] at their starts gives."""
    result = x.copy()
    for start, window in zip(starts, windows, strict=True):
        for place in itertools.product(*map(range, window.shape)):
            at = tuple(s + p for s, p in zip(start, place, strict=True))
            result[at] += window[place]
    return result


def windows(*shape):
    return (np.arange(np.prod(shape, dtype=int)) + 1).reshape(shape).astype(np.float32)


def example(name, extents, window_dims, order, inserted, mapping):
    """`order` tells how the updates are transposed from [number, extents...]."""
    updates = windows(4, *(e for d, e in enumerate(extents) if d not in inserted))

    def builder(x, indices, u):
        return scatter(
            x,
            indices,
            u,
            update_window_dims=window_dims,
            inserted_window_dims=inserted,
            scatter_dims_to_operand_dims=mapping,
        )

    arguments = (
        X,
        np.ascontiguousarray(STARTS[:, list(mapping)]),
        np.ascontiguousarray(updates.transpose(order)),
    )
    return Example(name, arguments, builder, expected(X, STARTS, updates.reshape(4, *extents)))


EXAMPLES_WINDOWS = [
    example("window", (2, 3), (1, 2), (0, 1, 2), (), (0, 1)),
    example("swapped", (2, 3), (1, 2), (0, 1, 2), (), (1, 0)),
    example("number_between", (2, 3), (0, 2), (1, 0, 2), (), (0, 1)),
    example("row_inserted", (1, 3), (1,), (0, 1), (0,), (0, 1)),
    example("column_inserted", (2, 1), (0,), (1, 0), (1,), (1, 0)),
    example("single_elements", (1, 1), (1, 2), (0, 1, 2), (), (0, 1)),
    Example(
        "narrow_indices",
        (LONG, np.array([[120, 0]], np.int8), np.ones((1, 50, 2), np.int32)),
        lambda x, i, u: scatter(
            x,
            i,
            u,
            update_window_dims=(1, 2),
            inserted_window_dims=(),
            scatter_dims_to_operand_dims=(0, 1),
        ),
        np.pad(np.ones((50, 2), np.int32), ((120, 30), (0, 1))),
    ),
]


@pytest.fixture(scope="module")
def results_windows() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES_WINDOWS, "index-scatter-windows")


@pytest.mark.parametrize("example", EXAMPLES_WINDOWS, ids=lambda e: e.name)
def test_values_windows(results_windows: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results_windows[example.name], example) == []


def test_the_pass_is_still_needed_windows() -> None:
    with pytest.raises(CompilationError, match="batch rank"):
        Compiled(build({"f": (EXAMPLES_WINDOWS[0].arguments, EXAMPLES_WINDOWS[0].builder)}))


def test_scatters_of_rows_stay() -> None:
    def rows(x, indices, updates):
        return scatter(
            x,
            indices,
            updates,
            update_window_dims=(1,),
            inserted_window_dims=(0,),
            scatter_dims_to_operand_dims=(0,),
        )

    module = build({"f": ((X, STARTS[:, :1].copy(), windows(4, 5)), rows)})
    before = str(module)
    run_passes(module, "index-scatter-windows")
    assert str(module) == before


RNG = np.random.default_rng(0)
SHAPE = (3, 4, 5, 2)
COUNT = 6
PIPELINE_LEAD = "drop-scatter,index-scatter-windows,lead-scatter-dims"


def overwrite(_, update):
    return update


def integers(low, high, shape, dtype):
    return RNG.integers(low, high, shape).astype(dtype)


def expected_lead(x, batch, indexed, indices, updates, combine):
    """The reference: one update after the other, those out of bounds skipped.

    `indices` are [batch..., COUNT, vector]; `updates` [batch..., COUNT, other dimensions...].
    """
    result = x.copy()
    moved = np.moveaxis(result, (*batch, *indexed), range(len(batch) + len(indexed)))
    for place in np.ndindex(indices.shape[:-1]):
        at = (*place[:-1], *map(int, indices[place]))
        if all(0 <= i < size for i, size in zip(at, moved.shape, strict=False)):
            moved[at] = combine(moved[at], updates[place])
    return result


def example_lead(batch, indexed, body=hlo.add, combine=np.add, dtype=np.float32):
    """Indices that lie out of bounds and repeat, in any order of the dimensions."""
    kept = [axis for axis in range(len(SHAPE)) if axis not in (*batch, *indexed)]
    lead = tuple(SHAPE[axis] for axis in batch)
    columns = [RNG.integers(-1, SHAPE[axis] + 1, (*lead, COUNT)) for axis in indexed]
    indices = np.stack(columns, -1).astype(np.int32)
    x = integers(0, 9, SHAPE, dtype)
    updates = integers(0, 9, (*lead, COUNT, *(SHAPE[axis] for axis in kept)), dtype)
    depth = len(batch) + 1

    def builder(x, indices, updates):
        return hlo.scatter(
            [x],
            indices,
            [updates],
            body,
            update_window_dims=range(depth, depth + len(kept)),
            inserted_window_dims=sorted(indexed),
            input_batching_dims=batch,
            scatter_indices_batching_dims=range(len(batch)),
            scatter_dims_to_operand_dims=indexed,
            index_vector_dim=depth,
        )

    name = "_".join(map(str, ("batch", *batch, "at", *indexed, combine.__name__, x.dtype)))
    want = expected_lead(x, batch, indexed, indices, updates, combine)
    return Example(name, (x, indices, updates), builder, want)


def replaced(_, new):
    return new


BODIES = {
    replaced: overwrite,
    np.add: hlo.add,
    np.multiply: hlo.multiply,
    np.minimum: hlo.minimum,
    np.maximum: hlo.maximum,
}
PLACES = [
    (batch, indexed)
    for batch in [(), (0,), (2,), (3,), (1, 3)]
    for count in (1, 2, 3)
    for indexed in itertools.combinations([d for d in range(4) if d not in batch], count)
]
EXAMPLES_LEAD = [example_lead(batch, indexed) for batch, indexed in PLACES]
EXAMPLES_LEAD += [example_lead((), (3, 1)), example_lead((2,), (3, 0))]
EXAMPLES_LEAD += [
    example_lead((), (0, 2), body, combine, dtype)
    for combine, body in BODIES.items()
    for dtype in (np.float32, np.int32, np.uint8)
    if (combine, dtype) != (np.add, np.float32)
]


def window_along_the_only_index(x, indices, updates):
    """A batch of `dynamic_update_slice`."""
    return hlo.scatter(
        [x],
        indices,
        [updates],
        overwrite,
        update_window_dims=(1, 2, 3),
        inserted_window_dims=(),
        input_batching_dims=(0,),
        scatter_indices_batching_dims=(0,),
        scatter_dims_to_operand_dims=(2,),
        index_vector_dim=1,
    )


def updated_windows(x, starts, updates):
    result = x.copy()
    for batch, start in enumerate(starts[:, 0]):
        result[batch, :, start : start + 3] = updates[batch]
    return result


WINDOWS = (
    integers(0, 9, SHAPE, np.float32),
    np.array([[0], [2], [1]], np.int32),
    integers(0, 9, (3, 4, 3, 2), np.float32),
)
EXAMPLES_LEAD.append(
    Example("windows", WINDOWS, window_along_the_only_index, updated_windows(*WINDOWS))
)


@pytest.fixture(scope="module")
def results_lead() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES_LEAD, PIPELINE_LEAD)


@pytest.mark.parametrize("example", EXAMPLES_LEAD, ids=lambda e: e.name)
def test_values_lead(results_lead: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results_lead[example.name], example) == []


@pytest.mark.parametrize(("batch", "indexed"), [((), (0, 2)), ((0,), (2,))])
def test_the_pass_is_still_needed_lead(batch: tuple[int, ...], indexed: tuple[int, ...]) -> None:
    module = build(
        {"f": (example_lead(batch, indexed).arguments, example_lead(batch, indexed).builder)}
    )
    run_passes(module, "drop-scatter,index-scatter-windows")
    with pytest.raises(CompilationError, match="batch rank"):
        Compiled(module)


@pytest.mark.parametrize(
    ("batch", "indexed"), [((), (2,)), ((), (0, 1)), ((), (1, 0)), ((0,), (1,)), ((1,), (0, 2))]
)
def test_leading_dimensions_and_single_ones_stay(
    batch: tuple[int, ...], indexed: tuple[int, ...]
) -> None:
    module = build(
        {"f": (example_lead(batch, indexed).arguments, example_lead(batch, indexed).builder)}
    )
    before = str(module)
    run_passes(module, "lead-scatter-dims")
    assert str(module) == before

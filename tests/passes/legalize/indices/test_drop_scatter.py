"""`drop-scatter`: updates out of bounds are dropped, and write nowhere."""

from __future__ import annotations

import numpy as np
import pytest
from support.stablehlo_runner import Example, build, deviations, run_examples

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.pipeline import run_passes

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(10, 5)).astype(np.float32)
LONG = RNG.integers(0, 99, size=300).astype(np.int32)


def overwrite(_, update):
    return update


def into_rows(combine):
    def builder(x, indices, updates):
        return hlo.scatter(
            [x],
            indices,
            [updates],
            combine,
            update_window_dims=(1,),
            inserted_window_dims=(0,),
            scatter_dims_to_operand_dims=(0,),
            index_vector_dim=1,
        )

    return builder


def into_columns(x, indices, updates):
    return hlo.scatter(
        [x],
        indices,
        [updates],
        hlo.maximum,
        update_window_dims=(1,),
        inserted_window_dims=(1,),
        scatter_dims_to_operand_dims=(1,),
        index_vector_dim=1,
    )


def into_points(x, indices, updates):
    return hlo.scatter(
        [x],
        indices,
        [updates],
        hlo.add,
        update_window_dims=(),
        inserted_window_dims=(0, 1),
        scatter_dims_to_operand_dims=(1, 0),
        index_vector_dim=0,
    )


def into_vector(x, indices, updates):
    return hlo.scatter(
        [x],
        indices,
        [updates],
        hlo.add,
        update_window_dims=(),
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
        index_vector_dim=1,
    )


def combined(x, indices, updates, combine):
    """The reference: one update after the other, those out of bounds skipped."""
    result = x.copy()
    for index, update in zip(indices, updates, strict=True):
        if 0 <= index < len(x):
            result[index] = combine(result[index], update)
    return result


def example(name, values, dtype, builder, combine):
    indices = np.array(values, dtype)
    updates = RNG.normal(size=(len(values), 5)).astype(np.float32)
    expected = combined(ROWS, [int(v) for v in values], updates, combine)
    return Example(name, (ROWS, indices[:, None], updates), into_rows(builder), expected)


POINTS = RNG.integers(-3, 12, size=(2, 40)).astype(np.int32)
POINT_UPDATES = RNG.integers(0, 9, size=40).astype(np.float32)
AT_POINTS = ROWS.copy()
for (_column, _row), _value in zip(POINTS.T, POINT_UPDATES, strict=True):
    if 0 <= _row < 10 and 0 <= _column < 5:
        AT_POINTS[_row, _column] += _value
COLUMN_UPDATES = RNG.normal(size=(3, 10)).astype(np.float32)
COLUMNS = np.array([[4], [5], [-1]], np.int32)
AT_COLUMNS = ROWS.copy()
AT_COLUMNS[:, 4] = np.maximum(ROWS[:, 4], COLUMN_UPDATES[0])
SOME_ROWS = np.array([[0], [10], [0]], np.int32)
ROW_UPDATES = RNG.normal(size=(3, 5)).astype(np.float32)

EXAMPLES = [
    example("set", [3, 10, -1, 0, 9], np.int32, overwrite, lambda a, b: b),
    example("add_twice", [3, 3, 12, 2**31 - 1, -(2**31)], np.int32, hlo.add, np.add),
    example("i64", [3, 2**40, -(2**40)], np.int64, hlo.add, np.add),
    example("u8", [3, 255, 10], np.uint8, hlo.multiply, np.multiply),
    example("i8", [3, -128, 127], np.int8, hlo.minimum, np.minimum),
    example("all_outside", [10, 11], np.int32, overwrite, lambda a, b: b),
    Example("columns", (ROWS, COLUMNS, COLUMN_UPDATES), into_columns, AT_COLUMNS),
    Example("points", (ROWS, POINTS, POINT_UPDATES), into_points, AT_POINTS),
    Example(
        "narrow_indices",
        (LONG, np.array([-1, 127], np.int8)[:, None], np.array([5, 6], np.int32)),
        into_vector,
        LONG + 6 * (np.arange(300) == 127).astype(np.int32),
    ),
    Example(
        "empty_operand",
        (np.zeros((0, 5), np.float32), SOME_ROWS, ROW_UPDATES),
        into_rows(hlo.add),
        np.zeros((0, 5), np.float32),
    ),
]


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES, "drop-scatter")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_values(results: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results[example.name], example, ulps=1) == []


def test_the_padded_scatter_writes_into_its_padding() -> None:
    """Without the pass the same indices would write outside of the operand."""
    module = build({"f": (EXAMPLES[0].arguments, EXAMPLES[0].builder)})
    run_passes(module, "drop-scatter")
    text = str(module)
    assert "high = [1, 0]" in text
    assert "tensor<11x5xf32>" in text


def constant_scatter(values):
    indices = np.array(values, np.int32)[:, None]
    updates = np.ones((len(values), 5), np.float32)

    def builder(x, updates):
        return into_rows(hlo.add)(x, hlo.constant(indices), updates)

    module = build({"f": ((ROWS, updates), builder)})
    run_passes(module, "drop-scatter")
    return str(module)


def test_constant_indices_that_fit_need_no_padding() -> None:
    assert "stablehlo.pad" not in constant_scatter([0, 9])
    assert "stablehlo.pad" not in constant_scatter([4, 4])
    assert "stablehlo.pad" in constant_scatter([0, 10])
    assert "stablehlo.pad" in constant_scatter([-1, -1])

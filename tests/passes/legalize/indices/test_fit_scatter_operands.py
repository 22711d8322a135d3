"""`fit-scatter-operands`: scatters with windows smaller than the operand, or without indices."""

from __future__ import annotations

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

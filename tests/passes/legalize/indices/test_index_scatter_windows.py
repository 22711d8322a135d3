"""`index-scatter-windows`: scatters of windows along several indexed dimensions compile."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from support.stablehlo_runner import (
    CompilationError,
    Compiled,
    Example,
    build,
    deviations,
    run_examples,
)

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.pipeline import run_passes

X = np.arange(20, dtype=np.float32).reshape(4, 5)
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


EXAMPLES = [
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
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES, "index-scatter-windows")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_values(results: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results[example.name], example) == []


def test_the_pass_is_still_needed() -> None:
    with pytest.raises(CompilationError, match="batch rank"):
        Compiled(build({"f": (EXAMPLES[0].arguments, EXAMPLES[0].builder)}))


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

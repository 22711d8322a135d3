"""`lead-scatter-dims`: scatters over any dimensions of an operand compile."""

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

RNG = np.random.default_rng(0)
SHAPE = (3, 4, 5, 2)
COUNT = 6
PIPELINE = "drop-scatter,index-scatter-windows,lead-scatter-dims"


def overwrite(_, update):
    return update


def integers(low, high, shape, dtype):
    return RNG.integers(low, high, shape).astype(dtype)


def expected(x, batch, indexed, indices, updates, combine):
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


def example(batch, indexed, body=hlo.add, combine=np.add, dtype=np.float32):
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
    want = expected(x, batch, indexed, indices, updates, combine)
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
EXAMPLES = [example(batch, indexed) for batch, indexed in PLACES]
EXAMPLES += [example((), (3, 1)), example((2,), (3, 0))]
EXAMPLES += [
    example((), (0, 2), body, combine, dtype)
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
EXAMPLES.append(Example("windows", WINDOWS, window_along_the_only_index, updated_windows(*WINDOWS)))


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES, PIPELINE)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_values(results: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results[example.name], example) == []


@pytest.mark.parametrize(("batch", "indexed"), [((), (0, 2)), ((0,), (2,))])
def test_the_pass_is_still_needed(batch: tuple[int, ...], indexed: tuple[int, ...]) -> None:
    module = build({"f": (example(batch, indexed).arguments, example(batch, indexed).builder)})
    run_passes(module, "drop-scatter,index-scatter-windows")
    with pytest.raises(CompilationError, match="batch rank"):
        Compiled(module)


@pytest.mark.parametrize(
    ("batch", "indexed"), [((), (2,)), ((), (0, 1)), ((), (1, 0)), ((0,), (1,)), ((1,), (0, 2))]
)
def test_leading_dimensions_and_single_ones_stay(
    batch: tuple[int, ...], indexed: tuple[int, ...]
) -> None:
    module = build({"f": (example(batch, indexed).arguments, example(batch, indexed).builder)})
    before = str(module)
    run_passes(module, "lead-scatter-dims")
    assert str(module) == before

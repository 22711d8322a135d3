"""`lead-index-components`: index vectors are rows, and follow the batching dimensions."""

from __future__ import annotations

from itertools import permutations

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

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 5, 3, 4)).astype(np.float32)
PASS = "lead-index-components"
# Index vectors of two components, in two batches of two and five, for six elements.
VECTORS = np.stack([RNG.integers(0, n, (2, 5, 6)) for n in (3, 4)]).astype(np.int32)
AXES = "kabn"
WANTED = np.stack(
    [[X[a, b][tuple(VECTORS[:, a, b])] for b in range(5)] for a in range(2)], dtype=np.float32
)


def gathered(x, indices, order):
    """Takes elements by indices with dimensions in a given order; `k` is the vectors' dimension."""
    return hlo.gather(
        x,
        indices,
        offset_dims=(),
        collapsed_slice_dims=(2, 3),
        operand_batching_dims=(0, 1),
        start_indices_batching_dims=(order.index("a"), order.index("b")),
        start_index_map=(2, 3),
        index_vector_dim=order.index("k"),
        slice_sizes=(1, 1, 1, 1),
    )


def in_order(order):
    indices = np.ascontiguousarray(VECTORS.transpose([AXES.index(axis) for axis in order]))
    rest = order.replace("k", "")
    return Example(
        f"order_{order}",
        (X, indices),
        lambda x, i: gathered(x, i, order),
        np.ascontiguousarray(WANTED.transpose(["abn".index(axis) for axis in rest])),
    )


def of_components(order):
    """Components that are concatenated along the last dimension."""
    whole = in_order(order)
    parts = [part[..., None] for part in np.moveaxis(whole.arguments[1], -1, 0)]

    def builder(x, *components):
        return gathered(x, hlo.concatenate(components, len(order) - 1), order)

    return Example(f"parts_{order}", (X, *parts), builder, whole.expected)


ORDERS = ["".join(order) for order in permutations(AXES)]
EXAMPLES = [
    *(in_order(order) for order in ORDERS),
    *(of_components(order) for order in ORDERS if order.endswith("k")),
]


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES, PASS)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_values(results: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results[example.name], example) == []


def test_the_pass_is_still_needed() -> None:
    example = in_order("kabn")
    with pytest.raises(CompilationError):
        Compiled(build({"f": (example.arguments, example.builder)}))


@pytest.mark.parametrize(
    ("example", "text"),
    [
        (of_components("abnk"), "dim = 2 : (tensor<2x5x1x6xi32>, tensor<2x5x1x6xi32>)"),
        (of_components("anbk"), "dim = 3"),  # a batching dimension is the last one
        (in_order("nakb"), "stablehlo.transpose %arg1, dims = [0, 1, 3, 2]"),
    ],
    ids=["components", "components_before_batches", "vectors_before_batches"],
)
def test_where_vectors_lie(example: Example, text: str) -> None:
    assert text in text_after(example, PASS)


def test_vectors_behind_batches_stay() -> None:
    for order in ("abnk", "abkn", "nabk"):
        example = in_order(order)
        assert text_after(example, PASS) == text_after(example, "")

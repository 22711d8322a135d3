"""Gathers: clamped indices, and components of indices as rows."""

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
from axir.passes.framework.pipeline import run_passes

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(10, 5)).astype(np.float32)
LONG = RNG.normal(size=300).astype(np.float32)
CUBE = RNG.integers(0, 1000, size=(4, 6, 7))


def rows(x, indices):
    return hlo.gather(
        x,
        indices,
        offset_dims=(1,),
        collapsed_slice_dims=(0,),
        start_index_map=(0,),
        index_vector_dim=1,
        slice_sizes=(1, 5),
    )


def scalars(x, indices):
    return hlo.gather(
        x,
        indices,
        offset_dims=(),
        collapsed_slice_dims=(0,),
        start_index_map=(0,),
        index_vector_dim=1,
        slice_sizes=(1,),
    )


def windows(x, indices):
    """Gathers a window of 2 x 3 in the dimensions 2 and 0; the indices are in this order."""
    return hlo.gather(
        x,
        indices,
        offset_dims=(1, 2),
        collapsed_slice_dims=(1,),
        start_index_map=(2, 0, 1),
        index_vector_dim=0,
        slice_sizes=(2, 1, 3),
    )


def example(name, dtype, values):
    indices = np.array(values, dtype)
    expected = ROWS[np.clip(indices.astype(object), 0, 9).astype(int)]
    return Example(name, (ROWS, indices[:, None]), rows, expected)


STARTS = RNG.integers(-9, 12, size=(3, 8)).astype(np.int32)
WINDOWS = [
    CUBE[
        np.clip(b, 0, 2) : np.clip(b, 0, 2) + 2,
        np.clip(c, 0, 5),
        np.clip(a, 0, 4) : np.clip(a, 0, 4) + 3,
    ]
    for a, b, c in STARTS.T
]
EXAMPLES = [
    example("i32", np.int32, [-(2**31), -1, 0, 9, 10, 2**31 - 1]),
    example("i64", np.int64, [-(2**63), -1, 0, 9, 10, 2**40]),
    example("i8", np.int8, [-128, -1, 0, 9, 10, 127]),
    example("u8", np.uint8, [0, 9, 10, 255]),
    example("u32", np.uint32, [0, 9, 2**31, 2**32 - 1]),
    Example(
        "narrow_indices",
        (LONG, np.array([-5, 127], np.int8)[:, None]),
        scalars,
        LONG[[0, 127]],
    ),
    Example(
        "implicit_vector",
        (LONG, np.array([299, 300, -1], np.int32)),
        scalars,
        LONG[[299, 299, 0]],
    ),
    Example("windows", (CUBE, STARTS), windows, np.array(WINDOWS)),
]


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES, "clamp-gather")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_values(results: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results[example.name], example) == []


def test_without_the_pass_other_memory_is_read() -> None:
    near = Example("near", (ROWS, np.array([[10], [-1]], np.int32)), rows, ROWS[[9, 0]])
    assert deviations(run_examples([near])["near"], near) != []


def test_promised_indices_are_not_clamped() -> None:
    def promised(x, indices):
        result = rows(x, indices)
        result.owner.attributes["axir.in_bounds"] = hlo.attribute("unit")
        return result

    module = build({"f": ((ROWS, np.zeros((3, 1), np.int32)), promised)})
    run_passes(module, "clamp-gather")
    assert "clamp" not in str(module)
    assert "axir" not in str(module)


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
EXAMPLES_LEAD = [
    *(in_order(order) for order in ORDERS),
    *(of_components(order) for order in ORDERS if order.endswith("k")),
]


@pytest.fixture(scope="module")
def results_lead() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES_LEAD, PASS)


@pytest.mark.parametrize("example", EXAMPLES_LEAD, ids=lambda e: e.name)
def test_values_lead(results_lead: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results_lead[example.name], example) == []


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

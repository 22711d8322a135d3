"""The row `slice-before-scatter` of `separate-dispatches`: large slices as operands."""

from __future__ import annotations

import numpy as np
import pytest
from support.stablehlo_runner import (
    CompilationError,
    Example,
    build,
    compile_module,
    deviations,
    run_examples,
)

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.pipeline import run_passes

RNG = np.random.default_rng(0)
PASS = "separate-dispatches{row=slice-before-scatter}"
EARLIER = "drop-scatter,fit-scatter-operands,protect-inputs"
COUNT = 10_000  # rows of a slice of 120 KB


def scatter_add(operand, indices, updates):
    count = indices.type.shape[0]
    return hlo.scatter(
        [operand],
        hlo.reshape(indices, (count, 1)),
        [updates],
        hlo.add,
        update_window_dims=(1,),
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
        index_vector_dim=1,
    )


def example(name: str, rows: int, count: int, low: int, high: int) -> Example:
    operand = RNG.integers(-4, 5, size=(rows, 3)).astype(np.float32)
    updates = RNG.integers(-4, 5, size=(count, 3)).astype(np.float32)
    indices = RNG.integers(low, high, size=count).astype(np.int32)
    expected = operand.copy()
    fits = (indices >= 0) & (indices < rows)
    np.add.at(expected, indices[fits], updates[fits])
    return Example(name, (operand, indices, updates), scatter_add, expected)


EXAMPLES = [
    example("many", 500, COUNT, 0, 500),
    example("many_that_do_not_fit", 500, COUNT, -100, 700),
    example("few", 5, 9, -2, 8),
    example("one", 1, 1, 0, 1),
]


def slice_example() -> Example:
    """Updates of the first columns, which `fit-scatter-operands` slices off."""
    operand = RNG.integers(-4, 5, size=(COUNT, 5)).astype(np.float32)
    updates = np.ones((4, 3), np.float32)
    expected = operand.copy()
    expected[:4, :3] += 1
    return Example("slice", (operand, np.arange(4, dtype=np.int32), updates), scatter_add, expected)


def shared_slice_example() -> Example:
    """Updates of a slice that is read again afterwards."""
    operand = RNG.integers(1, 5, size=(500, 3)).astype(np.float32)
    indices = np.arange(40, dtype=np.int32)
    updates = np.ones((40, 3), np.float32)

    def builder(operand, indices, updates):
        part = hlo.slice(hlo.sqrt(operand), (100, 0), (400, 3))
        return *scatter_add(part, indices, updates), hlo.reverse(part, (0,))

    part = np.sqrt(operand[100:400])
    expected = part.copy()
    expected[:40] += 1
    return Example("shared_slice", (operand, indices, updates), builder, [expected, part[::-1]])


EXAMPLES += [slice_example(), shared_slice_example()]


@pytest.fixture(scope="module")
def results():
    return run_examples(EXAMPLES, f"{EARLIER},{PASS}")


@pytest.mark.parametrize("case", EXAMPLES, ids=lambda case: case.name)
def test_values(results, case: Example) -> None:
    assert deviations(results[case.name], case) == []


def test_the_pass_is_still_needed() -> None:
    case = slice_example()
    module = build({case.name: (case.arguments, case.builder)})
    run_passes(module, EARLIER)
    with pytest.raises(CompilationError, match="exceeded stack allocation limit"):
        compile_module(module)


def test_arguments_need_no_barrier() -> None:
    case = EXAMPLES[2]
    operand, indices, updates = case.arguments

    def builder(operand, indices, updates):
        return hlo.scatter(
            [operand],
            indices,
            [updates],
            hlo.add,
            update_window_dims=(1,),
            inserted_window_dims=(0,),
            scatter_dims_to_operand_dims=(0,),
            index_vector_dim=1,
        )

    module = build({"f": ((operand, indices[:, None], updates), builder)})
    run_passes(module, PASS)
    assert "optimization_barrier" not in str(module)

"""`protect-inputs`: a call does not change the arrays that the caller passes."""

from __future__ import annotations

import numpy as np
import pytest
from support.stablehlo_runner import Compiled, build, parse

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.kernels import dispatch
from axir.passes.framework.pipeline import run_passes
from axir.passes.legalize.buffers.protect_inputs import transfer

X = np.arange(50, dtype=np.float32).reshape(10, 5)[::-1].copy()
INDICES = np.array([[1], [3], [5]], np.int32)
UPDATES = np.full((3, 5), 100, np.float32)
START = np.int32(2)
ARGUMENTS = (X, INDICES, UPDATES, START)


def scatter(x, indices, updates, start):
    return hlo.scatter(
        [x],
        indices,
        [updates],
        hlo.add,
        update_window_dims=(1,),
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
        index_vector_dim=1,
    )[0]


def update(x, indices, updates, start):
    return hlo.dynamic_update_slice(x, updates, [start, start])


def sort(x, indices, updates, start):
    return hlo.sort([x], 0, lambda a, b: hlo.compare(a, b, "LT"))[0]


def kernel(x, indices, updates, start):
    def increase(x):
        x[1, 2] = x[1, 2] + 1.0

    return dispatch(increase, [x], [x.type], in_place={0: 0})[0]


def through(forward):
    """The operations above, on the result of `forward` for the argument."""
    return {
        f"{operation.__name__}_{forward.__name__}": (
            lambda x, *rest, operation=operation: operation(forward(x), *rest)
        )
        for operation in (scatter, update, sort, kernel)
    }


def itself(x):
    return x


def reshaped(x):
    return hlo.reshape(hlo.reshape(x, (50,)), (10, 5))


def behind_a_barrier(x):
    return hlo.optimization_barrier(reshaped(hlo.optimization_barrier(x)[0]))[0]


def cast(x):
    return hlo.bitcast_convert(hlo.bitcast_convert(x, np.int32), np.float32)


def transposed(x):
    return hlo.transpose(hlo.transpose(x, (1, 0)), (1, 0))


def selected(x):
    return hlo.select(hlo.constant(True), x, x)


def with_zero_added(x):
    return hlo.bitcast_convert(
        hlo.add(hlo.bitcast_convert(x, np.int32), hlo.constant(np.zeros((10, 5), np.int32))),
        np.float32,
    )


def after_a_loop(x):
    def is_running(i, _):
        return hlo.compare(i, hlo.constant(np.int32(2)), "LT")

    def step(i, y):
        return [hlo.add(i, hlo.constant(np.int32(1))), y]

    return hlo.while_([hlo.constant(np.int32(0)), x], is_running, step)[1]


def put_over_all(x):
    return hlo.dynamic_update_slice(hlo.add(x, x), x, [hlo.constant(np.int32(0))] * 2)


def put_over_all_at_once(x):
    return hlo.scatter(
        [hlo.add(x, x)],
        hlo.constant(np.zeros(1, np.int32)),
        [x],
        lambda old, new: new,
        update_window_dims=(0, 1),
        inserted_window_dims=(),
        scatter_dims_to_operand_dims=(0,),
        index_vector_dim=0,
    )[0]


def rounded_to_what_it_is(x):
    return hlo.reduce_precision(x, 8, 23)


FORWARDS = (
    itself,
    reshaped,
    behind_a_barrier,
    cast,
    transposed,
    selected,
    with_zero_added,
    after_a_loop,
    put_over_all,
    put_over_all_at_once,
    rounded_to_what_it_is,
)
FUNCTIONS = {name: f for forward in FORWARDS for name, f in through(forward).items()}
FUNCTIONS["scatter_and_result"] = lambda x, *rest: [scatter(x, *rest), x]
FUNCTIONS["two_updates"] = lambda x, *rest: [update(x, *rest), scatter(x, *rest)]


def changed_arguments(compiled: Compiled, name: str) -> list[int]:
    on_device = [compiled.put(argument) for argument in ARGUMENTS]
    compiled.call_on_device(name, *on_device)
    return [
        index
        for index, (after, before) in enumerate(zip(on_device, ARGUMENTS, strict=True))
        if not np.array_equal(after.to_host(), before)
    ]


@pytest.fixture(scope="module")
def protected() -> Compiled:
    module = build({name: (ARGUMENTS, function) for name, function in FUNCTIONS.items()})
    run_passes(module, "protect-inputs")
    return Compiled(module)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_arguments_do_not_change(protected: Compiled, name: str) -> None:
    assert changed_arguments(protected, name) == []


def test_results_are_right(protected: Compiled) -> None:
    scattered = X.copy()
    scattered[[1, 3, 5]] += 100
    updated = X.copy()
    updated[2:5] = 100
    np.testing.assert_array_equal(protected("scatter_itself", *ARGUMENTS)[0], scattered)
    np.testing.assert_array_equal(protected("sort_reshaped", *ARGUMENTS)[0], np.sort(X, 0))
    for result, expected in zip(
        protected("two_updates", *ARGUMENTS), (updated, scattered), strict=True
    ):
        np.testing.assert_array_equal(result, expected)
    for result, expected in zip(
        protected("scatter_and_result", *ARGUMENTS), (scattered, X), strict=True
    ):
        np.testing.assert_array_equal(result, expected)


def test_without_the_pass_arguments_change() -> None:
    names = (
        "scatter_itself",
        "update_itself",
        "sort_itself",
        "update_reshaped",
        "update_put_over_all",
        "update_put_over_all_at_once",
        "update_rounded_to_what_it_is",
    )
    compiled = Compiled(build({name: (ARGUMENTS, FUNCTIONS[name]) for name in names}))
    assert all(changed_arguments(compiled, name) == [0] for name in names)


DONATING = """
func.func @f(%x: tensor<4xf32> {ATTRIBUTE}, %u: tensor<1xf32>, %i: tensor<i32>) -> tensor<4xf32> {
  %0 = stablehlo.dynamic_update_slice %x, %u, %i
    : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


@pytest.mark.parametrize("attribute", ["axir.donated", "jax.buffer_donor = true"])
def test_donated_arguments_are_reused(attribute: str) -> None:
    module = parse(DONATING.replace("ATTRIBUTE", attribute))
    run_passes(module, "protect-inputs")
    assert "flow.tensor.transfer" not in str(module)
    assert "axir.donated" not in str(module)
    compiled = Compiled(module)
    x = compiled.put(np.arange(4, dtype=np.float32))
    compiled.call_on_device("f", x, compiled.put(np.full(1, 9, "f")), compiled.put(np.int32(1)))
    np.testing.assert_array_equal(x.to_host(), [0, 9, 2, 3])


def test_unsigned_arguments_do_not_change() -> None:
    x, update, start = np.arange(9, dtype=np.uint8), np.full(2, 200, np.uint8), np.int32(3)
    functions = {"f": ((x, update, start), lambda x, u, i: hlo.dynamic_update_slice(x, u, [i]))}
    module = build(functions)
    run_passes(module, "protect-inputs")
    compiled = Compiled(module)
    on_device = compiled.put(x)
    (result,) = compiled.call_on_device("f", on_device, compiled.put(update), compiled.put(start))
    np.testing.assert_array_equal(result.to_host(), [0, 1, 2, 200, 200, 5, 6, 7, 8])
    np.testing.assert_array_equal(on_device.to_host(), x)


def test_kernels_copy_what_is_large() -> None:
    """Tests all forms of a caller's array, also with another reader of the old contents."""
    large = np.arange(200_000, dtype=np.uint32).reshape(400, 500)
    truths = np.arange(600_000).reshape(600, 1000) % 7 == 0
    start = np.int32(301)

    def replace(x, part, i):
        return [hlo.dynamic_update_slice(hlo.reshape(x, hlo.shape_of(x)), part, [i, i]), x]

    examples = {
        "numbers": (large, np.full((2, 3), 7, np.uint32), start),
        "truths": (truths, np.ones((2, 3), bool), start),
    }
    module = build({name: (arguments, replace) for name, arguments in examples.items()})
    run_passes(module, "protect-inputs")
    assert "flow.tensor.transfer" not in str(module)
    compiled = Compiled(module)
    for name, (x, part, _) in examples.items():
        on_device = compiled.put(x)
        made, same = compiled.call_on_device(
            name, on_device, compiled.put(part), compiled.put(start)
        )
        expected = x.copy()
        expected[301:303, 301:304] = part
        np.testing.assert_array_equal(made.to_host(), expected)
        np.testing.assert_array_equal(on_device.to_host(), x)
        np.testing.assert_array_equal(same.to_host(), x)
    elsewhere = build({"numbers": (examples["numbers"], replace)})
    run_passes(elsewhere, "protect-inputs{platform=cuda}")
    assert "flow.tensor.transfer" in str(elsewhere)


def last_row(x):
    return hlo.slice(x, [9, 0], [10, 5])


def doubled_in_place(column):
    """Returns the column with its second element doubled; the update reads its own target."""
    element = hlo.slice(column, [1, 0], [2, 1])
    start = [hlo.constant(np.int32(1)), hlo.constant(np.int32(0))]
    return hlo.dynamic_update_slice(column, hlo.add(element, element), start)


def largest(column):
    return hlo.reduce([column], [hlo.full(-np.inf, (), np.float32)], [0, 1], hlo.maximum)[0]


def part_and_result(x, *_):
    row = last_row(x)
    changed = doubled_in_place(hlo.reshape(row, (5, 1)))
    return [row, hlo.add(row, hlo.broadcast_in_dim(largest(changed), (1, 5), ()))]


def twins_and_result(x, *_):
    changed = doubled_in_place(hlo.reshape(last_row(x), (5, 1)))
    return [last_row(x), hlo.add(last_row(x), hlo.broadcast_in_dim(largest(changed), (1, 5), ()))]


PARTS = {"part": part_and_result, "twins": twins_and_result}
PARTS_EXPECTED = [X[9:], X[9:] + np.float32(max(2 * X[9, 1], X[9].max()))]


def test_a_part_that_something_else_reads_does_not_change() -> None:
    module = build({name: (ARGUMENTS, function) for name, function in PARTS.items()})
    run_passes(module, "protect-inputs")
    compiled = Compiled(module)
    for name in PARTS:
        for result, expected in zip(compiled(name, *ARGUMENTS), PARTS_EXPECTED, strict=True):
            np.testing.assert_array_equal(result, expected)
        assert changed_arguments(compiled, name) == []


def test_a_transfer_alone_does_not_keep_a_part() -> None:
    module = build({"f": (ARGUMENTS, lambda x, *_: part_and_result(transfer(x, "__device_0")))})
    assert not np.array_equal(Compiled(module)("f", *ARGUMENTS)[0], X[9:])


def test_a_part_that_nothing_else_reads_is_not_copied_again() -> None:
    def changed(x, indices, updates, start):
        return hlo.dynamic_update_slice(
            last_row(x), hlo.slice(updates, [0, 0], [1, 2]), [start] * 2
        )

    module = build({"f": (ARGUMENTS, changed)})
    run_passes(module, "protect-inputs")
    assert "flow.tensor.transfer" in str(module)
    assert "select" not in str(module)


def test_computed_operands_are_not_copied() -> None:
    module = build({"f": (ARGUMENTS, lambda x, *rest: update(hlo.sine(x), *rest))})
    run_passes(module, "protect-inputs")
    assert "flow.tensor.transfer" not in str(module)


def test_loops_work_in_place_on_their_carry() -> None:
    def loop(x, indices, updates, start):
        def is_running(i, _):
            return hlo.compare(i, hlo.constant(np.int32(3)), "LT")

        def step(i, y):
            return [hlo.add(i, hlo.constant(np.int32(1))), update(y, indices, updates, i)]

        return hlo.while_([hlo.constant(np.int32(0)), x], is_running, step)[1]

    module = build({"f": (ARGUMENTS, loop)})
    run_passes(module, "protect-inputs")
    assert "flow.tensor.transfer" not in str(module)
    compiled = Compiled(module)
    assert changed_arguments(compiled, "f") == []

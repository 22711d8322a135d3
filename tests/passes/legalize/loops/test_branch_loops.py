"""`branch-loops`: loops of every form, as blocks and branches."""

from __future__ import annotations

import re

import numpy as np
import pytest
from iree.compiler import ir
from support.memory import least_growth
from support.stablehlo_runner import (
    CompilationError,
    Example,
    build,
    compile_module,
    deviations,
    run_examples,
    text_after,
)

import axir
import axir.numpy as jnp
from axir import lax
from axir.dialect.builders import stablehlo as hlo
from axir.dialect.program.function_tracing import trace_function
from axir.passes.framework.pipeline import run_passes
from axir.passes.transforms.lower_to_stablehlo import lower_functions
from axir.runtime import Target
from axir.runtime import compile_module as compile_repaired
from axir.runtime.compiler.compilation import compile_object

X = np.array([1, 2, 3, 4])


def number(value, kind=np.int32):
    return hlo.constant(kind(value))


def first_of(x):
    return hlo.reshape(hlo.slice(x, (0,), (1,)), ())


def newton(a):
    """Returns the square root, and the error, which only the condition reads."""

    def holds(_, error):
        return hlo.compare(error, number(1e-3, np.float32), "GT")

    def step(x, _):
        excess = hlo.subtract(hlo.multiply(x, x), a)
        new = hlo.subtract(x, hlo.divide(excess, hlo.add(x, x)))
        return [new, hlo.abs(hlo.subtract(new, x))]

    return hlo.while_([hlo.full_like(a, 1), hlo.full_like(a, 1e9)], holds, step)


def _root_and_error(a):
    x, error = np.float32(1), np.float32(1e9)
    while error > np.float32(1e-3):
        new = x - (x * x - a) / (x + x)
        x, error = new, abs(new - x)
    return [x, error]


def last_two(x, start):
    """Doubles a value until its first element exceeds 9; returns it and the one before."""

    def holds(_, value):
        first = first_of(value)
        return hlo.compare(hlo.add(first, first), hlo.constant(18, x.type.element_type), "LE")

    return hlo.while_([start, x], holds, lambda _, value: [value, hlo.add(value, value)])


def same_twice(x, y):
    """Adds two values into both until the first element exceeds a limit."""

    def holds(a, b):
        return hlo.compare(first_of(a), hlo.constant(50, x.type.element_type), "LT")

    def step(a, b):
        total = hlo.add(a, b)
        return [total, total]

    return hlo.while_([x, y], holds, step)


def flagged(flag, x):
    """Runs on a carried boolean, and returns it."""

    def step(_, y):
        half = hlo.multiply(y, hlo.scalar_like(y, 0.5))
        return [hlo.compare(half, hlo.scalar_like(half, 1), "GT"), half]

    return hlo.while_([flag, x], lambda flag, _: flag, step)


def rotated(x, count, bound):
    """Exchanges two values, a constant and a captured one; the device knows how often."""

    def holds(*carried):
        return hlo.compare(carried[-1], bound, "LT")

    def step(a, b, captured, constant, index):
        return [b, a, x, hlo.full_like(x, 7), hlo.add(index, number(1))]

    initial = [x, hlo.negate(x), hlo.full_like(x, 0), hlo.full_like(x, 1), count]
    return hlo.while_(initial, holds, step)


def branching(x, index):
    """A choice of three branches in a counting loop; two branches hold loops."""

    def count_to(limit, y):
        def step(i, z):
            return [hlo.add(i, number(1)), hlo.add(z, y)]

        return hlo.while_([number(0), y], lambda i, _: hlo.compare(i, limit, "LT"), step)[1]

    def step(i, y):
        branches = [
            lambda: [count_to(number(2), y)],
            lambda: [hlo.negate(y)],
            lambda: [count_to(i, y)],
        ]
        (new,) = hlo.case(hlo.add(i, index), branches, [y.type])
        return [hlo.add(i, number(1)), new]

    return hlo.while_([number(0), x], lambda i, _: hlo.compare(i, number(4), "LT"), step)


def counted(kind):
    """Sums the elements of an array; the counter has a given integer type."""

    def build(x):
        one, size = number(1, kind), number(len(X), kind)

        def step(i, total):
            element = hlo.reshape(hlo.dynamic_slice(x, [i], (1,)), ())
            return [hlo.add(i, one), hlo.add(total, element)]

        zero = hlo.constant(0, x.type.element_type)
        return hlo.while_([number(0, kind), zero], lambda i, _: hlo.compare(i, size, "LT"), step)

    return build


def handed_on(x, y):
    """Adds y to x while a condition on the device holds, three times with a larger limit.

    In the inner loop, y is selected between itself and itself, which IREE simplifies. The outer
    loop only passes the inner loop's results on.
    """
    one, limit = number(1), number(20, np.int64)

    def inner(x, y, limit):
        same = hlo.select(hlo.compare(x, y, "LT"), y, y)
        return [hlo.add(x, same), same, limit]

    def outer(i, x, y, limit):
        x, y, limit = hlo.while_(
            [x, y, limit], lambda x, _, limit: hlo.compare(first_of(x), limit, "LT"), inner
        )
        return [hlo.add(i, one), x, y, hlo.add(limit, limit)]

    start = [number(0), x, y, limit]
    return hlo.while_(start, lambda i, *_: hlo.compare(i, number(3), "LT"), outer)[1:3]


def _handed_on(x, y):
    for limit in (20, 40, 80):
        while x[0] < limit:
            x = x + y
    return [x, y]


def converted(kind):
    """Adds the converted number of each iteration to a scalar and to an array."""

    def build(x, y):
        element = hlo.element_type_of(x)

        def step(i, x, y):
            number_of_pass = hlo.convert(i, element)
            spread = hlo.broadcast_in_dim(number_of_pass, y.type.shape, ())
            return [hlo.add(i, number(1, kind)), hlo.add(x, number_of_pass), hlo.add(y, spread)]

        initial = [number(0, kind), x, y]
        return hlo.while_(initial, lambda i, *_: hlo.compare(i, number(4, kind), "LT"), step)

    return build


def squared(x, count):
    """Counts to a number that is squared forty times: each step reads the last one twice."""
    limit = count
    for _ in range(40):
        limit = hlo.multiply(limit, limit)

    def step(i, y):
        return [hlo.add(i, number(1)), hlo.negate(y)]

    return hlo.while_([number(0), x], lambda i, _: hlo.compare(i, limit, "LT"), step)


def exchanged(*arrays):
    """Rotates arrays until the first one's first element is large."""

    def holds(first, *_):
        return hlo.compare(first_of(first), hlo.constant(14, first.type.element_type), "LT")

    return hlo.while_(arrays, holds, lambda *carried: [*carried[1:], carried[0]])


def _branched(x, index):
    x = x.copy()
    for i in range(4):
        taken = i + index
        if taken == 0:
            x = x + 2 * x
        elif taken == 1:
            x = -x
        else:
            x = x + i * x
    return x


def examples(dtype) -> list[Example]:
    x = X.astype(dtype)
    name = x.dtype.name
    return [
        Example(f"last_two_{name}", (x, 0 * x), last_two, [8 * x, 16 * x]),
        Example(f"same_twice_{name}", (x, x), same_twice, [64 * x, 64 * x]),
        Example(f"branching_{name}", (x, np.int32(0)), branching, [np.int32(4), _branched(x, 0)]),
        Example(
            f"out_of_range_{name}", (x, np.int32(-2)), branching, [np.int32(4), _branched(x, -2)]
        ),
    ]


EXAMPLES = [
    Example("newton", (np.float32(5),), newton, _root_and_error(np.float32(5))),
    Example(
        "exchanged",
        [X + n for n in range(20)],
        exchanged,
        [X + (n + 13) % 20 for n in range(20)],
    ),
    Example("runs", (True, np.float32(100)), flagged, [False, np.float32(0.78125)]),
    Example("squared", (X, np.int32(1)), squared, [np.int32(1), -X]),
    Example("does_not_run", (False, np.float32(100)), flagged, [False, np.float32(100)]),
    *(e for dtype in (np.float32, np.float64, np.int32, np.int8) for e in examples(dtype)),
    *(
        Example(
            f"rotated_{passes}",
            (X, np.int32(2), np.int32(2 + passes)),
            rotated,
            [
                X * (-1) ** passes,
                -X * (-1) ** passes,
                X if passes else 0 * X,
                np.full_like(X, 7 if passes else 1),
                np.int32(2 + passes),
            ],
        )
        for passes in (0, 1, 2, 3)
    ),
    Example("handed_on", (X, 2 * X), handed_on, _handed_on(X, 2 * X)),
    *(
        Example(f"counted_{kind.__name__}", (X,), counted(kind), [kind(4), X.sum()])
        for kind in (np.int8, np.int32, np.int64, np.uint8, np.uint32)
    ),
    *(
        Example(
            f"converted_{kind.__name__}_{other.__name__}",
            (other(1), X.astype(other)),
            converted(kind),
            [kind(4), other(7), X.astype(other) + other(6)],
        )
        for kind in (np.int32, np.uint8)
        for other in (np.int8, np.int64, np.uint8, np.uint32, np.float32)
    ),
]


def _compile(module: ir.Module) -> bytes:
    # Loops need the repair of references at branches.
    return compile_repaired(module.operation.get_asm(), Target(), "loops")


def test_values() -> None:
    results = run_examples(EXAMPLES, "sign-unsigned-data,branch-loops", compiler=_compile)
    assert [d for e in EXAMPLES for d in deviations(results[e.name], e, ulps=1)] == []


@pytest.mark.parametrize("name", ["newton", "same_twice_float32", "runs"])
def test_without_the_pass_the_compiler_fails(name: str) -> None:
    (example,) = (e for e in EXAMPLES if e.name == name)
    with pytest.raises(CompilationError):
        compile_module(build({"f": (example.arguments, example.builder)}))


def test_counters_and_what_follows_from_them_are_scalars_of_the_host() -> None:
    (example,) = (e for e in EXAMPLES if e.name == "counted_uint32")
    text = text_after(example, "branch-loops")
    assert "arith.cmpi ult" in text
    assert "arith.addi" in text
    assert "tensor.extract" not in text  # the host reads nothing from the device


def test_what_the_condition_needs_is_read_once_before_the_loop() -> None:
    (example,) = (e for e in EXAMPLES if e.name == "rotated_2")
    before, inside = text_after(example, "branch-loops").split("^bb1", 1)
    assert before.count("tensor.extract") == 2  # the first number and the bound
    assert "tensor.extract" not in inside


def test_what_no_pass_changes_is_read_where_it_is() -> None:
    def scaled(x, factor, count):
        """Computes `count` products of x with a factor that the loop carries, and the factor."""
        return hlo.while_(
            [x, factor, count],
            lambda x, factor, left: hlo.compare(left, number(0), "GT"),
            lambda x, factor, left: [
                hlo.multiply(x, factor),
                factor,
                hlo.subtract(left, number(1)),
            ],
        )

    x = X.astype(np.float32)
    example = Example("scaled", (x, x, np.int32(2)), scaled, [x**3, x, np.int32(0)])
    text = text_after(example, "branch-loops")
    assert re.search(r"stablehlo.multiply %\w+, %arg1", text)
    assert re.search(r"return %\w+, %arg1, ", text)
    assert deviations(run_examples([example], "branch-loops")["scaled"], example) == []


def test_branches_pass_no_value_behind_a_barrier() -> None:
    """IREE does not know the size of such a value, and queries it where a branch does not pass."""
    (example,) = (e for e in EXAMPLES if e.name == "handed_on")
    text = text_after(example, "branch-loops")
    behind = set(re.findall(r"(%\w+) = util.optimization_barrier %\w+ : tensor", text))
    passed = set(re.findall(r"%\w+", " ".join(re.findall(r"cf\.(?:cond_)?br .*", text))))
    assert behind
    assert not behind & passed


def _chosen_within(depth):
    """Adds numbers to an array by nested choices, three times."""

    def choose(x, left):
        if not left:
            return hlo.add(x, x)
        is_small = hlo.compare(first_of(x), number(10 * left, np.int64), "LT")
        return hlo.if_(is_small, lambda: [choose(x, left - 1)], lambda: [hlo.negate(x)], [x.type])[
            0
        ]

    def build(x):
        start = [number(0), x]
        return hlo.while_(
            start,
            lambda i, _: hlo.compare(i, number(3), "LT"),
            lambda i, x: [hlo.add(i, number(1)), choose(x, depth)],
        )[1:]

    return build


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_the_host_waits_where_choices_stand_deep_within_each_other(depth: int) -> None:
    """IREE fails to follow which timepoints to wait for in loops with many nested choices."""
    example = Example("chosen", (X,), _chosen_within(depth), [8 * X])
    text = text_after(example, "branch-loops")
    waits = re.search(r"util.optimization_barrier %\w+ : tensor<4xi64>", text) is not None
    assert waits == (depth >= 3)
    assert (
        deviations(run_examples([example], "branch-loops", compiler=_compile)["chosen"], example)
        == []
    )


def test_a_module_without_loops_stays_as_it_is() -> None:
    def chosen(x, predicate):
        return hlo.if_(predicate, lambda: [x], lambda: [hlo.negate(x)], [x.type])

    example = Example("chosen", (X, True), chosen, [X])
    assert text_after(example, "branch-loops") == text_after(example, "")


# Stacks of scans --------------------------------------------------------------------------------


def powers(x):
    """Steps of a large array; all steps are stacked."""

    def step(grid, _):
        grid = jnp.tanh(grid @ grid)  # too much for one kernel of all steps
        return grid, grid

    return lax.scan(step, x, None, length=6)


def test_a_scan_copies_into_its_stack_what_it_adds_alone():
    x = jnp.ones((400, 400)) / 400
    function = trace_function(powers, [x.type], name="powers")
    module = lower_functions({"main": function})
    run_passes(module, "legalize-for-iree,tune-for-cpu")
    text, _ = compile_object(module, Target(linkage="object"), "powers")
    copies = re.findall(r"stream.cmd.copy .*, %c(\d+) :", text)
    # The initial value, and one step after the other; never the stacked array.
    assert set(copies) == {str(x.nbytes)}


def test_calls_of_loops_leave_no_memory_behind():
    function = axir.jit(lambda x: axir.grad(lambda x: (powers(x)[1] ** 2).sum())(x))
    x = jnp.ones((400, 400)) / 400
    growth = least_growth(lambda: function(x).block_until_ready(), calls=40)
    # A leak in each call would be one of its arrays, or a whole stacked array.
    assert growth < 20 * x.nbytes

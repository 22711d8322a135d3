"""Kernels, compared with NumPy: all of them in one module, compiled once."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from iree.compiler import ir
from support.stablehlo_runner import Example, build, deviations, run_examples, text_after

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.expressions import exp, maximum, minimum, select, sqrt
from axir.dialect.builders.kernels import (
    Memory,
    all_lanes,
    any_lane,
    branch,
    dispatch,
    first_lanes,
    lane,
    lanes,
    largest_lane,
    loop,
    repeat_while,
    rows_of,
    scratch,
    shuffle,
    smallest_lane,
    sum_of_lanes,
    with_lane,
    workspace,
)
from axir.dialect.builders.kernels.packing import MOST_BINDINGS
from axir.dialect.builders.scalars import (
    Scalar,
    broadcast,
    float32,
    fused_multiply_add,
    index,
    integer,
    multiply_add,
    to_float,
    to_index,
    to_integer,
)

DTYPES = (
    np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.int8, np.uint8, np.int16, np.uint16,
    np.int32, np.uint32, np.int64, np.uint64,
)  # fmt: skip
ROWS = np.arange(40, dtype=np.float32).reshape(5, 8) - 11
NUMBERS = np.array([3.5, -1.25, 7.75, 0.0, -2.0, 9.0, 4.0], np.float32)
TRUTHS = np.array([True, False, False, True, True, False, True, True])


def like_operand(kernel: Callable[..., None], **options: Any) -> Callable[..., Any]:
    """Builds the dispatch of a kernel with one result, of the type of the first operand."""
    return lambda *xs: dispatch(kernel, xs, [xs[0].type], **options)


def each(extent: int, step: Callable[[Scalar], None]) -> None:
    loop(0, extent, (), step)


def doubled(x: Memory, result: Memory) -> None:
    def step(i: Scalar) -> None:
        result[i] = x[i] + x[i]

    each(x.shape[0], step)


def flipped(x: Memory, result: Memory) -> None:
    def step(i: Scalar) -> None:
        result[i] = ~x[i]

    each(x.shape[0], step)


def increased(x: Memory, result: Memory) -> None:
    result[()] = x[()] + 1


def cumulative(x: Memory, sums: Memory, last: Memory, index_of_largest: Memory) -> None:
    def step(i: Scalar, total: Scalar, most: Scalar, place: Scalar) -> tuple[Scalar, ...]:
        total = total + x[i]
        sums[i] = total
        is_larger = x[i] > most
        return total, select(is_larger, x[i], most), select(is_larger, i, place)

    start = (x.constant(0.0), x.constant(-np.inf), index(0))
    total, _, place = loop(0, x.shape[0], start, step)
    last[()] = total
    index_of_largest[()] = to_integer(place, 32)


def strided(x: Memory, result: Memory) -> None:
    each(x.shape[0], lambda i: result.__setitem__(i, -1.0))

    def step(i: Scalar) -> None:
        result[i] = x[i]

    loop(1, x.shape[0], (), step, stride=3)


def newton_root(x: Memory, result: Memory) -> None:
    """Square roots: loops of unknown length, in a loop."""

    def root(i: Scalar) -> None:
        target = abs(x[i]) + 1.0
        start = maximum(target, 1.0), target.constant(0)

        def differs(guess: Scalar, passes: Scalar) -> Scalar:
            return (abs(guess * guess - target) > 1e-5 * maximum(target, 1.0)) & (passes < 60.0)

        def better(guess: Scalar, passes: Scalar) -> tuple[Scalar, Scalar]:
            return (guess + target / guess) * 0.5, passes + 1.0

        result[i] = repeat_while(start, differs, better)[0]

    each(x.shape[0], root)


def halvings(x: Memory, result: Memory) -> None:
    """One number that a loop carries."""
    result[()] = repeat_while(x[()], lambda n: n > 9, lambda n: n >> 1)


def signs(x: Memory, result: Memory) -> None:
    def step(i: Scalar) -> None:
        (number,) = branch(x[i] < 0.0, lambda: x.constant(-1.0), lambda: (sqrt(x[i]),), [x.element])
        result[i] = number
        branch(x[i] == 0.0, lambda: result.__setitem__(i, 5.0), lambda: None)

    each(x.shape[0], step)


def many_workspaces(x: Memory, result: Memory) -> None:
    """Memory of different types, in more pieces than the arrays that a kernel can bind."""
    spaces = [workspace((n,), integer(8) if n % 2 else x.element) for n in range(7, 47)]
    for number, space in enumerate(spaces):
        for i in range(7):
            space[i] = space.constant(number + i)

    def step(i: Scalar) -> None:
        total = x[i]
        for space in spaces:
            number = space[i]
            total = total + (number if number.is_float else to_float(number, x.element))
        result[i] = total

    each(x.shape[0], step)


def reversed_by_scratch(x: Memory, result: Memory) -> None:
    extent = x.shape[0]

    def step(i: Scalar) -> None:
        # In a loop, but only one piece of memory.
        own, truths = scratch((extent,), x), scratch((3,), ir.IntegerType.get_signless(1))
        truths[1] = x[i] > 0.0
        own[i] = select(truths[1], x[i], 0.0)
        result[extent - 1 - i] = own[i]

    each(extent, step)


def increase_in_place(addend: Memory, x: Memory) -> None:
    x[2] = x[2] + addend[()]


def negated_row(x: Memory, result: Memory) -> None:
    each(x.shape[0], lambda i: result.at(i).write(0, -x.at(i).read(0, 8)))


def parts(x: Memory, result: Memory) -> None:
    """Rows from 1 on, with the second one read; parts of parts."""
    assert x.rows(1, 3).shape == (3, 8)
    assert x.rows(1, 3).at(0).shape == (8,)
    assert x.at(2, 3).shape == ()
    each(5, lambda i: result.at(i).write(0, x.rows(1, 3).at(1).read(0, 8)))
    result[0, 0] = x.rows(1, 3).rows(1, 2)[1, 4]
    result[0, 1] = x.at(2, 3)[()]
    result.rows(3, 2)[1, 7] = 100.0


def shared_rows(workgroup: Scalar, x: Memory, result: Memory) -> None:
    first, end = rows_of(workgroup, x.shape[0], 3)

    def row(i: Scalar) -> None:
        result.at(i).write(0, x.at(i).read(0, 8) * (to_float(workgroup, float32()) + 1.0))

    loop(first, end, (), row)


def equal_shares(workgroup: Scalar, x: Memory, result: Memory) -> None:
    first, end = rows_of(workgroup, x.shape[0], 5)
    loop(first, end, (), lambda i: result.at(i).write(0, x.at(i).read(0, 8) + 1.0))


def vectors(x: Memory, result: Memory) -> None:
    """All operations on lanes, a row for each; `x` is `[5, 8]`."""
    row = x.at(1).read(0, 8)
    result.at(0).write(0, fused_multiply_add(row, 2.0 * row, broadcast(x[0, 0], 8)))
    result.at(1).write(0, to_float(to_integer(lanes(8), 32), float32()))
    result.at(2).write(0, broadcast(sum_of_lanes(row), 8))
    second = with_lane(
        with_lane(row, 2, x[4, 4]), to_index(to_integer(lane(lanes(8), 5), 64)), x[0, 0]
    )
    result.at(3).write(0, second)
    numbers = [largest_lane(row), smallest_lane(row), lane(row, 3), minimum(x[0, 1], 4.0)]
    for place, number in enumerate(numbers):
        result[4, place] = number
    result.at(4).write(4, x.at(3).read(3, 4))


def expected_vectors() -> np.ndarray:
    row = ROWS[1]
    third = row.copy()
    third[2], third[5] = ROWS[4, 4], ROWS[0, 0]
    last = [row.max(), row.min(), row[3], min(ROWS[0, 1], 4), *ROWS[3, 3:7]]
    return np.array(
        [row * 2 * row + ROWS[0, 0], np.arange(8), np.full(8, row.sum()), third, last], np.float32
    )


def masked(x: Memory, result: Memory) -> None:
    """Seven numbers in vectors of four; masked lanes are zero, or stay."""
    mask = first_lanes(4, 3)
    head, tail = x.read(0, 4), x.read(4, 4, mask=mask)
    result.write(0, exp(head * 0.0) + head)
    result.write(4, tail + 2.0, mask=mask)
    # The offset of lane i is i / 2; the last lane is not read, nor written.
    offsets = lanes(4) >> 1
    picked = x.gather(1, offsets, mask=mask)
    result.scatter(0, lanes(4) * 2, picked, mask=first_lanes(4, 2))


def expected_masked() -> np.ndarray:
    result = np.concatenate([NUMBERS[:4] + 1, NUMBERS[4:] + 2])
    result[[0, 2]] = NUMBERS[[1, 1]]
    return result


def gathered(x: Memory, offsets: Memory, result: Memory) -> None:
    picked = x.at(2).gather(0, offsets.read(0, 8))
    result.at(0).write(0, picked)
    result.scatter((1, 0), offsets.read(0, 8), picked)


def truth_vectors(x: Memory, result: Memory, either: Memory) -> None:
    truths = x.read(0, 8)
    result.write(0, ~truths)
    either[0] = any_lane(truths)
    either[1] = all_lanes(truths)
    either[2] = all_lanes(truths | ~truths)
    result.write(4, x.gather(0, lanes(4) + 2))


def lanes_of_halves(x: Memory, result: Memory) -> None:
    row = x.at(1).read(0, 8)
    for place, number in enumerate([sum_of_lanes(row), largest_lane(row), smallest_lane(row)]):
        result[place] = number


def dot(x: Memory, result: Memory) -> None:
    """Carries a vector: the sum of the squares of each column, added up."""
    zeros = broadcast(x.constant(0.0), 8)
    total = loop(
        0, 5, zeros, lambda i, s: fused_multiply_add(x.at(i).read(0, 8), x.at(i).read(0, 8), s)
    )
    result[()] = sum_of_lanes(total)


def unused_result(x: Memory, kept: Memory, _: Memory) -> None:
    doubled(x, kept)


OFFSETS = np.array([5, 0, 1, 7, 3, 2, 6, 4], np.int32)


def interleaved(x: Memory, result: Memory) -> None:
    """Lanes of two rows in turn, multiplied by one row and added to the other's quotient."""
    x.prefetch((1, 0))
    first, second = x.read((0, 0), 4), x.read((1, 0), 4)
    result.write((0, 0), shuffle(first, second, [0, 4, 1, 5, 2, 6, 3, 7]))
    result.write((1, 0), shuffle(multiply_add(first, second, first), second, [7, 0, 2, 1]))
    result.write((1, 4), first.constant(0))

    def step(i: Scalar) -> None:
        result[2, i] = to_float(i // 3, x.element)
        result[3, i] = to_float(i % 3, x.element)

    each(8, step)


def expected_interleaved() -> np.ndarray:
    first, second = ROWS[0, :4], ROWS[1, :4]
    result = np.zeros((4, 8), np.float32)
    result[0] = np.stack([first, second], 1).reshape(-1)
    products = first * second + first
    result[1, :4] = [second[3], *products[[0, 2, 1]]]
    result[2], result[3] = np.arange(8) // 3, np.arange(8) % 3
    return result


def with_results(kernel: Callable[..., None], *types: str) -> Callable[..., Any]:
    """Builds the dispatch of a kernel with results of these types."""
    return lambda *xs: dispatch(kernel, xs, [ir.Type.parse(f"tensor<{t}>") for t in types])


def in_place_of_sum(x: ir.Value, addend: ir.Value) -> Any:
    return dispatch(increase_in_place, [addend, hlo.add(x, x)], [x.type], in_place={0: 1})


def in_place_and_kept(x: ir.Value, addend: ir.Value) -> Any:
    own = hlo.add(x, x)
    changed = dispatch(increase_in_place, [addend, own], [x.type], in_place={0: 1})
    return [own, *changed, *dispatch(increase_in_place, [addend, own], [x.type], in_place={0: 1})]


def in_place_in_a_loop(numbers: ir.Value) -> ir.Value:
    """Counts in place, from the same counters in each pass; the last pass shows the result."""
    counters = hlo.constant(np.array([5, 6, 7], np.int32))

    def kernel(number: Memory, counters: Memory) -> None:
        place = to_index(number[()])
        counters[place] = counters[place] + 1

    def step(place: ir.Value, last: ir.Value) -> list[ir.Value]:
        number = hlo.reshape(hlo.dynamic_slice(numbers, [place], (1,)), ())
        (counted,) = dispatch(kernel, [number, counters], [counters.type], in_place={0: 1})
        return [hlo.add(place, hlo.constant(1, np.int32)), counted]

    def goes_on(place: ir.Value, last: ir.Value) -> ir.Value:
        return hlo.compare(place, hlo.constant(3, np.int32), "LT")

    return hlo.while_([hlo.constant(0, np.int32), counters], goes_on, step)[1]


# More than IREE binds to a kernel: numbers and rows of many dtypes, which begin anywhere.
MANY = [
    *(np.array(n + 0.5, np.float32) for n in range(20)),
    *(np.arange(n % 7 + 1).astype(d) for n, d in enumerate(DTYPES)),
    *(TRUTHS[:n] for n in range(1, 6)),
    *(np.arange(n, n + 9, dtype=np.float32) for n in range(8)),
    ROWS,
]


def with_many_results(*xs: ir.Value) -> list[ir.Value]:
    """Doubles arrays, flips truth values, and writes into the place of one."""
    added = hlo.add(xs[-1], xs[-1])

    def kernel(*memories: Memory) -> None:
        count = len(xs)
        *operands, last, place = memories[: count + 1]
        for x, result in zip(operands, reversed(memories[count + 1 :]), strict=True):
            if not x.shape:
                result[()] = x[()] + x[()]
            elif x.shape == (9,):
                result.write(1, x.read(1, 8) + x.read(1, 8))
                result[0] = x[0] + x[0]
            else:
                (flipped if x.element == integer(1) else doubled)(x, result)
        place[0, 0] = last[0, 1]

    kinds = [x.type for x in xs]
    return dispatch(
        kernel,
        [*xs, added],
        [kinds[-1], *reversed(kinds[:-1])],
        in_place={0: len(xs)},
    )


def with_hundreds(*xs: ir.Value) -> list[ir.Value]:
    """Adds its number to each of the operands."""

    def kernel(*memories: Memory) -> None:
        for number, x in enumerate(memories[: len(xs)]):
            memories[len(xs) + number][()] = x[()] + number

    return dispatch(kernel, xs, [x.type for x in xs])


def expected_many() -> list[np.ndarray]:
    last = 2 * ROWS
    last[0, 0] = ROWS[0, 1]
    return [last, *(~x if x.dtype == bool else (x + x).astype(x.dtype) for x in MANY[-2::-1])]


def scattered_rows() -> np.ndarray:
    result = np.zeros((2, 8), np.float32)
    result[0] = ROWS[2, OFFSETS]
    result[1, OFFSETS] = result[0]
    return result


def examples() -> list[Example]:
    found = [
        Example(f"doubled_{np.dtype(d).name}", [np.arange(5).astype(d)], like_operand(doubled),
                (2 * np.arange(5)).astype(d))
        for d in DTYPES
    ]  # fmt: skip
    large = np.array([200, 255, 128, 1], np.uint8)
    x = NUMBERS
    sums = np.cumsum(x)
    increased_third = 2 * x + np.float32(10) * (np.arange(7) == 2)
    return [
        *found,
        Example("wraps", [large], like_operand(doubled), large + large),
        Example("flipped", [TRUTHS], like_operand(flipped), ~TRUTHS),
        Example("rank_0", [np.float64(3)], like_operand(increased), np.float64(4)),
        Example("cumulative", [x], with_results(cumulative, "7xf32", "f32", "i32"),
                [sums, sums[-1], np.int32(5)]),
        Example("strided", [x], like_operand(strided),
                np.where(np.arange(7) % 3 == 1, x, np.float32(-1))),
        Example("newton_root", [x], like_operand(newton_root), np.sqrt(np.abs(x) + 1)),
        Example("halvings", [np.int32(1000)], like_operand(halvings), np.int32(7)),
        Example("signs", [x], like_operand(signs),
                np.where(x < 0, -1, np.where(x == 0, 5, np.sqrt(np.abs(x)))).astype(np.float32)),
        Example("workspaces", [x], like_operand(many_workspaces),
                x + 780 + 40 * np.arange(7, dtype=np.float32)),
        Example("scratch", [x], like_operand(reversed_by_scratch), np.maximum(x, 0)[::-1]),
        Example("in_place", [x, np.float32(10)], in_place_of_sum, increased_third),
        Example("in_place_and_kept", [x, np.float32(10)], in_place_and_kept,
                [2 * x, increased_third, increased_third]),
        Example("in_place_in_a_loop", [np.array([1, 0, 2], np.int32)], in_place_in_a_loop,
                np.array([5, 6, 8], np.int32)),
        Example("many_arrays", MANY, with_many_results, expected_many()),
        Example("hundreds_of_arrays", [np.float32(n) for n in range(300)], with_hundreds,
                [np.float32(2 * n) for n in range(300)]),
        Example("negated_row", [ROWS], like_operand(negated_row), -ROWS),
        Example("parts", [ROWS], like_operand(parts), expected_parts()),
        Example("shared_rows", [ROWS], like_operand(shared_rows, workgroups=3),
                ROWS * np.array([[1], [1], [2], [2], [3]], np.float32)),
        Example("equal_shares", [ROWS], like_operand(equal_shares, workgroups=5), ROWS + 1),
        Example("vectors", [ROWS], like_operand(vectors), expected_vectors()),
        Example("interleaved", [ROWS], with_results(interleaved, "4x8xf32"),
                expected_interleaved()),
        Example("masked", [x], like_operand(masked), expected_masked()),
        Example("gathered", [ROWS, OFFSETS], with_results(gathered, "2x8xf32"), scattered_rows()),
        Example("truth_vectors", [TRUTHS], with_results(truth_vectors, "8xi1", "3xi1"),
                [np.concatenate([~TRUTHS[:4], TRUTHS[2:6]]), np.array([True, False, True])]),
        *(
            Example(f"lanes_{short}", [ROWS.astype(d)], with_results(lanes_of_halves, f"3x{short}"),
                    np.array([ROWS[1].sum(), ROWS[1].max(), ROWS[1].min()], d))
            for d, short in ((np.float16, "f16"), (ml_dtypes.bfloat16, "bf16"))
        ),
        Example("dot", [ROWS], with_results(dot, "f32"), np.float32((ROWS ** 2).sum())),
        Example("unused_result", [x], lambda x: dispatch(
            unused_result, [x], [x.type, ir.Type.parse("tensor<100000xf64>")])[0], 2 * x),
    ]  # fmt: skip


def expected_parts() -> np.ndarray:
    result = np.tile(ROWS[2], (5, 1))
    result[0, 0], result[0, 1], result[4, 7] = ROWS[3, 4], ROWS[2, 3], 100
    return result


EXAMPLES = examples()


@pytest.fixture(scope="module")
def results() -> dict[str, Sequence[np.ndarray]]:
    return run_examples(EXAMPLES)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_values(results: dict[str, Sequence[np.ndarray]], example: Example) -> None:
    ulps = 100 if example.name == "newton_root" else 0
    assert not deviations(results[example.name], example, ulps=ulps, zero_signs=False)


def test_constant_positions_are_made_once() -> None:
    def kernel(x: Memory, result: Memory) -> None:
        for i in range(3):
            result[i] = x[i] + x[i]

    text = text_after(Example("f", [NUMBERS], like_operand(kernel), NUMBERS), "")
    body = text.partition("func.func @kernel_0")[2].partition("return")[0]
    assert body.count(" : index") == 3


def test_the_smallest_of_many_arrays_share_bindings() -> None:
    module = build({"f": (MANY, with_many_results)})
    [function] = re.findall(r"func.func @kernel_0\((.*?)\)", str(module))
    assert len(DTYPES) < function.count("!stream.binding") <= MOST_BINDINGS


def test_equal_kernels_are_one_executable() -> None:
    def function(x: ir.Value) -> list[ir.Value]:
        (first,) = dispatch(doubled, [x], [x.type])
        (second,) = dispatch(doubled, [first], [x.type])
        (third,) = dispatch(flipped, [second], [x.type])
        (fourth,) = dispatch(doubled, [third], [x.type], workgroups=None, name="other")
        return [fourth]

    text = str(build({"f": ([np.arange(3)], function)}))
    assert text.count("stream.executable private") == 3
    assert text.count("flow.dispatch @kernel_0::@kernel_0") == 2
    assert "@other_0" in text


def test_kernels_of_the_same_identity_are_built_once() -> None:
    built = []

    def kernel(x: Memory, result: Memory) -> None:
        built.append(x)
        doubled(x, result)

    def function(x: ir.Value, y: ir.Value) -> list[ir.Value]:
        same = [dispatch(kernel, [x], [x.type], identity="a")[0] for _ in range(3)]
        other = dispatch(kernel, [x], [x.type], identity="b")
        return [*same, *other, *dispatch(kernel, [y], [y.type], identity="a")]

    text = str(build({"f": ([np.arange(3), np.arange(4)], function)}))
    assert len(built) == text.count("stream.executable private") == 3


@pytest.mark.parametrize(("rows", "workgroups"), [(10, 4), (12, 4), (3, 5), (7, 2)])
def test_shares_of_rows_join_and_differ_by_one(rows: int, workgroups: int) -> None:
    shares = [rows_of(number, rows, workgroups) for number in range(workgroups)]  # type: ignore[arg-type]
    assert [first for first, _ in shares] == [0, *(int(end) for _, end in shares[:-1])]
    assert shares[-1][1] == rows
    sizes = [end - first for first, end in shares]  # type: ignore[operator]
    assert max(sizes) - min(sizes) <= 1

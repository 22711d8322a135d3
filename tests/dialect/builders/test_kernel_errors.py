"""Each mismatch in a kernel has a specific error while the kernel is built."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from iree.compiler import ir
from support.stablehlo_runner import build

from axir.dialect.builders.errors import (
    KernelArrayError,
    KernelCarryError,
    KernelError,
    KernelPositionError,
    KernelStackError,
    KernelTypeError,
    KernelVectorError,
)
from axir.dialect.builders.kernels import (
    STACK_BYTES,
    Memory,
    branch,
    dispatch,
    first_lanes,
    lane,
    lanes,
    loop,
    repeat_while,
    scratch,
    shuffle,
    sum_of_lanes,
    with_lane,
)
from axir.dialect.builders.scalars import (
    broadcast,
    float64,
    fused_multiply_add,
    integer,
    operation,
    to_integer,
)

X = np.zeros((4, 10), np.float32)


def stack_twice(x: Memory) -> None:
    scratch((STACK_BYTES // 8,), x)
    scratch((STACK_BYTES // 16 + 1,), float64())


def unknown_mistake(x: Memory) -> None:
    operation("math.fma", (x[0, 0], x[0, 0], constant_64(x)))


def constant_64(x: Memory) -> Any:
    return operation("arith.extf", (x[0, 0],), float64())


CASES: dict[str, tuple[type[KernelError], Callable[[Memory], Any], str, str]] = {
    "read of the wrong rank": (
        KernelPositionError,
        lambda x: x[1],
        r"A position of 1 indices in memory of rank 2, \(4, 10\)",
        "Give an index for each axis",
    ),
    "write of the wrong rank": (
        KernelPositionError,
        lambda x: x.__setitem__((1, 2, 3), 0.0),
        "A position of 3 indices in memory of rank 2",
        "`at` and `rows` return parts",
    ),
    "part of too many indices": (
        KernelPositionError,
        lambda x: x.at(1, 2, 3),
        "A position of 3 indices in memory of rank 2",
        "an index for each axis",
    ),
    "rows of an element": (
        KernelPositionError,
        lambda x: x.at(1, 2).rows(0, 1),
        r"A position of 1 indices in memory of rank 0, \(\)",
        "an index for each axis",
    ),
    "outside": (
        KernelPositionError,
        lambda x: x[4, 0],
        r"Index 4 lies outside of an axis of 4; the memory is \(4, 10\)",
        "run from 0 to 3",
    ),
    "before the start": (
        KernelPositionError,
        lambda x: x.at(-1),
        "Index -1 lies outside of an axis of 4",
        "run from 0 to 3",
    ),
    "position that is no index": (
        KernelPositionError,
        lambda x: x[to_integer(lane(lanes(2), 0), 32), 0],
        "of type i32 and not an index",
        "`to_index`",
    ),
    "end of a loop that is no index": (
        KernelPositionError,
        lambda x: loop(0, x[0, 0], (), lambda i: None),
        "of type f32 and not an index",
        "`to_index`",
    ),
    "number of another type": (
        KernelTypeError,
        lambda x: x.__setitem__((0, 0), constant_64(x)),
        "f64 does not fit into memory of f32",
        "`convert_float`",
    ),
    "vector as an element": (
        KernelTypeError,
        lambda x: x.__setitem__((0, 0), x.read((0, 0), 4)),
        "vector<4xf32> does not fit into memory of f32",
        "vectors are put there by `write`",
    ),
    "element as a vector": (
        KernelTypeError,
        lambda x: x.write((0, 0), x[0, 0]),
        "f32 is a single number where a vector is needed",
        "`broadcast`",
    ),
    "vector of another type": (
        KernelTypeError,
        lambda x: x.write((0, 0), lanes(4)),
        "vector<4xindex> does not fit into memory of f32",
        "Convert it",
    ),
    "mask of another width": (
        KernelTypeError,
        lambda x: x.read((0, 0), 4, mask=first_lanes(8, 3)),
        "vector<8xi1> goes with a vector of 4: it must be a vector of 4 i1",
        "`first_lanes`",
    ),
    "offsets of another width": (
        KernelTypeError,
        lambda x: x.scatter((0, 0), lanes(8), x.read((0, 0), 4)),
        "vector<8xindex> goes with a vector of 4",
        "`first_lanes`",
    ),
    "sum of different types": (
        KernelTypeError,
        lambda x: x[0, 0] + constant_64(x),
        "Numbers of different types meet: f32 and f64",
        "Convert them",
    ),
    "comparison of different types": (
        KernelTypeError,
        lambda x: x[0, 0] < constant_64(x),
        "f32 and f64",
        "Convert them",
    ),
    "choice of different types": (
        KernelTypeError,
        lambda x: (x[0, 0] < 0.0).choose(x[0, 0], constant_64(x)),
        "f32 and f64",
        "Convert them",
    ),
    "product of different widths": (
        KernelTypeError,
        lambda x: fused_multiply_add(x.read((0, 0), 4), x.read((0, 0), 8), x[0, 0]),
        r"vector<4xf32> and vector<8xf32> and f32",
        "Convert them",
    ),
    "lanes of a number": (
        KernelTypeError,
        lambda x: sum_of_lanes(x[0, 0]),
        "f32 is a single number and has no lanes",
        "`broadcast`",
    ),
    "lane that is not there": (
        KernelPositionError,
        lambda x: lane(broadcast(x[0, 0], 4), 4),
        "Lane 4 of a vector of 4",
        "run from 0 to 3",
    ),
    "lane of another type": (
        KernelTypeError,
        lambda x: with_lane(broadcast(x[0, 0], 4), 1, constant_64(x)),
        "f64 does not fit into a lane of vector<4xf32>",
        "Convert it to f32",
    ),
    "lanes that are not there": (
        KernelTypeError,
        lambda x: shuffle(broadcast(x[0, 0], 2), broadcast(x[0, 0], 2), [0, 4]),
        r"Lanes \[0, 4\] of vector<2xf32> and vector<2xf32>",
        "have lanes from 0 to 3",
    ),
    "width that is no power of two": (
        KernelVectorError,
        lambda x: x.read((0, 0), 6),
        "A vector of 6 is no register: 6 is not a power of two",
        "with a mask",
    ),
    "no width": (
        KernelVectorError,
        lambda x: x.read((0, 0), 0),
        "A vector of 0 is no register",
        "power of two",
    ),
    "vector wider than a row": (
        KernelVectorError,
        lambda x: x.read((0, 0), 16),
        "A vector of 16 from 0 on reaches over the end of a row of 10",
        "`first_lanes`",
    ),
    "vector over the end": (
        KernelVectorError,
        lambda x: x.write((0, 7), x.read((0, 0), 4)),
        "A vector of 4 from 7 on reaches over the end of a row of 10",
        "a narrower one",
    ),
    "vector without a row": (
        KernelVectorError,
        lambda x: x.at(0, 0).read((), 1),
        "A vector where memory has no axes",
        r"`t\[\(\)\]`",
    ),
    "stack": (
        KernelStackError,
        stack_twice,
        f"A kernel wants {STACK_BYTES + 64} bytes on the stack, where {STACK_BYTES} are; "
        rf"{STACK_BYTES // 2 + 8} of them for \({STACK_BYTES // 16 + 1},\) of f64",
        "Take large memory from a `workspace`",
    ),
    "stride": (
        KernelCarryError,
        lambda x: loop(9, 0, (), lambda i: None, stride=-1),
        "A loop goes on by -1, so that it would never end",
        "count down in the body",
    ),
    "wrong type through a loop": (
        KernelCarryError,
        lambda x: loop(0, 4, x[0, 0], lambda i, s: to_integer(i, 32)),
        r"The step of a loop returns \(i32\), and must return \(f32\)",
        "as many numbers of the same types",
    ),
    "too few through a loop": (
        KernelCarryError,
        lambda x: loop(0, 4, (x[0, 0], x[0, 1]), lambda i, s, t: s),
        r"returns \(f32\), and must return \(f32, f32\)",
        "as many numbers",
    ),
    "Python's number through a loop": (
        KernelCarryError,
        lambda x: loop(0, 4, x[0, 0], lambda i, s: 1.0),
        r"returns \(1.0\), and must return \(f32\)",
        r"`x.constant\(1\)`",
    ),
    "wrong type through a while": (
        KernelCarryError,
        lambda x: repeat_while(x[0, 0], lambda s: s > 0.0, lambda s: s > 0.0),
        r"The step of a loop returns \(i1\), and must return \(f32\)",
        "as many numbers",
    ),
    "condition that is no truth": (
        KernelCarryError,
        lambda x: repeat_while(x[0, 0], lambda s: s, lambda s: s),
        "The condition of a loop is f32 and not a truth value",
        "Compare numbers",
    ),
    "condition of lanes": (
        KernelCarryError,
        lambda x: branch(first_lanes(4, 2), lambda: None, lambda: None),
        "The condition of a branch is vector<4xi1> and not a truth value",
        "`any_lane`",
    ),
    "wrong type of a branch": (
        KernelCarryError,
        lambda x: branch(
            x[0, 0] > 0.0, lambda: x[0, 0], lambda: constant_64(x), [x.element]
        ),
        r"A branch returns \(f64\), and must return \(f32\)",
        "as many numbers",
    ),
    "what the builders do not check": (
        KernelError,
        unknown_mistake,
        "A kernel is not valid: .*math.fma.*same type",
        "operands of types that do not fit",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_in_a_kernel(name: str) -> None:
    kind, mistake, message, way_out = CASES[name]
    kernel = lambda x, result: mistake(x)  # noqa: E731
    seen = []

    def function(x: ir.Value) -> list[ir.Value]:
        with pytest.raises(kind, match=f"(?s){message}.*{way_out}") as caught:
            dispatch(kernel, [x], [x.type])
        seen.append(caught.value)
        return [x]

    text = str(build({"f": ([X], function)}))
    assert type(seen[0]) is kind
    assert "stream.executable" not in text  # nothing is left of it


def test_an_error_names_the_line_of_the_kernel() -> None:
    def kernel(x: Memory, result: Memory) -> None:
        loop(0, 4, (), lambda i: x[i])

    def function(x: ir.Value) -> list[ir.Value]:
        with pytest.raises(KernelPositionError) as caught:
            dispatch(kernel, [x], [x.type])
        assert caught.value.where.startswith(f"{__file__}:")
        assert caught.value.where.endswith("in <lambda>")
        return [x]

    build({"f": ([X], function)})


@pytest.mark.parametrize(
    ("operands", "result", "in_place", "message"),
    [
        (["0x3xf32"], "3xf32", {}, "Array 0 of the operands of a kernel is empty: tensor<0x3xf32>"),
        (["3xf32"], "0xf32", {}, "Array 0 of the results of a kernel is empty: tensor<0xf32>"),
        (["f32", "2xcomplex<f32>"], "f32", {}, "Array 1 of the operands of a kernel is complex"),
        (["2xf32"], "2xcomplex<f64>", {}, "Array 0 of the results of a kernel is complex"),
        (["3xf32"], "4xf32", {0: 0}, "Result 0 of a kernel cannot take the place of operand 0"),
        (["3xf32"], "3xf32", {0: 1}, r"results are \(tensor<3xf32>\), the operands \(tensor<3xf3"),
        (["3xf32"], "3xf32", {1: 0}, "Result 1 of a kernel cannot take the place of operand 0"),
    ],
)  # fmt: skip
def test_arrays_that_a_kernel_does_not_take(
    operands: list[str], result: str, in_place: dict[int, int], message: str
) -> None:
    def function(*xs: ir.Value) -> list[ir.Value]:
        kind = ir.Type.parse(f"tensor<{result}>")
        with pytest.raises(KernelArrayError, match=message):
            dispatch(lambda *_: None, xs, [kind], in_place=in_place)
        return list(xs)

    build({"f": (operands, function)})


def test_integers_of_any_width_have_room_on_the_stack() -> None:
    def kernel(x: Memory, result: Memory) -> None:
        scratch((STACK_BYTES,), integer(1))

    build({"f": ([X], lambda x: dispatch(kernel, [x], [x.type]))})
    with pytest.raises(KernelStackError):
        build({"f": ([X], lambda x: dispatch(twice(kernel), [x], [x.type]))})


def twice(kernel: Callable[..., None]) -> Callable[..., None]:
    def both(*arrays: Memory) -> None:
        kernel(*arrays)
        kernel(*arrays)

    return both

"""`loop-over-windows` and `unfold-windows`: window reductions that share no arrays."""

from __future__ import annotations

import numpy as np
import pytest
from support.stablehlo_runner import Example, build, deviations, run_examples

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.pipeline import run_passes
from axir.runtime import CompileError, Target, compile_module
from axir.runtime.errors import WrongMemoryOrderError

X = np.array([[4, 2, 3, 6], [1, 5, 5, 2], [3, 3, 2, 1]], np.float32)
Y = X[::-1] + 1
PIPELINE = "pad-windows,split-complex-pad,sign-unsigned-data,loop-over-windows"


def total(x, sizes, combine=hlo.add, start=0, **options):
    """A window reduction of one array."""
    init = hlo.full(start, (), hlo.element_type_of(x))
    return hlo.reduce_window([x], [init], sizes, lambda a, b: [combine(a, b)], **options)[0]


def sums(*arrays):
    return [total(x, (1, 2)) for x in arrays]


SUMS = [x[:, 1:] + x[:, :-1] for x in (X, Y)]


# One array --------------------------------------------------------------------------------------


def windows_of(x, sizes, combine, start, **options) -> Example:
    """An example of a window reduction, with the result of a loop over all windows."""
    low, high = options.get("padding", [(0, 0), (0, 0)])
    strides = options.get("window_strides", (1, 1))
    dilations = options.get("window_dilations", (1, 1))
    base = options.get("base_dilations", (1, 1))
    spread = np.full([(n - 1) * b + 1 for n, b in zip(x.shape, base, strict=True)], start, x.dtype)
    spread[:: base[0], :: base[1]] = x
    padded = np.pad(spread, (low, high), constant_values=start)
    reach = [(size - 1) * by + 1 for size, by in zip(sizes, dilations, strict=True)]
    counts = [(n - r) // by + 1 for n, r, by in zip(padded.shape, reach, strides, strict=True)]
    expected = np.empty(counts, x.dtype)
    for i, j in np.ndindex(*counts):
        rows = slice(i * strides[0], i * strides[0] + reach[0], dilations[0])
        columns = slice(j * strides[1], j * strides[1] + reach[1], dilations[1])
        expected[i, j] = combine.reduce(padded[rows, columns], axis=None, initial=start)
    name = f"{combine.__name__}_{x.dtype}_{sizes}_{options}"
    build_it = {np.add: hlo.add, np.maximum: hlo.maximum, np.multiply: hlo.multiply}[combine]
    return Example(
        "".join(c if c.isalnum() else "_" for c in name),
        (x,),
        lambda x: [total(x, sizes, build_it, start, **options)],
        [expected],
    )


SINGLE = [
    windows_of(X, (1, 2), np.add, 0),
    windows_of(X, (2, 2), np.maximum, -9, window_strides=(1, 2)),
    windows_of(X, (2, 1), np.multiply, 1, padding=[(0, 1), (2, 0)]),
    windows_of(X, (2, 2), np.add, 3, window_dilations=(2, 1), base_dilations=(1, 2)),
    windows_of(X, (1, 1), np.add, 1, window_strides=(2, 3)),
    windows_of(X.astype(np.float64), (3, 4), np.add, 0),
    windows_of(X.astype(np.uint8) + np.uint8(250), (2, 2), np.maximum, 0),
    windows_of((X + 1j * X[::-1]).astype(np.complex64), (2, 2), np.add, 0),
    windows_of((X + 1j * X[::-1]).astype(np.complex64), (1, 2), np.multiply, 1),
]


def test_windows_of_one_array() -> None:
    results = run_examples(SINGLE, PIPELINE)
    assert [(e.name, d) for e in SINGLE for d in deviations(results[e.name], e)] == []


# Several reductions that are equal but for their operands ---------------------------------------


def stored_sums(*arrays):
    return [hlo.optimization_barrier(x)[0] for x in sums(*arrays)]


def padded(x, low=(0, 0), high=(0, 1)):
    return hlo.pad(x, hlo.full(0, (), np.float32), low, high, (0,) * len(low))


def padded_sums(*arrays):
    return [padded(x) for x in sums(*arrays)]


def cut_and_padded_sums(*arrays):
    return [padded(x, (-1, 0), (0, -1)) for x in sums(*arrays)]


def padded_views(*arrays):
    views = [hlo.broadcast_in_dim(hlo.reshape(x, (9,)), (2, 9), (1,)) for x in sums(*arrays)]
    return [padded(x) for x in views]


def summed_again(*arrays):
    return [total(x, (2, 1), padding=[(0, 1), (0, 0)]) for x in sums(*arrays)]


def one_padded(x, y):
    first, second = sums(x, y)
    return [padded(first), second]


EQUAL = {
    sums: SUMS,
    stored_sums: SUMS,
    padded_sums: [np.pad(x, ((0, 0), (0, 1))) for x in SUMS],
    cut_and_padded_sums: [x[1:, :-1] for x in SUMS],
    padded_views: [np.pad(np.tile(x.ravel(), (2, 1)), ((0, 0), (0, 1))) for x in SUMS],
    summed_again: [x + np.pad(x[1:], ((0, 1), (0, 0))) for x in SUMS],
    one_padded: [np.pad(SUMS[0], ((0, 0), (0, 1))), SUMS[1]],
}
TOGETHER = [Example(f.__name__, (X, Y), f, expected) for f, expected in EQUAL.items()]


def test_equal_reductions_have_results_of_their_own() -> None:
    results = run_examples(TOGETHER, PIPELINE)
    assert [(e.name, d) for e in TOGETHER for d in deviations(results[e.name], e)] == []


def test_without_the_pass_padded_ones_do_not_compile() -> None:
    module = build({"f": ((X, Y), padded_sums)})
    with pytest.raises(CompileError, match="workgroup distribut"):
        compile_module(module.operation.get_asm(), Target(), "f")


# Several arrays ---------------------------------------------------------------------------------


def largest(x, other, sizes=(1, 2), **options):
    """The largest element of each window of `x`, and the other array's element at its place."""

    def pick(value, companion, new_value, new_companion):
        is_larger = hlo.compare(value, new_value, "GE")
        return [
            hlo.select(is_larger, value, new_value),
            hlo.select(is_larger, companion, new_companion),
        ]

    zeros = [hlo.full(0, (), hlo.element_type_of(a)) for a in (x, other)]
    return hlo.reduce_window([x, other], zeros, sizes, pick, **options)


def expected(other, rows, columns):
    """The same for windows with elements at these rows and columns."""
    places = np.array([[X[r, c].argmax() for c in columns] for r in rows])
    lines = list(zip(rows, places, strict=True))
    return [
        np.array(
            [[a[r, c][place] for c, place in zip(columns, line, strict=True)] for r, line in lines]
        )
        for a in (X, other)
    ]


def example(name, other, sizes, rows, columns, **options) -> Example:
    wanted = expected(other, rows, columns)
    return Example(name, (X, other), lambda x, y: largest(x, y, sizes, **options), wanted)


def companions(x, *others):
    """The elements of the other arrays where `x` is largest."""
    return [largest(x, other)[1] for other in others]


PAIRS = [[0, 1], [1, 2], [2, 3]]
Z = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
WIDE = np.arange(40, dtype=np.float32).reshape(1, 40)
SEVERAL = [
    example("columns", Z, (1, 2), range(3), PAIRS),
    example("integers", Z.astype(np.int32), (1, 2), range(3), PAIRS),
    example("bytes", (Z + 5).astype(np.uint8), (1, 2), range(3), PAIRS),
    example("strided", Z, (1, 2), range(3), [[0, 1], [2, 3]], window_strides=(1, 2)),
    example("dilated", Z, (1, 2), range(3), [[0, 2], [1, 3]], window_dilations=(1, 2)),
    example("padded", Z, (1, 2), range(3), [[0], *PAIRS], padding=[(0, 0), (1, 0)]),
    example("cut", Z, (1, 2), [1, 2], PAIRS, padding=[(-1, 0), (0, 0)]),
    Example(
        "wide",
        (WIDE, 2 * WIDE),
        lambda x, y: largest(x, y, (1, 40)),
        [WIDE[:, -1:], 2 * WIDE[:, -1:]],
    ),
    Example(
        "unused",
        (X, Z, Z.astype(np.int32), Z * Z),
        companions,
        [expected(a, range(3), PAIRS)[1] for a in (Z, Z.astype(np.int32), Z * Z)],
    ),
]


@pytest.mark.parametrize("pipeline", [PIPELINE, "unfold-windows,sign-unsigned-data"])
def test_windows_of_several_arrays(pipeline: str) -> None:
    examples = SEVERAL if pipeline == PIPELINE else SEVERAL[:-2]
    results = run_examples(examples, pipeline)
    assert [(e.name, d) for e in examples for d in deviations(results[e.name], e)] == []


@pytest.mark.makes_wrong_programs
def test_without_the_pass_two_with_unused_results_are_refused() -> None:
    module = build({"f": ((X, Z, Z * Z), companions)})
    with pytest.raises(WrongMemoryOrderError, match="f_dispatch_1_reduction"):
        compile_module(module.operation.get_asm(), Target(), "f")


# Unchanged reductions ---------------------------------------------------------------------------


def running(x):
    return [total(x, (1, 4), padding=[(0, 0), (3, 0)])]


def of_nothing(x):
    return [total(hlo.slice(x, (0, 0), (0, 4), (1, 1)), (1, 2))]


@pytest.mark.parametrize("builder", [running, of_nothing])
def test_running_and_empty_ones_stay(builder) -> None:
    module = build({"f": ((X,), builder)})
    run_passes(module, PIPELINE)
    assert "stablehlo.reduce_window" in str(module)


def test_wide_windows_are_not_unfolded() -> None:
    wide = SEVERAL[-2]
    module = build({"wide": (wide.arguments, wide.builder)})
    before = str(module)
    run_passes(module, "unfold-windows")
    assert str(module) == before

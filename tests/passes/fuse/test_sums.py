"""`fuse-long-sums`, `fuse-sums` and `fuse-small-sums`: sums as kernels of one thread or several."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from support.stablehlo_runner import Example, build, run_examples

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.pipeline import run_passes

RNG = np.random.default_rng(0)
PASSES = "fuse-long-sums{elements=1024},fuse-small-sums,fuse-sums"
NUMPY = {"add": np.sum, "multiply": np.prod, "maximum": np.max, "minimum": np.min}
NEUTRAL = {"add": 0, "multiply": 1, "maximum": -np.inf, "minimum": np.inf}


def numbers(*shape: int, dtype=np.float32):
    """Small integers, with equal sums for every order of additions."""
    return RNG.integers(-3, 4, shape).astype(dtype)


def reduced(x, axes, kind="add", init=None):
    start = hlo.full(NEUTRAL[kind] if init is None else init, (), hlo.element_type_of(x))
    return hlo.reduce([x], [start], axes, getattr(hlo, kind))[0]


def plain(name, array, axes, kind="add", init=None):
    expected = NUMPY[kind](array.astype(np.float64), axis=tuple(axes))
    expected = expected if init is None else expected + init
    builder = lambda x: reduced(x, axes, kind, init)  # noqa: E731
    return Example(name, (array,), builder, expected.astype(array.dtype))


def spread(x, shape, dims):
    return hlo.broadcast_in_dim(x, shape, dims)


X, POINTS = numbers(20_011), numbers(9_001, 3)
MEAN = numbers(3)
LONG = [
    plain("line", X, (0,)),
    plain("line_of_whole_rows", numbers(1 << 15), (0,)),
    plain("from_five", X, (0,), init=5),
    plain("largest", X, (0,), "maximum"),
    plain("smallest", X, (0,), "minimum"),
    plain("double", numbers(20_011, dtype=np.float64), (0,)),
    plain("two_lines", numbers(2, 9_001), (1,)),
    plain("points", POINTS, (0,)),
    plain("points_from_five", POINTS, (0,), init=5),
    plain("middle", numbers(2, 3_001, 5), (1,)),
    plain("image", numbers(3, 61, 67, 3), (1, 2)),
    Example(
        "squares",
        (X,),
        lambda x: reduced(hlo.multiply(x, x), (0,)),
        (X.astype(np.float64) ** 2).sum().astype(np.float32),
    ),
    Example(
        "centered",
        (POINTS, MEAN),
        lambda x, m: reduced(hlo.subtract(x, spread(m, (9_001, 3), [1])), (0,)),
        (POINTS - MEAN).sum(0),
    ),
    Example(
        "by_a_number",
        (X, np.float32(2)),
        lambda x, n: reduced(hlo.multiply(x, spread(n, (20_011,), [])), (0,)),
        2 * X.sum(),
    ),
    Example(
        "in_another_shape",
        (X[:20_000],),
        lambda x: reduced(hlo.reshape(hlo.negate(x), (100, 200)), (0, 1)),
        -X[:20_000].sum(),
    ),
]
SHARED = [
    plain("rows", numbers(40, 700), (1,)),
    plain("long_rows", numbers(5, 5_003), (1,)),
    plain("columns", numbers(7, 6_007), (0,)),
    plain("few_columns", numbers(40, 100, 7), (1,)),
    plain("one_row_of_columns", numbers(1, 300, 7), (1,)),
    plain("short_rows", numbers(2_005, 3), (1,)),
    plain("rows_of_seven", numbers(1_003, 7), (1,)),
    plain("rows_of_seven_from_five", numbers(1_003, 7), (1,), init=5),
    plain("apart", numbers(11, 40, 13), (0, 2)),
    plain("products", np.sign(numbers(64, 50)) * 1, (1,), "multiply"),
    Example(
        "counted",
        (x := numbers(60, 50),),
        lambda x: reduced(hlo.multiply(x, hlo.iota((60, 50), 1, x.type.element_type)), (1,)),
        (x * np.arange(50)).sum(1),
    ),
    Example(
        "half",
        (x := numbers(30, 40, dtype=ml_dtypes.bfloat16),),
        lambda x: reduced(hlo.convert(x, np.float32), (1,)),
        x.astype(np.float32).sum(1),
    ),
]
OTHERS = [
    Example(
        "whole_numbers",
        (x := RNG.integers(-9, 9, 20_011).astype(np.int32),),
        lambda x: reduced(x, (0,), init=0),
        x.sum(dtype=np.int32),
    ),
    Example(
        "any",
        (np.arange(20_011) == 20_010,),
        lambda x: hlo.reduce([x], [hlo.full(False, (), x.type.element_type)], (0,), hlo.or_)[0],
        True,
    ),
    Example(
        "complex",
        (x := (numbers(700, 3) + 1j * numbers(700, 3)).astype(np.complex64),),
        lambda x: reduced(x, (0,)),
        x.sum(0),
    ),
]


@pytest.fixture(scope="module")
def results():
    return run_examples([*LONG, *SHARED, *OTHERS], PASSES)


@pytest.mark.parametrize("case", [*LONG, *SHARED, *OTHERS], ids=lambda case: case.name)
def test_values(results, case: Example) -> None:
    np.testing.assert_array_equal(results[case.name][0], case.expected)


def text_after(case: Example, passes: str) -> str:
    module = build({case.name: (case.arguments, case.builder)})
    run_passes(module, passes)
    text = str(module)
    return text[text.index("func.func @") :]


@pytest.mark.parametrize("case", LONG, ids=lambda case: case.name)
def test_long_sums_have_two_steps(case: Example) -> None:
    text = text_after(case, "fuse-long-sums{elements=1024}")
    assert "flow.dispatch @sum_parts_0" in text
    assert text.count("stablehlo.reduce(") == 1


@pytest.mark.parametrize("name", ["squares", "centered", "in_another_shape"])
def test_what_is_computed_for_a_sum_is_in_its_kernel(name: str) -> None:
    [case] = [x for x in LONG if x.name == name]
    text = text_after(case, "fuse-long-sums{elements=1024}")
    assert not any(f"stablehlo.{x}" in text for x in ("multiply", "subtract", "negate"))


@pytest.mark.parametrize("case", SHARED, ids=lambda case: case.name)
def test_other_sums_are_one_kernel(case: Example) -> None:
    text = text_after(case, "fuse-long-sums{elements=1024},fuse-sums")
    assert "flow.dispatch @sum_0" in text
    assert "stablehlo.reduce(" not in text


def test_what_others_read_is_computed_once() -> None:
    def both(x):
        y = hlo.exponential(x)
        return [reduced(y, (0,)), y]

    case = Example("both", (X,), both, [X, X])
    text = text_after(case, "fuse-long-sums{elements=1024}")
    assert text.count("stablehlo.exponential") == 1


def test_sums_of_complex_numbers_stay() -> None:
    [case] = [x for x in OTHERS if x.name == "complex"]
    assert "stablehlo.reduce(" in text_after(case, PASSES)


def test_small_sums_of_a_large_group_are_kernels_piece_by_piece() -> None:
    count = 80

    def chain(x):
        for _ in range(count):
            x = hlo.dot_general(x, hlo.tanh(x), ((1,), (0,)))
        return x

    square = np.eye(12, dtype=np.float32)
    text = text_after(Example("chain", (square,), chain, square), "fuse-small-sums")
    kernels = text.count("flow.dispatch @program_")
    assert 1 < kernels < count
    assert "stablehlo.dot_general" not in text


def test_a_small_sum_of_many_arrays_runs() -> None:
    arrays = [numbers(3, 4) for _ in range(25)]

    def sums(*xs):
        total = xs[0]
        for x in xs[1:]:
            total = hlo.add(total, x)
        return [reduced(hlo.multiply(total, x), (0,)) for x in xs]

    total = np.sum(arrays, 0)
    case = Example("many", arrays, sums, [(total * x).sum(0) for x in arrays])
    assert "flow.dispatch @program_0" in text_after(case, "fuse-small-sums")
    # IREE has room for 32 arrays.
    for made, want in zip(
        run_examples([case], "fuse-small-sums")["many"], case.expected, strict=True
    ):
        np.testing.assert_array_equal(made, want)


TENTHS = [
    plain("tenths", np.full(1_000_003, 0.1, np.float32), (0,)),
    plain("columns_of_tenths", np.full((300_001, 3), 0.1, np.float32), (0,)),
    plain("rows_of_tenths", np.full((4, 300_001), 0.1, np.float32), (1,)),
    plain("few_columns_of_tenths", np.full((20, 30_001, 7), 0.1, np.float32), (1,)),
]


FEW_FOR_MANY = [
    plain("two_rows_of_five", numbers(2, 110_000, 5), (1,)),
    plain("one_row_of_five", numbers(1, 210_000, 5), (1,)),
    plain("three_rows_of_nothing_but_seven", numbers(3, 60_000, 7), (1,)),
    plain("few_long_columns", numbers(70_000, 17), (0,)),
    plain("two_long_rows", numbers(2, 600_000), (1,)),
]


def test_workgroups_without_a_share_do_nothing() -> None:
    made = run_examples(FEW_FOR_MANY, "fuse-sums")
    for case in FEW_FOR_MANY:
        np.testing.assert_array_equal(made[case.name][0], case.expected, err_msg=case.name)


def test_long_sums_keep_their_digits() -> None:
    made = run_examples(TENTHS, "fuse-long-sums,fuse-sums")
    for case in TENTHS:
        np.testing.assert_allclose(made[case.name][0], case.expected, rtol=4e-6)

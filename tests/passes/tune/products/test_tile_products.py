"""`tile-products`."""

from __future__ import annotations

import itertools
import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.stablehlo_runner import Example, build, run_examples, text_after

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.pipeline import run_passes
from axir.runtime.compiler.architectures import host_architecture, multiplies_bytes

RNG = np.random.default_rng(0)
HAS_BYTES = multiplies_bytes("host", host_architecture())
KERNEL = "flow.dispatch @matrix_product"
ROWS, COLUMNS, TALL = ((1,), (0,)), ((1,), (1,)), ((0,), (0,))


def tiled(bits: int, products: int = 1) -> str:
    has_bytes = bits == 512 and HAS_BYTES
    options = f"vector_bits={bits},products={products},byte_products={has_bytes}".lower()
    return f"fill-empty-dot,tile-products{{{options}}}"


def integers(shape, dtype="f4", most=4):
    return RNG.integers(-most, most, size=shape, endpoint=most < 128).astype(dtype)


def contracted(lhs, rhs, contracting, batch=((), ())):
    """The contraction in f64, by NumPy."""
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    names = ([next(letters) for _ in lhs.shape], [next(letters) for _ in rhs.shape])
    for pairs in (contracting, batch):
        for left, right in zip(*pairs, strict=True):
            names[1][right] = names[0][left]
    kept = [names[0][axis] for axis in batch[0]]
    for side in range(2):
        used = {*contracting[side], *batch[side]}
        kept += [name for axis, name in enumerate(names[side]) if axis not in used]
    text = f"{''.join(names[0])},{''.join(names[1])}->{''.join(kept)}"
    return np.einsum(text, lhs.astype("f8"), rhs.astype("f8"))


def product(name, lhs, rhs, contracting=ROWS, batch=((), ()), dtype="f4", result=None) -> Example:
    most = {"i1": 128, "i2": 9000}.get(dtype, 4) if result else 4
    left, right = integers(lhs, dtype, most), integers(rhs, dtype, most)
    expected = contracted(left, right, contracting, batch).astype(result or dtype)
    return Example(
        name,
        (left, right),
        lambda x, y: hlo.dot_general(x, y, contracting, batch, element=expected.dtype),
        expected,
    )


def bytes_and_pairs() -> Example:
    left, right = integers((5, 70), "i1", 128), integers((70, 9), "i2", 9000)
    return Example(
        "bytes_and_pairs",
        (left, right),
        lambda x, y: hlo.dot_general(x, y, ROWS, ((), ()), element=np.dtype("i4")),
        left.astype("i4") @ right.astype("i4"),
    )


CASES = [
    product("square", (64, 64), (64, 64)),
    product("odd", (65, 33), (33, 47)),
    product("rhs_in_columns", (65, 33), (47, 33), COLUMNS),
    product("lhs_in_columns", (33, 65), (33, 47), TALL),
    product("both_in_columns", (33, 65), (47, 33), ((0,), (1,))),
    product("deep", (37, 1003), (1003, 70)),
    product("deep_in_columns", (37, 1003), (70, 1003), COLUMNS),
    product("in_parts", (70_001, 3), (70_001, 4), TALL),
    product("in_parts_of_a_batch", (2, 5, 40_003), (2, 40_003, 6), ((2,), (1,)), ((0,), (0,))),
    product("blocks", (300, 523), (523, 301)),
    product("tiny", (2, 3), (3, 2)),
    product("one_product_each", (5, 1), (1, 6)),
    product("few_columns", (128, 50), (50, 10)),
    product("few_rows", (3, 70), (70, 130)),
    product("batch", (5, 17, 9), (5, 9, 21), ((2,), (1,)), ((0,), (0,))),
    product("batch_between", (17, 4, 9), (21, 4, 9), ((2,), (2,)), ((1,), (1,))),
    product("batch_last", (17, 9, 4), (9, 21, 4), ((1,), (0,)), ((2,), (2,))),
    product("several_axes", (8, 6, 6, 5), (8, 6, 6, 7), ((0, 1, 2), (0, 1, 2))),
    product("mixed_axes", (8, 6, 5, 6), (6, 8, 6, 7), ((3, 0), (2, 1))),
    product("two_batches", (2, 5, 3, 4), (3, 4, 2, 6), ((3,), (1,)), ((2, 0), (0, 2))),
    product("axes_of_one", (1, 9, 1, 8), (8, 1, 11), ((3,), (0,))),
    product("double", (65, 333), (333, 47), dtype="f8"),
    product("double_in_columns", (65, 333), (47, 333), COLUMNS, dtype="f8"),
    product("half", (65, 33), (33, 47), dtype="f2"),
    product("bfloat", (33, 20), (20, 40), dtype=ml_dtypes.bfloat16, result="f4"),
    product("widened", (33, 20), (20, 40), result="f8"),
    product("bytes", (33, 20), (47, 20), COLUMNS, dtype="i1", result="i4"),
    Example(
        "largest_bytes",
        (np.full((4, 1024), -128, "i1"), np.full((1024, 9), -128, "i1")),
        lambda x, y: hlo.dot_general(x, y, ROWS, ((), ()), element=np.dtype("i4")),
        np.full((4, 9), 1 << 24, "i4"),
    ),
    product("more_bytes", (3, 1025), (1025, 2), dtype="i1", result="i4"),
    product("bytes_in_blocks", (61, 523), (523, 301), dtype="i1", result="i4"),
    product(
        "bytes_of_two_axes", (3, 5, 205), (205, 5, 2), ((1, 2), (1, 0)), dtype="i1", result="i4"
    ),
    product("pairs", (33, 21), (21, 47), dtype="i2", result="i4"),
    product("pairs_in_columns", (33, 21), (47, 21), COLUMNS, dtype="i2", result="i4"),
    product("bytes_to_long", (9, 70), (70, 8), dtype="i1", result="i8"),
    bytes_and_pairs(),
    Example(
        "sums_that_wrap",
        (np.full((4, 140_000), -128, "i1"), np.full((140_000, 5), -128, "i1")),
        lambda x, y: hlo.dot_general(x, y, ROWS, ((), ()), element=np.dtype("i4")),
        np.full((4, 5), (140_000 << 14) - (1 << 32), "i4"),
    ),
    product(
        "more_bytes_in_columns",
        (2, 2500, 5),
        (2, 3, 2500),
        ((1,), (2,)),
        ((0,), (0,)),
        dtype="i1",
        result="i4",
    ),
]
KEPT = [
    product("vector", (64, 64), (64, 1)),
    product("integer", (9, 8), (8, 7), dtype="i4"),
    product("sums_of_a_byte", (9, 8), (8, 7), dtype="i1"),
    product("empty", (5, 0), (0, 6)),
    product("nothing", (5, 3), (3, 0)),
]
CONSTANT = Example(
    "constant",
    (integers((33, 20)),),
    lambda x: hlo.dot_general(x, hlo.full(2, (20, 40), "f4"), ROWS),
    np.zeros((33, 40), "f4"),
)


@pytest.fixture(scope="module", params=[512, 128])
def results(request):
    return run_examples([*CASES, *KEPT], tiled(request.param))


def test_values(results) -> None:
    # Sums of products of small integers are exact.
    for case in (*CASES, *KEPT):
        [result] = results[case.name]
        assert result.dtype == case.expected.dtype
        np.testing.assert_array_equal(result, case.expected, case.name)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_products_become_kernels(case: Example) -> None:
    text = text_after(case, tiled(512))
    assert KERNEL in text
    assert "stablehlo.dot_general" not in text


@pytest.mark.parametrize("case", [*KEPT, CONSTANT], ids=lambda case: case.name)
def test_other_products_stay(case: Example) -> None:
    assert KERNEL not in text_after(case, tiled(512))


@pytest.mark.parametrize(("size", "is_taken"), [(31, False), (32, True)])
def test_small_products_stay(size: int, is_taken: bool) -> None:
    case = product("p", (size, size), (size, size))
    assert (KERNEL in text_after(case, "tile-products")) == is_taken


@pytest.mark.parametrize(("rows", "columns", "is_transposed"), [
    (512, 256, True), (511, 256, False), (512, 255, False),
])  # fmt: skip
def test_large_left_operands_in_columns_are_transposed(rows, columns, is_transposed) -> None:
    case = product("p", (rows, 40), (rows, columns), TALL)
    assert ("stablehlo.transpose" in text_after(case, tiled(512))) == is_transposed


def test_workgroups_are_few_where_there_is_little_to_do() -> None:
    def workgroups(size: int) -> int:
        text = text_after(product("p", (size, size), (size, size)), tiled(512))
        head = text[text.index("stream.executable.export") :]
        return int(head[: head.index(" : index")].rpartition(" ")[2])

    assert workgroups(128) == 1
    assert 8 <= workgroups(512) <= 64


EXTENTS = st.one_of(st.integers(2, 8), st.integers(2, 70), st.sampled_from([96, 128, 261]))
DTYPES = st.sampled_from(["f4", "f8", "f2", ml_dtypes.bfloat16])


@st.composite
def products(draw):
    """Draws operands with dimensions in any order, and up to two of each kind."""
    sizes = {
        **{f"b{i}": draw(st.integers(1, 3)) for i in range(draw(st.integers(0, 2)))},
        **{f"k{i}": draw(EXTENTS) for i in range(draw(st.integers(1, 2)))},
    }
    free = [{f"{side}0": draw(EXTENTS)} for side in "mn"]
    if draw(st.booleans()):
        free[0]["m1"] = draw(st.integers(1, 3))
    axes = [draw(st.permutations([*sizes, *own])) for own in free]
    extents = sizes | free[0] | free[1]
    dims = {
        kind: tuple([side.index(x) for x in sizes if x[0] == kind] for side in axes)
        for kind in "bk"
    }
    shapes = [tuple(extents[x] for x in side) for side in axes]
    return shapes, dims["k"], dims["b"], draw(DTYPES)


@settings(max_examples=2)
@given(st.lists(products(), min_size=8, max_size=8), st.sampled_from([128, 256, 512]))
def test_any_product(drawn, bits: int) -> None:
    cases = []
    for number, (shapes, contracting, batch, dtype) in enumerate(drawn):
        values = [RNG.normal(size=shape).astype(dtype) for shape in shapes]
        exact = contracted(*values, contracting, batch)
        cases.append(
            Example(
                f"p{number}",
                values,
                lambda x, y, c=contracting, b=batch: hlo.dot_general(x, y, c, b),
                exact,
            )
        )
    found = run_examples(cases, tiled(bits))
    for case, (_, contracting, batch, dtype) in zip(cases, drawn, strict=True):
        left, right = (np.abs(x.astype("f8")) for x in case.arguments)
        scale = contracted(left, right, contracting, batch)
        count = math.prod(case.arguments[0].shape[axis] for axis in contracting[0])
        sums = np.finfo("f8" if dtype == "f8" else "f4").eps * count
        error = np.abs(found[case.name][0].astype("f8") - case.expected)
        assert np.all(error <= (sums + ml_dtypes.finfo(dtype).eps) * scale), case.name


# No product of finite numbers is out of range: whether it is infinite depends on fused additions.
SPECIAL = np.array([0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan, 1e19], "f4")


def test_special_values() -> None:
    values = np.random.default_rng(3).choice(SPECIAL, size=(2, 19, 21))
    values[:, :5] = integers((2, 5, 21))
    with np.errstate(all="ignore"):
        expected = (values[0][:, None, :] * values[1][None, :, :]).sum(-1)
    case = Example("f", list(values), lambda x, y: hlo.dot_general(x, y, COLUMNS), expected)
    np.testing.assert_array_equal(run_examples([case], tiled(256))["f"][0], expected)


# Epilogues --------------------------------------------------------------------------------------

X, W = integers((37, 20)), integers((20, 50))
BIAS, SCALE, OLD = integers(50), integers(37), integers((37, 50))
P = X @ W


def followed(name, follow, expected, *others, lhs=X, rhs=W) -> Example:
    return Example(
        name,
        (lhs, rhs, *others),
        lambda x, y, *rest: follow(hlo.dot_general(x, y, ROWS), *rest),
        expected,
    )


def along(axis):
    return lambda p, v: hlo.add(p, hlo.broadcast_in_dim(v, hlo.shape_of(p), [axis]))


def relu(p, *rest):
    return hlo.maximum(p, hlo.full(0, hlo.shape_of(p), "f4"))


def layer(p, bias):
    """A layer, and the mask of its gradients."""
    sums = along(1)(p, bias)
    active = relu(sums)
    return [active, hlo.compare(sums, active, "EQ")]


def step(p, old, rate):
    scaled = hlo.multiply(p, hlo.broadcast_in_dim(rate, hlo.shape_of(p), []))
    return hlo.subtract(old, scaled)


def scaled(p):
    """Sums of bytes with a zero point, as numbers."""
    sums = hlo.convert(hlo.add(p, hlo.full_like(p, 7)), np.dtype("f4"))
    return relu(hlo.multiply(sums, hlo.full_like(sums, 0.5)))


def above_three(p):
    return hlo.compare(p, hlo.full_like(p, 3), "GT")


def sum_of_relu(p, init):
    return hlo.reduce([relu(p)], [init], (0,), hlo.add)[0]


BFLOAT = ml_dtypes.bfloat16
BYTES = integers((30, 70), "i1", 128), integers((70, 41), "i1", 128)
DEEP = integers((30, 1003)), integers((1003, 41))
D = DEEP[0] @ DEEP[1]
FOLLOWED = [
    followed("relu", relu, np.maximum(P, 0)),
    followed("bias", along(1), P + BIAS, BIAS),
    followed("rows", along(0), P + SCALE[:, None], SCALE),
    followed("layer", layer, [np.maximum(P + BIAS, 0), P + BIAS >= 0], BIAS),
    followed("step", step, OLD - P * np.float32(0.5), OLD, np.float32(0.5)),
    followed("itself_too", lambda p: [p, hlo.negate(p)], [P, -P]),
    followed("narrowed", lambda p: hlo.convert(p, BFLOAT), P.astype(BFLOAT)),
    followed("deep", relu, np.maximum(D, 0), lhs=DEEP[0], rhs=DEEP[1]),
    followed("deep_truth", above_three, D > 3, lhs=DEEP[0], rhs=DEEP[1]),
    Example(
        "scaled_bytes",
        BYTES,
        lambda x, y: scaled(hlo.dot_general(x, y, ROWS, ((), ()), element=np.dtype("i4"))),
        np.maximum((BYTES[0].astype("i4") @ BYTES[1].astype("i4") + 7).astype("f4") * 0.5, 0),
    ),
    followed("sum", sum_of_relu, np.maximum(P, 0).sum(0) + 1, np.float32(1)),
]


@pytest.fixture(scope="module")
def followed_results():
    return run_examples(FOLLOWED, tiled(512))


@pytest.mark.parametrize("case", FOLLOWED, ids=lambda case: case.name)
def test_values_of_what_follows(followed_results, case: Example) -> None:
    for result, expected in zip(followed_results[case.name], case.expected_results, strict=True):
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result, expected)


ELEMENTWISE = ("maximum", "compare", "subtract", "multiply", "negate", "add", "convert")


@pytest.mark.parametrize("case", FOLLOWED[:-1], ids=lambda case: case.name)
def test_the_kernel_computes_what_follows(case: Example) -> None:
    text = text_after(case, tiled(512))
    assert not [name for name in ELEMENTWISE if f"stablehlo.{name}" in text]


def test_what_needs_later_values_stays() -> None:
    def builder(x, y, b):
        made = hlo.dot_general(x, y, ROWS)
        return hlo.add(made, hlo.broadcast_in_dim(hlo.tanh(b), hlo.shape_of(made), [1]))

    text = text_after(Example("f", (X, W, BIAS), builder, P), tiled(512))
    assert KERNEL in text
    assert "stablehlo.add" in text


def test_equal_kernels_are_there_once() -> None:
    cases = [product(f"p{n}", (33, 20), (20, 40)) for n in range(2)]
    cases.append(product("other", (33, 20), (40, 20), COLUMNS))
    module = build({case.name: (case.arguments, case.builder) for case in cases})
    run_passes(module, tiled(512))
    assert str(module).count("stream.executable private") == 2


def test_wider_vectors_make_wider_tiles() -> None:
    case = product("p", (64, 64), (64, 64))
    texts = [text_after(case, tiled(bits)) for bits in (128, 256, 512)]
    for text, lanes in zip(texts, (4, 8, 16), strict=True):
        assert f"vector<{lanes}xf32>" in text
    assert all(x != y for x, y in itertools.combinations(texts, 2))

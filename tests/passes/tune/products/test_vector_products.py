"""`tile-products`, of vectors and matrices."""

from __future__ import annotations

import numpy as np
import pytest
from support.stablehlo_runner import Example, run_examples, text_after

from axir.dialect.builders import stablehlo as hlo

RNG = np.random.default_rng(0)
KERNEL = "flow.dispatch @vector_product"
ALONG, DOWN = ((1,), (0,)), ((0,), (0,))


def tiled(bits: int) -> str:
    return f"tile-products{{vector_bits={bits},elements=1}}"


def integers(shape, dtype="f4"):
    return RNG.integers(-4, 5, size=shape).astype(dtype)


def product(name, matrix, vector, text, contracting, batch=((), ()), dtype="f4") -> Example:
    values = integers(matrix, dtype), integers(vector, dtype)
    return Example(
        name,
        values,
        lambda x, y: hlo.dot_general(x, y, contracting, batch),
        np.einsum(text, *values).astype(dtype),
    )


CASES = [
    product("rows", (103, 77), (77,), "ij,j->i", ALONG),
    product("even_rows", (64, 128), (128,), "ij,j->i", ALONG),
    product("column", (103, 77), (77, 1), "ij,jk->ik", ALONG),
    product("columns", (77, 103), (77,), "ij,i->j", DOWN),
    product("vector_first", (77,), (77, 103), "i,ij->j", DOWN),
    product("row", (1, 77), (77, 103), "ki,ij->kj", ALONG),
    product("few_rows", (3, 77), (77,), "ij,j->i", ALONG),
    product("batch", (5, 33, 70), (5, 70), "bij,bj->bi", ((2,), (1,)), ((0,), (0,))),
    product("batch_down", (5, 21, 70), (5, 21), "bij,bi->bj", ((1,), (1,)), ((0,), (0,))),
    product("batch_between", (33, 5, 70), (5, 70), "ibj,bj->bi", ((2,), (1,)), ((1,), (0,))),
    product("two_axes", (33, 8, 9), (8, 9), "ijk,jk->i", ((1, 2), (0, 1))),
    product("long", (1030, 1500), (1500,), "ij,j->i", ALONG),
    product("high", (1030, 1500), (1030,), "ij,i->j", DOWN),
    product("wide", (70, 9000), (70,), "ij,i->j", DOWN),
    product("vectors", (200,), (200,), "i,i->", DOWN),
    product("vectors_in_parts", (300_001,), (300_001,), "i,i->", DOWN),
    product("rows_in_parts", (3, 200_000), (200_000,), "ij,j->i", ALONG),
    product("columns_in_parts", (9_001, 70), (9_001,), "ij,i->j", DOWN),
    product("double", (133, 64), (64,), "ij,j->i", ALONG, dtype="f8"),
    product("double_down", (64, 133), (64,), "ij,i->j", DOWN, dtype="f8"),
]
KEPT = [
    product("narrow", (200, 10), (10,), "ij,j->i", ALONG),
    product("integer", (64, 64), (64,), "ij,j->i", ALONG, dtype="i4"),
    product("half", (64, 64), (64,), "ij,j->i", ALONG, dtype="f2"),
    product("batch_last", (70, 66, 4), (66, 4), "ijb,jb->bi", ((1,), (0,)), ((2,), (1,))),
]


@pytest.fixture(scope="module", params=[512, 128])
def results(request):
    return run_examples(CASES, tiled(request.param))


def test_values(results) -> None:
    # Sums of products of small integers are exact.
    for case in CASES:
        np.testing.assert_array_equal(results[case.name][0], case.expected, case.name)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_products_become_kernels(case: Example) -> None:
    text = text_after(case, tiled(512))
    assert KERNEL in text
    assert "stablehlo.dot_general" not in text


@pytest.mark.parametrize("case", KEPT, ids=lambda case: case.name)
def test_other_products_stay(case: Example) -> None:
    assert KERNEL not in text_after(case, tiled(512))


def test_small_matrices_and_computed_ones_stay() -> None:
    large = product("large", (1024, 512), (512,), "ij,j->i", ALONG)
    assert KERNEL in text_after(large, "tile-products")
    small = product("small", (1023, 512), (512,), "ij,j->i", ALONG)
    assert KERNEL not in text_after(small, "tile-products")

    def computed(x, y):
        return hlo.dot_general(hlo.negate(x), y, ALONG)

    case = Example("computed", large.arguments, computed, large.expected)
    assert KERNEL not in text_after(case, "tile-products")


def test_special_values() -> None:
    matrix, vector, column = integers((70, 77)), integers(77), integers(70)
    matrix[2, 3], matrix[4, 1], matrix[5, 76], matrix[6, 2] = np.nan, np.inf, -np.inf, -0.0
    vector[0], vector[75], vector[76] = 0.0, np.inf, 3e38
    column[0], column[4], column[5] = np.inf, 0.0, 2.0
    with np.errstate(all="ignore"):
        expected = [(matrix * vector).sum(1), (matrix * column[:, None]).sum(0)]
    case = Example(
        "f",
        (matrix, vector, column),
        lambda x, y, z: [hlo.dot_general(x, y, ALONG), hlo.dot_general(x, z, DOWN)],
        expected,
    )
    assert text_after(case, tiled(256)).count(KERNEL) == 2
    found = run_examples([case], tiled(256))["f"]
    for result, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(result, wanted)

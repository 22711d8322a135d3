"""Transpositions of operands of contractions."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from support.stablehlo_runner import Example, build, run_examples

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.pipeline import run_passes

RNG = np.random.default_rng(0)


def normal(*shape, dtype=np.float64):
    return RNG.normal(size=shape).astype(dtype)


def transposed_dot(contracting, permutation, batch=((), ())):
    return lambda a, b: hlo.transpose(hlo.dot_general(a, b, contracting, batch), permutation)


ABSORBED = [
    Example(
        "gradient",
        (g := normal(6, 5), x := normal(6, 7)),
        transposed_dot(((0,), (0,)), (1, 0)),
        x.T @ g,
    ),
    Example(
        "batched",
        (g := normal(3, 4, 5), x := normal(3, 5, 2)),
        transposed_dot(((2,), (1,)), (0, 2, 1), ((0,), (0,))),
        (g @ x).transpose(0, 2, 1),
    ),
    Example(
        "several_free_axes",
        (g := normal(2, 3, 4), x := normal(4, 5, 6)),
        transposed_dot(((2,), (0,)), (2, 3, 0, 1)),
        np.einsum("abk,kcd->cdab", g, x),
    ),
    Example(
        "transposed_operand",
        (g := normal(6, 5), x := normal(6, 7)),
        lambda a, b: hlo.transpose(
            hlo.dot_general(hlo.transpose(a, (1, 0)), b, ((1,), (0,))), (1, 0)
        ),
        x.T @ g,
    ),
    Example(
        "transposed_batches",
        (g := normal(4, 3, 5), x := normal(2, 5, 3)),
        lambda a, b: hlo.dot_general(
            hlo.transpose(a, (1, 0, 2)), hlo.transpose(b, (2, 1, 0)), ((2,), (1,)), ((0,), (0,))
        ),
        np.einsum("ibk,jkb->bij", g, x),
    ),
    Example(
        "single_precision",
        (g := normal(9, 1, dtype="f4"), x := normal(9, 1, dtype="f4")),
        transposed_dot(((0,), (0,)), (1, 0)),
        x.T @ g,
    ),
]
KEPT = [
    Example(
        "other_permutation",
        (g := normal(2, 3, 4), x := normal(4, 5)),
        transposed_dot(((2,), (0,)), (1, 0, 2)),
        np.einsum("abk,kc->bac", g, x),
    ),
    Example(
        "batch_moves",
        (g := normal(3, 4, 5), x := normal(3, 5, 2)),
        transposed_dot(((2,), (1,)), (2, 0, 1), ((0,), (0,))),
        np.einsum("bij,bjk->kbi", g, x),
    ),
    Example(
        "operand_with_exchanged_free_axes",
        (g := normal(2, 3, 4), x := normal(4, 5)),
        lambda a, b: hlo.dot_general(hlo.transpose(a, (1, 0, 2)), b, ((2,), (0,))),
        np.einsum("abk,kc->bac", g, x),
    ),
    Example(
        "used_twice",
        (g := normal(6, 5), x := normal(6, 5)),
        lambda a, b: hlo.add(
            product := hlo.dot_general(a, b, ((0,), (0,))), hlo.transpose(product, (1, 0))
        ),
        g.T @ x + x.T @ g,
    ),
]


def text_after(cases) -> str:
    module = build({case.name: (case.arguments, case.builder) for case in cases})
    run_passes(module, "absorb-transposes")
    return str(module)


@pytest.fixture(scope="module")
def results():
    return run_examples([*ABSORBED, *KEPT], "absorb-transposes")


@pytest.mark.parametrize("case", [*ABSORBED, *KEPT], ids=lambda case: case.name)
def test_values(results, case: Example) -> None:
    tolerance = 1e-12 if case.arguments[0].dtype == np.float64 else 1e-5
    np.testing.assert_allclose(results[case.name][0], case.expected, tolerance, tolerance)


def test_the_transpositions_are_gone() -> None:
    assert "stablehlo.transpose" not in text_after(ABSORBED)


@pytest.mark.parametrize("case", KEPT, ids=lambda case: case.name)
def test_other_transpositions_stay(case: Example) -> None:
    assert text_after([case]).count("stablehlo.transpose") == 1


def test_precisions_are_exchanged_with_the_operands() -> None:
    module = build(
        {
            "f": (
                (normal(6, 5), normal(6, 7)),
                lambda a, b: hlo.transpose(
                    hlo.dot_general(a, b, ((0,), (0,)), precision=("HIGHEST", "DEFAULT")), (1, 0)
                ),
            )
        }
    )
    run_passes(module, "absorb-transposes")
    assert "precision = [DEFAULT, HIGHEST]" in str(module)


PASS = "transpose-rhs"


def integers(*shape, dtype=np.float32):
    return RNG.integers(-4, 5, size=shape).astype(dtype)


def dot(name, subscripts, lhs, rhs, contracting, batch=((), ())):
    expected = np.einsum(subscripts, lhs.astype("f8"), rhs.astype("f8")).astype(lhs.dtype)
    return Example(
        name, (lhs, rhs), lambda a, b: hlo.dot_general(a, b, contracting, batch), expected
    )


LAST = ((1,), (1,))
TURNED = [
    dot("even", "ik,jk->ij", integers(64, 32), integers(48, 32), LAST),
    dot("odd", "ik,jk->ij", integers(33, 17), integers(29, 17), LAST),
    dot("tiny", "ik,jk->ij", integers(2, 1), integers(2, 1), LAST),
    dot("double", "ik,jk->ij", integers(9, 5, dtype="f8"), integers(7, 5, dtype="f8"), LAST),
    dot(
        "bfloat16",
        "ik,jk->ij",
        integers(9, 5, dtype=ml_dtypes.bfloat16),
        integers(7, 5, dtype=ml_dtypes.bfloat16),
        LAST,
    ),
    dot(
        "batch",
        "bik,bjk->bij",
        integers(3, 5, 4),
        integers(3, 6, 4),
        ((2,), (2,)),
        ((0,), (0,)),
    ),
    dot(
        "batch_between",
        "ibk,jbk->bij",
        integers(5, 3, 4),
        integers(6, 3, 4),
        ((2,), (2,)),
        ((1,), (1,)),
    ),
    dot("two_contracted", "ikl,jlk->ij", integers(5, 3, 4), integers(6, 4, 3), ((2, 1), (1, 2))),
    dot("two_free", "ik,jmk->ijm", integers(5, 4), integers(2, 3, 4), ((1,), (2,))),
]
KEPT_ROWS = [
    dot("rows", "ik,kj->ij", integers(9, 5), integers(5, 7), ((1,), (0,))),
    dot("transposed_lhs", "ki,kj->ij", integers(5, 9), integers(5, 7), ((0,), (0,))),
    dot("vector", "k,jk->j", integers(5), integers(7, 5), ((0,), (1,))),
    dot("matrix_and_vector", "ik,k->i", integers(7, 5), integers(5), ((1,), (0,))),
    dot("integers", "ik,jk->ij", integers(9, 5, dtype="i4"), integers(7, 5, dtype="i4"), LAST),
]


def transpose_count(case: Example) -> int:
    module = build({case.name: (case.arguments, case.builder)})
    run_passes(module, PASS)
    return str(module).count("stablehlo.transpose")


@pytest.fixture(scope="module")
def results_rows():
    return run_examples([*TURNED, *KEPT_ROWS], PASS)


@pytest.mark.parametrize("case", [*TURNED, *KEPT_ROWS], ids=lambda case: case.name)
def test_values_rows(results_rows, case: Example) -> None:
    # Sums of products of small integers are exact, except for one rounding to bfloat16.
    assert results_rows[case.name][0].dtype == case.expected.dtype
    np.testing.assert_array_equal(results_rows[case.name][0], case.expected)


@pytest.mark.parametrize("case", TURNED, ids=lambda case: case.name)
def test_rhs_is_transposed(case: Example) -> None:
    assert transpose_count(case) == 1


@pytest.mark.parametrize("case", KEPT_ROWS, ids=lambda case: case.name)
def test_other_contractions_stay(case: Example) -> None:
    assert transpose_count(case) == 0


def test_the_pass_acts_once() -> None:
    case = TURNED[0]
    module = build({case.name: (case.arguments, case.builder)})
    run_passes(module, PASS)
    once = str(module)
    run_passes(module, PASS)
    assert str(module) == once

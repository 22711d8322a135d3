"""`absorb-transposes`."""

from __future__ import annotations

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

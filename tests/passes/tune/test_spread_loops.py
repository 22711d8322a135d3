"""Operations written out as loops: products of matrices and vectors, functions of doubles."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from scipy.special import expit, softmax
from support.stablehlo_runner import Example, deviations, run_examples, text_after

import axir
import axir.numpy as jnp
from axir._programs.compiled_modules import compile_saved, open_module
from axir.dialect.builders import stablehlo as hlo
from axir.runtime.compiler.target import Target

RNG = np.random.default_rng(0)
PASS = "spread-matvecs{elements=200}"


def dot(contracting, batch=((), ()), element=None):
    return lambda a, b: hlo.dot_general(a, b, contracting, batch, element=element)


def integers(*shape, dtype=np.float32):
    return RNG.integers(-4, 5, size=shape).astype(dtype)


def special():
    matrix, vector = integers(9, 7), integers(7)
    matrix[2, 3], matrix[4, 1], matrix[5, 0], matrix[6, 2] = np.nan, np.inf, -np.inf, -0.0
    vector[0], vector[5] = 0.0, np.inf
    return matrix, vector


A, X = integers(33, 21), integers(21)
SPREAD = [
    Example("matrix_vector", (A, X), dot(((1,), (0,))), A @ X),
    Example("vector_matrix", (X, A), dot(((0,), (1,))), A @ X),
    Example("columns", (a := integers(40, 13), x := integers(40)), dot(((0,), (0,))), x @ a),
    Example("one_column", (A, x := integers(21, 1)), dot(((1,), (0,))), A @ x),
    Example("one_row", (x := integers(1, 21), a := integers(21, 15)), dot(((1,), (0,))), x @ a),
    Example(
        "double",
        (a := integers(5, 4, dtype="f8"), x := integers(4, dtype="f8")),
        dot(((1,), (0,))),
        a @ x,
    ),
    Example(
        "batch",
        (a := integers(6, 5, 4), x := integers(6, 4)),
        dot(((2,), (1,)), ((0,), (0,))),
        np.einsum("bij,bj->bi", a, x),
    ),
    Example(
        "batch_behind",
        (x := integers(4, 6), a := integers(10, 4, 6)),
        dot(((0,), (1,)), ((1,), (2,))),
        np.einsum("jb,ijb->bi", x, a),
    ),
    Example(
        "two_batches",
        (a := integers(2, 5, 3, 4), x := integers(3, 4, 2)),
        dot(((3,), (1,)), ((2, 0), (0, 2))),
        np.einsum("cibj,bjc->bci", a, x),
    ),
    Example(
        "two_contracted",
        (a := integers(5, 3, 4), x := integers(4, 3)),
        dot(((1, 2), (1, 0))),
        np.einsum("ijk,kj->i", a, x),
    ),
    Example(
        "widened",
        (a := integers(9, 4, dtype=ml_dtypes.bfloat16), x := integers(4)),
        dot(((1,), (0,)), element=np.float32),
        a.astype("f4") @ x,
    ),
    Example(
        "large",
        (a := integers(1030, 515), x := integers(515)),
        dot(((1,), (0,))),
        (a.astype("f8") @ x).astype("f4"),
    ),
]
MATRIX, VECTOR = special()
with np.errstate(invalid="ignore"):
    products = (MATRIX * VECTOR).sum(1)
SPREAD.append(Example("special", (MATRIX, VECTOR), dot(((1,), (0,))), products))
KEPT = [
    Example("matrices", (A, a := integers(21, 4)), dot(((1,), (0,))), A @ a),
    Example("vectors", (X, x := integers(21)), dot(((0,), (0,))), X @ x),
    Example(
        "integers",
        (a := integers(5, 4, dtype="i4"), x := integers(4, dtype="i4")),
        dot(((1,), (0,))),
        a @ x,
    ),
    Example(
        "narrow",
        (a := integers(5, 4, dtype="f2"), x := integers(4, dtype="f2")),
        dot(((1,), (0,))),
        a @ x,
    ),
    Example("few_columns", (a := integers(15, 13), x := integers(15)), dot(((0,), (0,))), x @ a),
    Example("empty", (a := integers(3, 0), x := integers(0)), dot(((1,), (0,))), a @ x),
]


@pytest.fixture(scope="module")
def results():
    return run_examples([*SPREAD, *KEPT], f"fill-empty-dot,{PASS},split-reductions")


@pytest.mark.parametrize("case", [*SPREAD, *KEPT], ids=lambda case: case.name)
def test_values(results, case: Example) -> None:
    # Sums of products of small integers are exact.
    assert results[case.name][0].dtype == case.expected.dtype
    np.testing.assert_array_equal(results[case.name][0], case.expected)


@pytest.mark.parametrize("case", SPREAD, ids=lambda case: case.name)
def test_matrix_vector_products_become_sums(case: Example) -> None:
    text = text_after(case, PASS)
    assert "stablehlo.dot_general" not in text
    assert "stablehlo.reduce" in text


@pytest.mark.parametrize("case", KEPT, ids=lambda case: case.name)
def test_other_contractions_stay(case: Example) -> None:
    assert "stablehlo.dot_general" in text_after(case, PASS)


def test_constants_have_no_masks(tmp_path) -> None:
    """Neither a constant matrix nor a constant vector makes a mask of the matrix's size."""
    weights = RNG.normal(size=(256, 256)).astype(np.float32)
    limits = {"matrix": 1.15 * weights.nbytes, "vector": 0.15 * weights.nbytes}
    made = {
        "matrix": axir.export.export(lambda x: jnp.tanh(x @ weights))(np.ones((1, 256), "f4")),
        "vector": axir.export.export(lambda a: jnp.tanh(a @ weights[0]))(weights),
    }
    for name, exported in made.items():
        exported.save(tmp_path / "m.mlir")
        module, dialect = open_module(tmp_path / "m.mlir")
        assert len(compile_saved(module, dialect, Target(), name)) < limits[name], name


PASS_DOUBLES = "write-out-doubles"
FUNCTIONS = {"exponential": np.exp, "log": np.log, "logistic": expit, "tanh": np.tanh}
EDGES = [0, 1, 0.5, 1e-3, 1e-8, 1e-20, 3, 20, 36, 100, 700, 709.7, 710, 720, 1e5, 1e300, np.inf]
VALUES = np.concatenate(
    [[np.nan], EDGES, np.negative(EDGES), RNG.uniform(-5, 5, 500), 10.0 ** RNG.uniform(-9, 3, 300)]
)


def example(name: str, x: np.ndarray) -> Example:
    with np.errstate(all="ignore"):
        expected = FUNCTIONS[name](x)
    expected = np.where(np.abs(expected) < np.finfo(x.dtype).tiny, 0, expected)
    return Example(name, (x,), getattr(hlo, name), expected)


EXAMPLES = [example(name, VALUES) for name in FUNCTIONS]


@pytest.fixture(scope="module")
def results_doubles() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES, PASS_DOUBLES)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_values_doubles(results_doubles: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results_doubles[example.name], example, 3, zero_signs=False) == []


def test_what_is_left_alone() -> None:
    for x in (VALUES[:7], VALUES[:0], np.float64(2), np.ones(9, np.float32)):
        assert "linalg.generic" not in text_after(
            example("exponential", np.asarray(x)), PASS_DOUBLES
        )
    assert "linalg.generic" in text_after(example("exponential", VALUES[:8]), PASS_DOUBLES)


def test_kernels_of_rows() -> None:
    x = RNG.uniform(-30, 30, (331, 101))
    x[5, 3], x[6, 100], x[7] = np.nan, -np.inf, 3
    with axir.enable_x64(True):
        got = axir.jit(axir.nn.softmax)(x)
    np.testing.assert_allclose(got, softmax(x, axis=1), rtol=1e-14)

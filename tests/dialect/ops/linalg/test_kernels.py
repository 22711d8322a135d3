"""Small matrices in compiled code: kernels of one dispatch, compared with the evaluator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.op_programs import Results

import axir
import axir.numpy as jnp
from axir import lax
from axir.dialect.core.array import as_array
from axir.dialect.core.config import config
from axir.dialect.ops.linalg.geqrf import geqrf
from axir.dialect.program.function_tracing import trace_function
from axir.passes.transforms.lower_to_stablehlo import lower_functions

Case = tuple[Callable[..., Any], tuple[np.ndarray, ...]]
GENERATOR = np.random.default_rng(31)
# Within the extents of kernels, at their ends, and stacks larger than the stack of a dispatch.
SHAPES = [(1, 1), (2, 2), (7, 7), (3, 5, 5), (2, 1, 3, 3), (32, 32), (5000, 2, 2)]


def definite(x: np.ndarray) -> np.ndarray:
    return (x @ np.swapaxes(x, -1, -2) + x.shape[-1] * np.eye(x.shape[-1])).astype(x.dtype)


def solutions(a: Any, b: Any) -> Any:
    def transposed(a: Any, b: Any) -> Any:
        return axir.vjp(lambda b: jnp.linalg.solve(a, b), b)[1](b)[0]

    return jnp.linalg.solve(a, b), transposed(a, b)


def of_definite(x: Any) -> Any:
    vectors, values = lax.linalg.eigh(x, symmetrize_input=False)
    product = jnp.einsum("...ij,...j,...kj->...ik", vectors, values, vectors)
    return lax.linalg.cholesky(x), values, product


def triangle(x: Any) -> Any:
    return lax.linalg.cholesky(x, symmetrize_input=False)


def factors(x: Any) -> Any:
    packed, pivots, order = lax.linalg.lu(x)
    longer = lax.linalg.lu_pivots_to_permutation(pivots, x.shape[-2] + 2)
    return packed, pivots, order, longer, lax.linalg.qr(x, full_matrices=False), geqrf(x)


def parts(x: Any) -> Any:
    """Some of the results only."""
    return lax.linalg.eigh(x)[1], lax.linalg.lu(x)[1], lax.linalg.qr(x)[1]


def triangular(a: Any, b: Any) -> Any:
    options = [(lower, turned, unit) for lower in (0, 1) for turned in (0, 1) for unit in (0, 1)]
    return [
        lax.linalg.triangular_solve(
            a, b if left_side else jnp.swapaxes(b, -1, -2), left_side=left_side, lower=bool(lower),
            transpose_a=bool(turned), unit_diagonal=bool(unit),
        )
        for left_side in (True, False)
        for lower, turned, unit in options
    ]  # fmt: skip


def cases() -> dict[str, Case]:
    found: dict[str, Case] = {}
    for number, shape in enumerate(SHAPES):
        x = GENERATOR.standard_normal(shape).astype((np.float32, np.float64)[number % 2])
        b = GENERATOR.standard_normal((*shape[:-1], 1 + number % 3)).astype(x.dtype)
        name = "_".join(map(str, shape))
        found[f"solutions_{name}"] = solutions, (definite(x) + x, b)
        found[f"of_definite_{name}"] = of_definite, (definite(x),)
        found[f"factors_{name}"] = factors, (x,)
        found[f"parts_{name}"] = parts, (definite(x),)
        if len(shape) == 3 and shape[0] == 3:
            found[f"triangular_{name}"] = triangular, (definite(x), b)
    indefinite = definite(GENERATOR.standard_normal((3, 37, 37)).astype(np.float32))
    indefinite[0, 30, 30], indefinite[1, 0, 0] = -1, np.nan
    larger = (8, 9, 15, 16, 40, 100)
    stacks = [definite(GENERATOR.standard_normal((n, n)).astype("f4")) for n in larger]
    stacks += [stacks[4].astype(np.float64), indefinite]
    for number, x in enumerate(stacks):
        found[f"triangles_{number}"] = triangle, (x,)
    thin = [(6, 2), (2, 6), (4, 1), (1, 4), (1, 1), (3, 1, 1), (3, 4, 2), (300, 3), (2, 60, 9)]
    for shape in (*thin, (3, 50)):
        x = GENERATOR.standard_normal(shape).astype(np.float32)
        found[f"factors_{'_'.join(map(str, shape))}"] = factors, (x,)
    return found


@pytest.fixture(scope="module")
def results() -> dict[str, tuple[list[np.ndarray], list[np.ndarray]]]:
    functions, wanted = {}, {}
    drawn = cases()
    with config(jax_enable_x64=True):
        for name, (function, arguments) in drawn.items():
            arrays = [as_array(x) for x in arguments]
            functions[name] = trace_function(
                lambda *xs, f=function: axir.tree.leaves(f(*xs)), [x.type for x in arrays]
            )
            assert not functions[name].captured
            wanted[name] = [x.host() for x in functions[name].evaluate(*arrays)]
    found = Results({name: (function, drawn[name][1]) for name, function in functions.items()})
    assert found.failures == {}
    return {name: (found[name], wanted[name]) for name in functions}


@pytest.mark.parametrize("name", cases())
def test_kernels_agree_with_lapack(name: str, results: Any) -> None:
    for got, want in zip(*results[name], strict=True):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        if want.dtype.kind == "i":
            np.testing.assert_array_equal(got, want)
        else:
            scale = np.nanmax(np.abs(want)) * want.shape[-1] * 100
            np.testing.assert_allclose(got, want, rtol=0, atol=scale * np.finfo(want.dtype).eps)


def test_matrices_without_a_cholesky_factor_give_nan() -> None:
    stack = np.stack([np.eye(3), np.array([[1, 2, 0], [2, 1, 0], [0, 0, 1]]), np.zeros((3, 3))])
    got = np.asarray(axir.jit(lax.linalg.cholesky)(stack.astype(np.float32)))
    np.testing.assert_array_equal(got[0], np.eye(3))
    for factor in got[1:]:
        assert np.isnan(factor[np.tril_indices(3)]).all()
        np.testing.assert_array_equal(factor[np.triu_indices(3, 1)], 0)


def test_singular_matrices_have_zeros_on_the_diagonal() -> None:
    x = np.array([[0, 1, 2], [0, 3, 4], [0, 5, 6]], np.float32)
    packed, pivots, order = map(np.asarray, axir.jit(lax.linalg.lu)(x))
    assert packed[0, 0] == 0
    assert sorted(order) == [0, 1, 2]
    np.testing.assert_array_equal(pivots[:1], [0])
    lower = np.tril(packed, -1) + np.eye(3)
    np.testing.assert_allclose(lower @ np.triu(packed), x[order], rtol=1e-6)


@pytest.mark.parametrize("factor", [1e35, 1e-35, 0.0])
def test_eigenvalues_of_extreme_matrices(factor: float) -> None:
    x = np.array([[2, 1, 0], [1, 2, 1], [0, 1, 2]]) * factor
    vectors, values = map(np.asarray, axir.jit(lax.linalg.eigh)(x.astype(np.float32)))
    np.testing.assert_allclose(values, np.linalg.eigvalsh(x), rtol=1e-5)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(3), atol=1e-6)


def test_norms_of_reflections_neither_overflow_nor_vanish() -> None:
    x = np.array([[3, 1], [4, 2]])
    for factor in (1e30, 1e-30):
        scaled = (x * factor).astype(np.float32)
        _, r = axir.jit(lambda x: lax.linalg.qr(x, full_matrices=False))(scaled)
        assert abs(float(r[0, 0])) == pytest.approx(5 * factor, rel=1e-6)


def test_one_dispatch_takes_the_place_of_calls() -> None:
    def lowered(size: int) -> str:
        x = as_array(np.eye(size, dtype=np.float32))
        function = trace_function(lambda x: [lax.linalg.cholesky(x)], [x.type])
        return str(lower_functions({"main": function}, host_functions=[]))

    assert "flow.dispatch @matrices_0" in lowered(256)
    assert "flow.dispatch" not in lowered(257)
    assert "@host.callback" in lowered(257)

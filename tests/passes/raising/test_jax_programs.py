"""Programs that JAX lowers have, after raising, JAX's values and JAX's gradients."""

from __future__ import annotations

from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest
from support.jax_programs import PROGRAMS, JaxProgram

import axir
import axir.numpy as jnp
from axir.dialect.ops.calls.jit_call import call
from axir.dialect.program.function import Function
from axir.dialect.text.parsing import parse_module
from axir.passes.raising.module import raise_module

_INEXACT = "fcV"  # bfloat16 is of the last kind


@pytest.fixture(autouse=True)
def op_by_op() -> Any:
    """Evaluates raised functions, since their ops are compiled and compared elsewhere."""
    with axir.config(jax_disable_jit=True):
        yield


def raised(program: JaxProgram) -> Function:
    text = jax.jit(program.function).lower(*program.arguments).as_text()
    return raise_module(parse_module(text)).functions["main"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_raised_programs_give_the_values_and_gradients_of_jax(name: str) -> None:
    program = PROGRAMS[name]
    function = raised(program)
    arguments = [jnp.asarray(x) for x in program.arguments]
    expected, weights = reference(program)
    results = call(function, *arguments)
    for number, (found, wanted) in enumerate(zip(results, expected[0], strict=True)):
        assert_close(np.asarray(found), wanted, program.tolerance, f"{name}[{number}]")
    if not program.is_differentiable:
        return
    places = [i for i, x in enumerate(program.arguments) if x.dtype.kind in _INEXACT]
    gradients = axir.grad(lambda *xs: weighted(call(function, *xs), weights), places)(*arguments)
    for place, found, wanted in zip(places, gradients, expected[1], strict=True):
        assert_close(np.asarray(found), wanted, 10 * program.tolerance, f"{name}: d{place}")


def reference(program: JaxProgram) -> tuple[tuple[list[np.ndarray], list[np.ndarray]], list[Any]]:
    """Returns JAX's results, the gradients of a weighted sum of them, and the weights."""
    generator = np.random.default_rng(1)
    shapes = jax.tree.leaves(jax.eval_shape(program.function, *program.arguments))
    weights = [
        generator.standard_normal(x.shape).astype(np.float32)
        if np.dtype(x.dtype).kind in _INEXACT
        else None
        for x in shapes
    ]
    places = [i for i, x in enumerate(program.arguments) if x.dtype.kind in _INEXACT]

    def total(*xs: Any) -> Any:
        results = jax.tree.leaves(program.function(*xs))
        return weighted(results, weights), results

    if program.is_differentiable:
        (_, results), gradients = jax.jit(jax.value_and_grad(total, places, has_aux=True))(
            *program.arguments
        )
    else:
        results, gradients = jax.jit(total)(*program.arguments)[1], ()
    return ([np.asarray(x) for x in results], [np.asarray(x) for x in gradients]), weights


def weighted(results: Any, weights: list[Any]) -> Any:
    total = np.float32(0)
    for result, weight in zip(results, weights, strict=True):
        if weight is not None:
            is_complex = np.dtype(result.dtype).kind == "c"
            real = result.real + result.imag if is_complex else result
            total = total + (real.astype(np.float32) * weight).sum()
    return total


def assert_close(found: np.ndarray, wanted: np.ndarray, tolerance: float, what: str) -> None:
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), what
    if wanted.dtype.kind not in _INEXACT:
        np.testing.assert_array_equal(found, wanted, what)
        return
    least = 16 * float(ml_dtypes.finfo(wanted.real.dtype).eps)
    scale = float(np.abs(wanted).max(initial=1.0))
    tolerance = max(tolerance, least)
    wide = [x.astype(np.complex128) for x in (found, wanted)]
    np.testing.assert_allclose(*wide, rtol=tolerance, atol=tolerance * scale, err_msg=what)


def test_vectorized_raised_programs_compute_each_element() -> None:
    program = PROGRAMS["scans"]
    function = raised(program)
    h, xs, w = map(jnp.asarray, program.arguments)
    stacked = jnp.stack([h, 2 * h])
    found = axir.vmap(lambda h: call(function, h, xs, w))(stacked)
    for place in range(2):
        single = call(function, stacked[place], xs, w)
        for all_of_it, alone in zip(found, single, strict=True):
            np.testing.assert_allclose(all_of_it[place], alone, rtol=1e-5, atol=1e-6)


def test_loops_that_count_are_scans_of_slices() -> None:
    (scan,) = [e for e in raised(PROGRAMS["lstm"]).equations if e.primitive.name == "scan"]
    assert (scan.params["length"], scan.params["num_carry"]) == (5, 2)
    # The xs are sliced and the ys stacked; the counter is gone.
    assert [str(v.type) for v in scan.operands[scan.params["num_consts"] + 2 :]] == [
        "float32[5,2,3]"
    ]
    assert [str(v.type) for v in scan.results[2:]] == ["float32[5,2,2]"]
    backward = [e for e in raised(PROGRAMS["scans"]).equations if e.primitive.name == "scan"]
    assert [e.params["reverse"] for e in backward] == [False, True]


def test_calls_of_lapack_are_ops_of_their_own() -> None:
    def names(function: Function) -> set[str]:
        found = {e.primitive.name for e in function.equations}
        return found.union(*map(names, function.callees()))

    assert {"lu", "cholesky", "triangular_solve"} <= names(raised(PROGRAMS["equations"]))
    found = names(raised(PROGRAMS["decompositions"]))
    assert {"qr", "svd", "eigh"} <= found
    assert "while" not in found

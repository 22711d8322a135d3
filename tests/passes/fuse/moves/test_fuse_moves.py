"""Moves of elements as kernels: values of programs and of the op table, in any number of shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.op_cases import Case, cases_of, differences
from support.op_programs import Programs

import axir
import axir.numpy as jnp
from axir import lax
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.text.parsing import parse_module
from axir.passes.framework.pipeline import run_passes
from axir.passes.fuse.moves import kernel
from axir.passes.transforms.lower_to_stablehlo import lower_functions

_PASS = "fuse-moves{elements=1}"
_MOVES = ("transpose", "pad", "concatenate", "gather", "rev", "slice", "stack", "tile", "split")
RNG = np.random.default_rng(7)


def floats(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def places(*shape: int) -> np.ndarray:
    return RNG.integers(-9, 30, shape).astype(np.int32)


def bordered(x: Any) -> Any:
    return lax.pad(x, 2.5, ((1, 2, 0), (3, 18, 0))) * 2


def cropped(x: Any) -> Any:
    return lax.pad(x, 1.0, ((-1, 2, 0), (3, -2, 0)))


def joined_and_scaled(x: Any, y: Any) -> Any:
    return jnp.concatenate([x, y, x], 1) * 3 + jnp.concatenate([x, x, y], 1)


def looked_up(x: Any, rows: Any, i: Any) -> Any:
    return x.at[rows, i].get(mode="fill")


def looked_up_or_filled(x: Any, i: Any) -> Any:
    return x.at[i, i[:, ::-1]].get(mode="fill", fill_value=7.0)


def sampled(x: Any, i: Any) -> Any:
    return x[jnp.abs(i) % x.shape[0], (i + 1) % x.shape[1]] * 0.5 + x[0, 0]


def shared(x: Any) -> Any:
    y = jnp.exp(x.T)
    return y + 1, y[::-1] * x.T


def smoothed(x: Any) -> Any:
    for _ in range(12):
        x = jnp.roll(x, 1) + jnp.roll(x, -2) - x
    return x[::-1]


def fibonacci(x: Any, y: Any) -> Any:
    for _ in range(40):
        x, y = y, (x + y) * 0.5
    return y


def summed_pieces(x: Any) -> Any:
    return fibonacci(jnp.flip(x, 0), x).sum(-1) * 2


def moved_often(x: Any) -> Any:
    for _ in range(20):
        x = jnp.flip(jnp.roll(x, 1, 0), 1)
    return x


def turned(x: Any) -> Any:
    y = x.T + 1
    return (y + y[:1]).T * (x + x[:, :1])


def batched(x: Any, i: Any) -> Any:
    return axir.vmap(lambda row, at: row[at] + row[0])(x, i)


PROGRAMS: dict[str, tuple[Callable[..., Any], list[np.ndarray]]] = {
    "transposed": (lambda x: x.T + 1, [floats(37, 50)]),
    "transposed_squares": (lambda x: x.T, [floats(64, 32)]),
    "transposed_planes": (lambda x: x.transpose(0, 2, 1) * 2, [floats(3, 40, 33)]),
    "transposed_around": (lambda x: x.transpose(2, 0, 1), [floats(20, 3, 35)]),
    "transposed_blocks": (lambda x: x.transpose(0, 2, 1, 3), [floats(2, 5, 4, 19)]),
    "transposed_twice": (lambda x, y: jnp.tanh(x.T) * y.T, [floats(18, 40), floats(18, 40)]),
    "transposed_and_not": (lambda x: x.T + x[:, :1] * x, [floats(34, 34)]),
    "transposed_halves": (lambda x: x.T, [floats(33, 70).astype(ml_dtypes.bfloat16)]),
    "transposed_truths": (lambda x: ~x.T, [floats(33, 70) > 0]),
    "transposed_bytes": (lambda x: x.T, [places(35, 40).astype(np.int8)]),
    "bordered": (bordered, [floats(9, 20)]),
    "cropped": (cropped, [floats(9, 20)]),
    "joined": (joined_and_scaled, [floats(5, 20), floats(5, 7)]),
    "line": (lambda x: jnp.concatenate([x[::-1], x]), [floats(301)]),
    "rolled": (lambda x: jnp.roll(x, 7, 1) + jnp.flip(x, 0), [floats(12, 40)]),
    "strided": (lambda x: x[::2, 1::2] * x[1::2, ::2], [floats(10, 40)]),
    "looked_up": (looked_up, [floats(20, 30), places(20, 1), places(20, 33)]),
    "filled": (looked_up_or_filled, [floats(20, 22), places(20, 33)]),
    "sampled": (sampled, [floats(20, 30), places(200)]),
    "batched": (batched, [floats(6, 30), places(6, 40)]),
    "smoothed": (smoothed, [places(90)]),
    "summed_pieces": (summed_pieces, [floats(50, 3)]),
    "moved_often": (moved_often, [floats(20, 33)]),
    "turned": (turned, [floats(20, 33)]),
    "shared": (shared, [floats(20, 33)]),
    "rows": (lambda x, i: x[i] * 2, [floats(20, 33), places(40)]),
    "triangle": (lambda x: jnp.tril(x, 3) * 2 + jnp.diag(x[0]), [floats(37, 37)]),
    "columns": (lambda x, i: x[i] * 2, [floats(300, 1), places(40)]),
    "columns_along": (
        lambda x, i: jnp.take_along_axis(x, i, 0),
        [floats(30, 1, 1), places(40, 1, 1)],
    ),
    "columns_of_rows": (lambda x, i: x[i, i + 1], [floats(20, 30, 1, 1), places(3, 40)]),
    "columns_of_each": (
        lambda x, i: axir.vmap(lambda row, at: row[at])(x, i),
        [floats(6, 30, 1), places(6, 40)],
    ),
    "unsigned": (lambda x, i: x[i], [floats(300), places(40).astype(np.uint8)]),
}


@pytest.fixture(scope="module", params=["one share", "several"])
def programs(request: pytest.FixtureRequest) -> Programs:
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "several":
            patch.setattr(kernel, "_BYTES_PER_WORKGROUP", 256)
        return Programs({name: traced(name) for name in PROGRAMS}, passes=_PASS)


def traced(name: str) -> Function:
    function, arguments = PROGRAMS[name]
    types = [ShapedArray(x.shape, x.dtype) for x in arguments]
    return trace_function(lambda *xs: axir.tree.leaves(function(*xs)), types)


@pytest.mark.parametrize("name", PROGRAMS)
def test_values(programs: Programs, name: str) -> None:
    assert name not in programs.failures, programs.failures[name]
    arguments = PROGRAMS[name][1]
    expected = [x.host() for x in traced(name).evaluate(*arguments)]
    for got, wanted in zip(programs(name, *arguments), expected, strict=True):
        np.testing.assert_allclose(
            got.astype(np.float64), wanted.astype(np.float64), rtol=2e-6, atol=1e-6
        )


# "smoothed" reads at ever more positions, so that intermediate results are computed in between.
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "smoothed"])
def test_nothing_else_moves_elements(name: str) -> None:
    module = lower_functions({"main": traced(name)})
    run_passes(module, _PASS)
    body = str(module).partition("func.func @main")[2]
    assert "flow.dispatch @move" in body
    assert not any(f"stablehlo.{op}" in body for op in ("gather", "pad", "concatenate", "reverse"))


def test_what_other_kernels_read_stays() -> None:
    def product(x: Any, y: Any) -> Any:
        return [x.T @ y]

    types = [ShapedArray((300, 400), np.float32)] * 2
    module = lower_functions({"main": trace_function(product, types)})
    run_passes(module, "fuse-moves")
    assert "flow.dispatch" not in str(module)


def test_small_moves_are_no_reason_for_a_kernel() -> None:
    def mixed(x: Any, word: Any) -> Any:
        key = jnp.concatenate([word, word + 1])
        return [x * key[0] ^ key[1]]

    types = [ShapedArray((40_000,), np.uint32), ShapedArray((1,), np.uint32)]
    module = lower_functions({"main": trace_function(mixed, types)})
    run_passes(module, "fuse-moves")
    assert "flow.dispatch" not in str(module)


def _cases() -> dict[str, Case]:
    found = {}
    for name in _MOVES:
        for case in cases_of(name):
            kinds = [x.dtype for x in case.args]
            if all(isinstance(d, np.dtype) and d.kind in "fiub" and d.itemsize < 8 for d in kinds):
                found[f"{name}_{case.index}"] = case
    return found


def test_samples_of_ops() -> None:
    cases = _cases()
    functions = {symbol: case.function() for symbol, case in cases.items()}
    programs = Programs(functions, passes=_PASS)
    problems = [f"{cases[name]}: {text}" for name, text in programs.failures.items()]
    for symbol in functions.keys() - programs.failures.keys():
        case = cases[symbol]
        got = programs(symbol, *case.args)
        with np.errstate(over="ignore"):
            expected, or_else = case.evaluate(), case.evaluate_flushed()
        problems += differences(
            str(case), got, expected, case.tolerance, is_elementwise=True, or_else=or_else
        )
    assert len(cases) > 50
    assert not problems, "\n".join(problems)


def test_positions_of_many_steps_are_found_at_once() -> None:
    steps = [
        f"  %{n} = stablehlo.add %{n - 1}, %{n - 2} : tensor<20x33xi32>\n" for n in range(2, 60)
    ]
    module = parse_module(
        "func.func public @main(%x: tensor<20x33xf32>) -> tensor<20x33xf32> {\n"
        "  %0 = stablehlo.iota dim = 0 : tensor<20x33xi32>\n"
        f"  %1 = stablehlo.add %0, %0 : tensor<20x33xi32>\n{''.join(steps)}"
        "  %60 = stablehlo.compare LT, %59, %0 : (tensor<20x33xi32>, tensor<20x33xi32>)"
        " -> tensor<20x33xi1>\n"
        "  %61 = stablehlo.select %60, %x, %x : tensor<20x33xi1>, tensor<20x33xf32>\n"
        "  return %61 : tensor<20x33xf32>\n}"
    )
    run_passes(module, _PASS)
    assert str(module).count("flow.dispatch @move") == 1

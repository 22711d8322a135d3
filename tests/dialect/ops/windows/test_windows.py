"""Gathers and scatters of any dimension numbers: compiled code against the evaluator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.op_programs import Results
from support.window_cases import ROLES, WindowCase, window_cases

from axir.dialect.core.array import as_array
from axir.dialect.ops.indexing.gather import gather
from axir.dialect.ops.indexing.scatter import (
    scatter,
    scatter_add,
    scatter_max,
    scatter_min,
    scatter_mul,
)
from axir.dialect.ops.indexing.scatter_apply import scatter_apply
from axir.dialect.program.function_tracing import trace_function

# Small integers are exact in each of them, also where many are added.
DTYPES = (np.float32, np.int32, np.uint8, np.float16)
MODES = ("fill", "clip")
Program = Callable[[WindowCase, str], Callable[..., Any]]


def _scatter_by(function: Callable[..., Any]) -> Program:
    return lambda case, mode: lambda x, i, u: [function(x, i, u, case.numbers, mode=mode)]


def _apply(case: WindowCase, mode: str) -> Callable[..., Any]:
    settings = {"update_shape": case.windows_shape, "mode": mode}
    return lambda x, i, u: [scatter_apply(x, i, lambda v: v + v, case.numbers, **settings)]


def _gather(case: WindowCase, mode: str) -> Callable[..., Any]:
    return lambda x, i, u: [gather(x, i, case.gather_numbers, case.slice_sizes, mode=mode)]


PROGRAMS: dict[str, Program] = {
    "scatter_add": _scatter_by(scatter_add),
    "gather": _gather,
    "scatter": _scatter_by(scatter),
    "scatter_mul": _scatter_by(scatter_mul),
    "scatter_min": _scatter_by(scatter_min),
    "scatter_max": _scatter_by(scatter_max),
    "scatter_apply": _apply,
}


def drawn_cases(generator: np.random.Generator) -> list[WindowCase]:
    """All roles of one and two dimensions, and some of three."""
    large = list(window_cases(generator, (3,)))
    return [*window_cases(generator, (1, 2)), *large[generator.integers(9) :: 9]]


def test_the_cases_have_windows_of_all_kinds() -> None:
    generator = np.random.default_rng(0)
    cases = list(window_cases(generator))
    assert len(cases) == sum(len(ROLES) ** rank for rank in (1, 2, 3))
    assert {len(case.indices_shape) for case in cases} >= {1, 2, 3}
    assert {len(case.numbers.scatter_dims_to_operand_dims) for case in cases} == {0, 1, 2, 3}
    orders = {case.numbers.scatter_dims_to_operand_dims for case in cases}
    assert {(0, 1), (1, 0)} <= orders


@pytest.mark.parametrize("seed", [0])
def test_compiled_windows_agree_with_the_evaluator(seed: int) -> None:
    generator = np.random.default_rng(seed)
    functions, given, wanted, names = {}, {}, {}, {}
    for number, case in enumerate(drawn_cases(generator)):
        dtype, mode = DTYPES[number % len(DTYPES)], MODES[number % len(MODES)]
        program = list(PROGRAMS)[number % len(PROGRAMS)]
        arguments = [
            generator.integers(0, 5, case.operand_shape).astype(dtype),
            case.indices(generator),
            generator.integers(0, 4, case.windows_shape).astype(dtype),
        ]
        arrays = list(map(as_array, arguments))
        name = f"case_{number}"
        names[name] = f"{program} {mode} {case.name}"
        given[name] = arguments
        functions[name] = trace_function(PROGRAMS[program](case, mode), [x.type for x in arrays])
        wanted[name] = functions[name].evaluate(*arrays)[0].host()
    compiled = Results({name: (function, given[name]) for name, function in functions.items()})
    assert {names[name]: text for name, text in compiled.failures.items()} == {}
    for name, expected in wanted.items():
        result = compiled[name][0]
        np.testing.assert_array_equal(result, expected, err_msg=names[name], strict=True)

"""Lowered to StableHLO and raised again, every sample of every op has the same result."""

from __future__ import annotations

import numpy as np
import pytest
from support.op_cases import Case, cases_of, differences, flushed, joined, sampled_ops, values

from axir.dialect.core.array import as_array
from axir.dialect.core.config import config
from axir.dialect.core.extended_dtypes import words_of
from axir.dialect.ops import OPS
from axir.dialect.program.function import Function
from axir.passes.raising.module import raise_module
from axir.passes.transforms.lower_to_stablehlo import lower_functions

# These have no portable form; `test_jax_programs.py` raises calls of LAPACK for them.
_HOST_ONLY = {"eig", "schur", "hessenberg", "tridiagonal"}
# A platform for which small matrices do not become axir's kernels.
_PORTABLE = "vulkan"


# Functions that are computed in loops.
_ITERATED = {"igamma", "igammac", "igamma_grad_a", "polygamma", "random_gamma_grad", "zeta"}


def takes_its_time(name: str) -> bool:
    lowering = getattr(OPS[name].lower, "__module__", "")
    is_iterated = name in _ITERATED or name == "regularized_incomplete_beta"
    return is_iterated or lowering.startswith("axir.dialect.ops.linalg")


def chosen_cases(name: str) -> list[Case]:
    cases = list(joined(cases_of(name)))
    if takes_its_time(name):
        cases = sorted((c for c in cases if c.args[0].size > 3), key=lambda c: c.args[0].size)[:2]
    return cases


@pytest.mark.parametrize("name", [n for n in sampled_ops() if n not in _HOST_ONLY])
def test_raised_op_agrees_with_the_op(name: str) -> None:
    with config(jax_enable_x64=True, jax_disable_jit=True):
        cases = {f"{name}_{case.index}": case for case in chosen_cases(name)}
        functions = {symbol: case.function() for symbol, case in cases.items()}
        with np.errstate(over="ignore"):  # constants of formulas, in half precision
            raised = raise_module(lower_functions(functions, _PORTABLE)).functions
        assert list(raised) == list(cases)
        problems = [
            problem for symbol in cases for problem in disagreements(cases[symbol], raised[symbol])
        ]
    assert not problems, "\n".join(problems)


def disagreements(case: Case, raised: Function) -> list[str]:
    # Compiled code treats denormal numbers as zeros, so formulas need not be correct for them.
    args = [flushed(x) for x in case.args]
    words = [as_array(words_of(x)) for x in args]
    expected = case.evaluate(*args)
    found = values(raised.evaluate(*words))
    return list(
        differences(
            str(case),
            found,
            expected,
            case.tolerance,
            is_elementwise=case.is_elementwise,
            zero_signs=False,
        )
    )


_SAME = (
    "add", "and", "argmax", "atan2", "broadcast_in_dim", "cbrt", "clamp", "complex", "concatenate",
    "conv_general_dilated", "cummax", "cumprod", "cumsum", "dot_general", "dynamic_slice",
    "dynamic_update_slice", "eq", "erf", "erf_inv", "exp", "expm1", "fft", "gather", "iota",
    "logistic", "max", "mul", "pad", "pow", "reduce", "reduce_max", "reduce_precision",
    "reduce_prod", "reduce_sum", "reduce_window_max", "rem", "rev", "round", "scan", "scatter",
    "scatter_add", "scatter_mul", "select_and_scatter_add", "select_n", "sin",
    "slice", "sort", "split", "transpose", "while",
)  # fmt: skip


def test_patterns_of_lowering_become_the_op_again() -> None:
    """Tests that the op of a lowered float32 sample is in the raised function."""
    missing = []
    for name in _SAME:
        case = typical_case(name)
        raised = raise_module(lower_functions({"main": case.function()}, _PORTABLE)).functions[
            "main"
        ]
        found = {equation.primitive.name for equation in raised.equations}
        wanted = {"split": "slice"}.get(name, name)
        if wanted not in found:
            missing.append(f"{name} became {sorted(found)}")
    assert not missing, "\n".join(missing)


def typical_case(name: str) -> Case:
    has_elements = {case.index: any(x.size > 1 for x in case.args) for case in cases_of(name)}
    cases = [case for case in cases_of(name) if has_elements[case.index] or name == "iota"]
    floats = [case for case in cases if case.args and case.args[0].dtype == np.float32]
    return (floats or cases)[0]

"""Compiled by IREE, every sample of every op equals the evaluator's results."""

from __future__ import annotations

import numpy as np
import pytest
from support.op_cases import Case, cases_of, differences, joined, sampled_ops
from support.op_programs import Results, differs_without_host_calls

from axir.dialect.program.function import Function

# Zeros of both signs are equal: IEEE 754 lets the larger and the smaller one of them be either, and
# a sort that is not stable may exchange them.
_ZEROS_ARE_EQUAL = {
    "max", "min", "clamp", "reduce_max", "reduce_min", "scatter_max", "scatter_min", "sort",
    "cummax", "cummin", "reduce_window_max", "reduce_window_min",
}  # fmt: skip


@pytest.mark.parametrize("name", sampled_ops())
def test_compiled_op_agrees_with_the_evaluator(name: str) -> None:
    cases = {f"{name}_{case.index}": case for case in joined(compiled_cases(name))}
    functions = {symbol: case.function() for symbol, case in cases.items()}
    problems = disagreements(cases, functions)
    portable = {
        symbol: functions[symbol]
        for symbol in first_and_largest(cases)
        if differs_without_host_calls(functions[symbol])
    }
    problems += disagreements(cases, portable, with_host_calls=False)
    assert not problems, "\n".join(problems)


def compiled_cases(name: str) -> list[Case]:
    """All samples, without the halves of formulas with several operands.

    A formula computes f16 and bf16 in f32, by one rule; formulas of one operand show it.
    """
    return [
        case
        for case in cases_of(name)
        if not (case.is_formula and len(case.args) > 1 and case.args[0].dtype.itemsize == 2)
    ]


def first_and_largest(cases: dict[str, Case]) -> set[str]:
    """Chooses a sample of each dtype, and one more: portable forms are loops, compiled slowly."""
    largest: dict[np.dtype, str] = {}
    for name, case in cases.items():
        if case.args:
            best = largest.setdefault(case.args[0].dtype, name)
            if case.args[0].size > cases[best].args[0].size:
                largest[case.args[0].dtype] = name
    return {*largest.values(), *list(cases)[:1]}


def disagreements(
    cases: dict[str, Case], functions: dict[str, Function], with_host_calls: bool = True
) -> list[str]:
    results = Results({n: (f, cases[n].args) for n, f in functions.items()}, with_host_calls)
    kind = "" if with_host_calls else "without host calls: "
    problems = [f"{kind}{cases[name]}: {text}" for name, text in results.failures.items()]
    for symbol in functions.keys() - results.failures.keys():
        case = cases[symbol]
        problems += differences(
            f"{kind}{case}",
            results[symbol],
            case.evaluate(),
            case.tolerance,
            is_elementwise=case.is_elementwise,
            or_else=case.evaluate_flushed(),
            zero_signs=case.primitive.name not in _ZEROS_ARE_EQUAL
            or case.params.get("is_stable", False),
        )
    return problems

"""Compiled by IREE, every sample of every op gives what the evaluator gives."""

from __future__ import annotations

import pytest
from op_cases import cases_of, differences
from op_programs import Programs

from axir.dialect.ops import OPS

# Zeros of both signs are equal: IEEE 754 lets the larger and the smaller one of them be either, and
# a sort that is not stable may exchange them.
_ZEROS_ARE_EQUAL = {"max", "min", "reduce_max", "reduce_min", "scatter_max", "scatter_min", "sort"}


@pytest.mark.parametrize("name", OPS)
def test_compiled_op_agrees_with_the_evaluator(name: str) -> None:
    cases = {f"{name}_{case.index}": case for case in cases_of(name)}
    programs = Programs({symbol: case.function() for symbol, case in cases.items()})
    problems = [f"{cases[symbol]}: {text}" for symbol, text in programs.failures.items()]
    for symbol, case in cases.items():
        if symbol in programs.failures:
            continue
        problems += differences(
            str(case),
            programs(symbol, *case.args),
            case.evaluate(),
            case.tolerance,
            is_elementwise=case.is_elementwise,
            zero_signs=name not in _ZEROS_ARE_EQUAL or case.params.get("is_stable", False),
        )
    assert not problems, "\n".join(problems)

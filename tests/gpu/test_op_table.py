"""The samples of the op table on a GPU: right, or refused with a reason.

A software device compiles an op for seconds, so `make test` runs a few, of 32-bit numbers; all of
them run with `GPU_TESTS=all`.
"""

from __future__ import annotations

import numpy as np
import pytest
from support.gpus import REFUSED, RUNS_ALL
from support.op_cases import Case, cases_of, differences, joined, sampled_ops
from support.op_programs import Results

from axir.dialect.core.config import config
from axir.runtime import Device

FEW = ("div", "rem", "sin", "pow", "reduce_sum", "scatter_add")
_NARROW = {"float32", "int32", "uint32", "bool"}

_REORDERED = {"cumprod"}


def is_run(case: Case) -> bool:
    return RUNS_ALL or {str(x.dtype) for x in case.args} <= _NARROW


def comparable(case: Case, results: list[np.ndarray]) -> list[np.ndarray]:
    """Returns results to compare.

    Where products of complex numbers are formed in another order than the evaluator's, infinite
    parts of these may become nan, or the reverse: what is not finite counts as nan.
    """
    if case.primitive.name not in _REORDERED:
        return results
    return [
        np.where(np.isfinite(x), x, x.dtype.type(np.nan)) if np.iscomplexobj(x) else x
        for x in results
    ]


@pytest.mark.parametrize("name", sampled_ops() if RUNS_ALL else FEW)
def test_op_agrees_with_the_evaluator(gpu: Device, name: str) -> None:
    config.update("jax_enable_x64", True)
    cases = {f"{name}_{c.index}": c for c in joined(cases_of(name)) if is_run(c)}
    results = Results({n: (c.function(), c.args) for n, c in cases.items()}, True, gpu)
    problems = []
    for symbol, text in results.failures.items():
        if results.is_refused(symbol):
            REFUSED[str(cases[symbol])] = text.splitlines()[0]
        else:
            problems.append(f"{cases[symbol]}: {text}")
    for symbol in cases.keys() - results.failures.keys():
        case = cases[symbol]
        problems += differences(
            str(case),
            comparable(case, results[symbol]),
            comparable(case, case.evaluate()),
            case.tolerance,
            is_elementwise=case.is_elementwise,
            or_else=[comparable(case, x) for x in case.evaluate_flushed()],
            zero_signs=False,  # sums of zeros may have either sign on GPUs
        )
    assert not problems, "\n".join(problems)

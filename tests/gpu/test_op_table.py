"""The samples of the op table on a GPU: right, or refused with a reason.

A software device compiles an op for seconds, so `make test` runs a few, of 32-bit numbers; all of
them run with `GPU_TESTS=all`.
"""

from __future__ import annotations

import pytest
from support.gpu_ops import gpu_cases, run_cases
from support.gpus import REFUSED, RUNS_ALL
from support.op_cases import Case, sampled_ops

from axir.runtime import Device

FEW = ("div", "rem", "sin", "pow", "reduce_sum", "scatter_add")
_NARROW = {"float32", "int32", "uint32", "bool"}


def is_run(case: Case) -> bool:
    return RUNS_ALL or {str(x.dtype) for x in case.args} <= _NARROW


@pytest.mark.parametrize("name", sampled_ops() if RUNS_ALL else FEW)
def test_op_agrees_with_the_evaluator(gpu: Device, name: str) -> None:
    cases = {symbol: case for symbol, case in gpu_cases(name).items() if is_run(case)}
    problems, refused = run_cases(cases, gpu)
    REFUSED.update(refused)
    assert not problems, "\n".join(problems)

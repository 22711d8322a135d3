"""As machine code of this process, the samples of every op equal the evaluator's results."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.native_programs import NativeResults
from support.op_cases import Case, cases_of, differences, joined, sampled_ops

# The reasons why operations are no kernels; IREE compiles these operations.
_REASONS = re.compile(
    r"it is \d kernels and .|it calls a function of the host|its kernel runs in several workgroups"
)
_OPS_AT_ONCE = 10
_NAMES = sampled_ops()
_COUNT = -(-len(_NAMES) // _OPS_AT_ONCE)
_BATCHES = [_NAMES[start::_COUNT] for start in range(_COUNT)]


def _chosen(name: str) -> list[Case]:
    """All samples; of formulas, which are thousands of operations, only two dtypes."""
    cases = cases_of(name)
    return [x for x in cases if not x.is_formula or x.args[0].dtype in (np.float32, np.float64)]


@pytest.mark.parametrize("names", _BATCHES, ids=lambda names: names[0])
def test_ops_as_machine_code_agree_with_the_evaluator(names: list[str]) -> None:
    problems, reasons = [], []
    for name in names:
        cases = {f"{name}_{case.index}": case for case in joined(_chosen(name))}
        results = NativeResults({symbol: (x.function(), x.args) for symbol, x in cases.items()})
        reasons += results.reasons.values()
        for symbol, got in results.results.items():
            case = cases[symbol]
            problems += differences(
                str(case), got, case.evaluate(), case.tolerance, is_elementwise=case.is_elementwise,
                zero_signs=False, or_else=case.evaluate_flushed(),
            )  # fmt: skip
    assert not problems, "\n".join(problems)
    assert [reason for reason in reasons if not _REASONS.match(reason)] == []

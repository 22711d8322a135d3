"""In kernels, the samples of every op with a rule equal the evaluator's results."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator

import numpy as np
import pytest
from support.op_cases import Case, cases_of, differences, sampled_ops
from support.op_programs import Programs

from axir.dialect.core.extended_dtypes import extended
from axir.passes.fuse import fuse_programs

# Programs outside of kernels, by the reason that the pass gives: types, operations without a rule
# yet, and operations that are compiled for the whole machine or call the host.
_REASONS = re.compile(
    r"there is no rule for (stablehlo\.(bitcast_convert|convolution|sort|fft"
    r"|reduce_window|select_and_scatter|rng_bit_generator|reduce_precision|complex|real|imag"
    r"|custom_call|batch_norm_\w+|after_all)|chlo\.\w+|scf\.\w+|linalg\.generic)"
    r"|an empty array|numbers of type|it calls a function of the host|in several workgroups"
    r"|more than one thread should|it has more than|a scatter of several arrays"
)
_OPS_AT_ONCE = 10


def _is_real(x: np.dtype) -> bool:
    return isinstance(x, np.dtype) and x.kind != "c" and not issubclass(x.type, extended)


def _chosen(name: str) -> Iterator[Case]:
    """Returns the largest sample of each dtype in kernels; for common dtypes the smallest, too."""
    groups: dict[tuple[np.dtype, ...], list[Case]] = {}
    for case in cases_of(name):
        # Formulas are thousands of operations, and each is an op of the table too: samples of one
        # dtype show that they fit together.
        if case.is_formula and case.args[0].dtype != np.float32:
            continue
        kinds = (*(x.dtype for x in case.args), *case.results)
        if all(map(_is_real, kinds)) and all(x.size for x in case.args):
            groups.setdefault(kinds, []).append(case)
    for group in groups.values():
        ordered = sorted(group, key=lambda case: sum(x.size for x in case.args))
        is_common = not group[0].is_formula and {x.dtype.itemsize for x in group[0].args} <= {1, 4}
        ends = (ordered[0], ordered[-1]) if is_common else ordered[-1:]
        yield from {id(case): case for case in ends}.values()


_NAMES = sampled_ops()
_COUNT = -(-len(_NAMES) // _OPS_AT_ONCE)
_BATCHES = [_NAMES[start::_COUNT] for start in range(_COUNT)]


@pytest.mark.parametrize("names", _BATCHES, ids=lambda names: names[0])
def test_ops_in_kernels_agree_with_the_evaluator(
    names: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(fuse_programs, "pays", lambda operations: True)
    cases = {f"{name}_{case.index}": case for name in names for case in _chosen(name)}
    functions = {symbol: case.function() for symbol, case in cases.items()}
    with caplog.at_level(logging.INFO, fuse_programs.__name__):
        programs = Programs(functions, fuses=True, joins=True)
    results = programs.run_all({symbol: case.args for symbol, case in cases.items()})
    problems = [f"{cases[name]}: {text}" for name, text in programs.failures.items()]
    for symbol, got in results.items():
        case = cases[symbol]
        problems += differences(
            str(case), got, case.evaluate(), case.tolerance, is_elementwise=case.is_elementwise,
            zero_signs=False, or_else=case.evaluate_flushed(),
        )  # fmt: skip
    assert not problems, "\n".join(problems)
    of_pass = [x for x in caplog.records if x.name == fuse_programs.__name__]
    reasons = [record.getMessage() for record in of_pass]
    assert [reason for reason in reasons if not _REASONS.search(reason)] == []
    assert len(reasons) < max(2, len(functions))

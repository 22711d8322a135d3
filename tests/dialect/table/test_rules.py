"""No op lacks a rule, and inference agrees with evaluation."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from support.op_cases import Case, cases_of, sampled_ops

from axir.dialect.core import dtypes
from axir.dialect.core.array import as_array
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops import OPS
from axir.dialect.program.operation import RULES, Unsupported


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", OPS)
def test_rule_is_there_or_its_absence_explained(name: str, rule: str) -> None:
    primitive = OPS[name]
    found = getattr(primitive, rule)
    if rule == "jvp" and found is None:
        found = primitive.value_and_jvp
    assert callable(found)
    if isinstance(found, Unsupported):
        assert found.name == name
        assert found.rule == rule
        assert len(found.reason) > 10
        if OPS[name].batch_named is None and name != "joined_psum":
            assert rule in ("jvp", "transpose", "batch")
        if rule == "batch":
            assert not any(case.args for case in cases_of(name))


# Ops with all samples at an edge: steps, which have no other interesting values, and ops that read
# one operand and send its derivative to another.
_STEPS = {"round", "lu_solve"}


@pytest.mark.parametrize("name", sampled_ops())
def test_op_has_samples(name: str) -> None:
    cases = cases_of(name)
    assert cases
    assert OPS[name].name == name
    differentiable = [case for case in cases if any(case.active) and _has_inexact_result(case)]
    has_derivative = not isinstance(OPS[name].jvp, Unsupported)
    if differentiable and has_derivative and name not in _STEPS:
        assert any(case.is_smooth for case in differentiable)


def _has_inexact_result(case: Case) -> bool:
    return any(dtypes.is_inexact(t.dtype) for t in _inferred(case, case.types))


def _inferred(case: Case, types: list[ShapedArray]) -> list[ShapedArray]:
    results = case.primitive.infer(*types, **case.params)
    return list(results) if case.primitive.multiple_results else [results]


@pytest.mark.parametrize("name", sampled_ops())
def test_inference_agrees_with_evaluation(name: str) -> None:
    for case in cases_of(name):
        before = [x.tobytes() for x in case.args]
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("error")
            results = case.primitive.evaluate(*case.args, **case.params)
        results = results if case.primitive.multiple_results else [results]
        assert [x.tobytes() for x in case.args] == before, f"{case} writes to its operands"
        for got, expected in zip(results, _inferred(case, case.types), strict=True):
            array = np.asarray(got)
            assert array.shape == expected.shape, str(case)
            # Evaluation may use a wider dtype of the kind, which is then rounded to the right one.
            assert dtypes.kind(array.dtype) == dtypes.kind(expected.dtype), str(case)


@pytest.mark.parametrize("name", sampled_ops())
def test_applying_the_op_gives_the_inferred_types(name: str) -> None:
    for case in cases_of(name):
        inferred = _inferred(case, case.types)
        results = case.bind(*(as_array(x) for x in case.args))
        found = [(x.shape, x.dtype) for x in results]
        assert found == [(t.shape, t.dtype) for t in inferred], str(case)


@pytest.mark.parametrize("name", sampled_ops())
def test_weak_types_come_from_weak_operands_only(name: str) -> None:
    for case in cases_of(name):
        strong = _inferred(case, case.types)
        asked_for = bool(case.params.get("weak_type"))
        assert all(t.weak_type is asked_for for t in strong), str(case)
        if case.primitive.is_call:
            continue  # a function's types are those it was traced for
        weak_operands = [ShapedArray(t.shape, t.dtype, True) for t in case.types]
        weak = _inferred(case, weak_operands)
        assert [(t.shape, t.dtype) for t in weak] == [(t.shape, t.dtype) for t in strong], str(case)
        operand_dtypes = {dtypes.real_dtype(x.dtype) for x in case.args}
        assert all(
            dtypes.real_dtype(t.dtype) in operand_dtypes
            for t in weak
            if t.weak_type and not asked_for
        ), str(case)

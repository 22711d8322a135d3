"""Elementwise ops of numbers that the compiler knows equal the evaluator's results.

Samples are arguments with values unknown to the compiler. It folds constants, and an operation that
is not defined for a constant makes all its results undefined. So each operand is a constant of
equal elements in turn, and a product with nan, which the compiler knows to be nan. Small functions
become kernels; functions in separate dispatches of IREE are tested with nan.

Elsewhere: arrays of such numbers as arguments (`test_compiled.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.op_cases import Case, cases_of, differences, flushed, read_only, sampled_ops
from support.op_programs import Programs

from axir.dialect.core import dtypes
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops import OPS
from axir.dialect.ops.elementwise.arithmetic import mul
from axir.dialect.ops.shape.broadcasting import broadcast_in_dim
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function
from axir.passes.fuse import fuse_programs

_BATCHES = 4
# IEEE 754 lets the larger and the smaller one of zeros of both signs be either; no standard gives
# the sign of a part of `wofz` that is zero.
_ZEROS_ARE_EQUAL = {"max", "min", "clamp", "wofz"}
_HIDDEN_NAN = "x * nan"
_Known = str | complex


def _elementwise_cases() -> Iterator[Case]:
    """Gives a sample for each op, its inexact dtypes, and its parameters.

    Formulas are made of these ops, and random keys are no numbers.
    """
    for name in sampled_ops():
        found: set[Any] = set()
        for case in cases_of(name):
            kinds = [x.dtype for x in case.args]
            key = (*kinds, repr(case.params))
            is_wanted = case.is_elementwise and not case.is_formula and key not in found
            if is_wanted and all(map(dtypes.is_inexact, kinds)):
                found.add(key)
                yield case


def _known_numbers(dtype: np.dtype) -> list[_Known]:
    """The constant operands; halves are computed in single precision, and need few."""
    nan, inf = np.nan, np.inf
    if dtypes.is_complex(dtype):
        return [complex(nan, nan), complex(-0.0, -0.0)]
    if dtype.itemsize == 2:
        return [_HIDDEN_NAN]
    limits = ml_dtypes.finfo(dtype)
    extremes = [float(limits.max), float(limits.smallest_subnormal)]
    return [_HIDDEN_NAN, nan, inf, -inf, -0.0, *extremes]


class _Constants:
    """An op; its operands become known numbers, one after the other.

    Args:
        case: A sample of the op, with the dtype and the parameters.
        known: The numbers.
    """

    def __init__(self, case: Case, known: Sequence[_Known]):
        self.case = case
        self.dtype = case.args[0].dtype
        self.labels = [(number, place) for number in known for place in range(len(case.args))]
        edges = [1.0, -0.0, np.nan, np.inf] if len(case.args) > 1 else [1.0, 2.0]
        self.operand = read_only(np.array(edges).astype(self.dtype))

    def function(self) -> Function:
        """A function of the operands that are not known; returns all results."""

        def apply(x: Any) -> list[Any]:
            results = []
            for number, place in self.labels:
                value = np.asarray(np.nan if number == _HIDDEN_NAN else number).astype(self.dtype)
                scalar = x.owner.record(OPS["constant"], (), {"value": value})
                known = broadcast_in_dim(scalar, x.shape, ())
                operands = [x] * len(self.case.args)
                operands[place] = mul(x, known) if number == _HIDDEN_NAN else known
                results += self.case.bind(*operands)
            return results

        kind = ShapedArray(self.operand.shape, self.dtype)
        return trace_function(apply, [kind], name=self.case.primitive.name)

    def problems(self, results: Sequence[np.ndarray]) -> Iterator[str]:
        """Tells where results differ from the evaluator's."""
        for (number, place), got in zip(self.labels, results, strict=True):
            value = np.nan if number == _HIDDEN_NAN else number
            operands = [self.operand] * len(self.case.args)
            operands[place] = np.full(self.operand.shape, np.asarray(value).astype(self.dtype))
            with_zeros = self.case.evaluate(*map(flushed, operands))
            yield from differences(
                f"{self.case.primitive.name} of {number} as operand {place}, {self.dtype}",
                [got],
                self.case.evaluate(*operands),
                self.case.tolerance,
                is_elementwise=True,
                zero_signs=self.case.primitive.name not in _ZEROS_ARE_EQUAL,
                or_else=[[flushed(x) for x in with_zeros]],
            )


def _has_agreed_edges(name: str) -> bool:
    """Tells whether implementations agree about edges of complex numbers, and samples hold them."""
    return any(np.isnan(x.args[0]).any() for x in cases_of(name) if x.args[0].dtype.kind == "c")


def _found(constants: Sequence[_Constants], fuses: bool) -> list[str]:
    named = {f"{x.case.primitive.name}_{number}": x for number, x in enumerate(constants)}
    functions = {name: x.function() for name, x in named.items()}
    programs = Programs(functions, fuses=fuses, joins=True)
    results = programs.run_all({name: [x.operand] for name, x in named.items()})
    problems = [f"{name}: {text}" for name, text in programs.failures.items()]
    return problems + [p for name, got in results.items() for p in named[name].problems(got)]


@pytest.mark.parametrize("batch", range(_BATCHES))
def test_kernels_give_of_constants_what_the_evaluator_gives(
    batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuse_programs, "pays", lambda operations: True)
    cases = [x for x in _elementwise_cases() if not dtypes.is_complex(x.args[0].dtype)]
    chosen = [_Constants(x, _known_numbers(x.args[0].dtype)) for x in cases[batch::_BATCHES]]
    assert not (found := _found(chosen, fuses=True)), "\n".join(found)


@pytest.mark.parametrize("batch", range(_BATCHES))
def test_dispatches_keep_nan(batch: int) -> None:
    cases = [x for x in _elementwise_cases() if x.args[0].dtype in (dtypes.float32, dtypes.float64)]
    chosen = [_Constants(x, [_HIDDEN_NAN]) for x in cases[batch::_BATCHES]]
    assert not (found := _found(chosen, fuses=False)), "\n".join(found)


@pytest.mark.parametrize("batch", range(_BATCHES))
def test_dispatches_give_of_complex_constants_what_the_evaluator_gives(batch: int) -> None:
    cases = [
        x
        for x in _elementwise_cases()
        if x.args[0].dtype == dtypes.complex64 and _has_agreed_edges(x.primitive.name)
    ]
    chosen = [_Constants(x, _known_numbers(x.args[0].dtype)) for x in cases[batch::_BATCHES]]
    assert not (found := _found(chosen, fuses=False)), "\n".join(found)

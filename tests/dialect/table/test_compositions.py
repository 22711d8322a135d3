"""Transformations of transformations of calls, compiled by IREE in one program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.op_cases import Case, cases_of, differences, differentiable_ops, random_like, values
from support.op_programs import Results

from axir.dialect.core import dtypes
from axir.dialect.core.array import as_array
from axir.dialect.core.config import config
from axir.dialect.core.errors import UnsupportedRuleError
from axir.dialect.core.symbolic_zeros import UndefinedPrimal
from axir.dialect.ops.calls.jit_call import call
from axir.dialect.ops.elementwise.family import instantiate
from axir.dialect.program.derived_functions import derive
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function
from axir.passes.transforms.linearize import linearize
from axir.passes.transforms.simplify import simplify_function
from axir.passes.transforms.transpose import transpose

_SIZE = 2
# Rounding differs in each op of a chain; the derivatives here have up to ten.
_TOLERANCE = 8


def _chosen_case(name: str) -> Case:
    """A smooth sample, in float32 if possible."""
    cases = [
        case
        for case in cases_of(name)
        if case.is_smooth
        and any(case.active)
        and any(map(dtypes.is_inexact, case.results))
        and all(x.size for x in case.args)
    ]
    return min(cases, key=lambda case: case.args[case.active.index(True)].dtype != np.float32)


def _called(case: Case) -> Function:
    """The op within a jit."""
    inner = case.function()
    return trace_function(lambda *xs: call(inner, *xs), case.types, name="caller")


def _batched_jvp(case: Case) -> tuple[Function, list[np.ndarray]]:
    """vmap of jvp of jit, and arguments for it."""
    function = derive(_called(case), "jvp", case.active, True).function
    generator = case.generator()
    tangents = [random_like(generator, x) for x, a in zip(case.args, case.active, strict=True) if a]
    return _batched(function, [*case.args, *tangents])


def _batched_vjp(case: Case) -> tuple[Function, list[np.ndarray]]:
    """vmap of the transposed linear part of jit, and arguments for it."""
    function = _called(case)
    inexact = [t for t in function.output_types if dtypes.is_inexact(t.dtype)]

    def pull_back(*arguments: Any) -> list[Any]:
        primals = arguments[: len(case.args)]
        split = linearize(function, [*primals, *function.captured], _active(function, case))
        linear = split.linear
        remaining = iter(arguments[len(case.args) :])
        given = [
            next(remaining)
            for t, active in zip(function.output_types, split.active_outputs, strict=True)
            if active and dtypes.is_inexact(t.dtype)
        ]
        unknown = [UndefinedPrimal(v.type) for v in linear.inputs]
        pulled = transpose(linear, [*unknown, *linear.captured], given)
        return [instantiate(ct) for ct in pulled[: len(unknown)]]

    traced = trace_function(pull_back, [*case.types, *inexact], name="pull_back")
    generator = case.generator()
    cotangents = [random_like(generator, t) for t in inexact]
    return _batched(traced, [*case.args, *cotangents])


def _active(function: Function, case: Case) -> list[bool]:
    return [*case.active, *(False for _ in function.captures)]


def _batched(function: Function, args: list[np.ndarray]) -> tuple[Function, list[np.ndarray]]:
    axes = (*(0 for _ in args), *(None for _ in function.captures))
    batched = derive(function, "vmap", _SIZE, axes, (0,) * len(function.outputs)).function
    whole = trace_function(
        lambda *xs: batched.interpret([*xs, *function.captured, *batched.captured]),
        [v.type for v in batched.inputs[: len(args)]],
        name=function.name,
    )
    stacked = [np.ascontiguousarray(np.stack([x] * _SIZE)) for x in args]
    return simplify_function(whole), stacked


_COMPOSITIONS = {"jvp": _batched_jvp, "vjp": _batched_vjp}


@pytest.fixture(scope="module")
def composed() -> dict[tuple[str, str], tuple[Case, Function, list[np.ndarray]]]:
    """All functions with their arguments, by op and composition."""
    found = {}
    with config(jax_enable_x64=True):
        for name in differentiable_ops():
            case = _chosen_case(name)
            for kind, compose in _COMPOSITIONS.items():
                try:
                    found[name, kind] = (case, *compose(case))
                except UnsupportedRuleError:
                    continue  # the rule names the parameters without derivative
    return found


@pytest.fixture(scope="module")
def results(composed: Any) -> Results:
    """Results of the compositions."""
    # Not a generator: the option, still set while tests run, would hide their changes.
    with config(jax_enable_x64=True):
        return Results(
            {
                f"{name}_{kind}": (function, args)
                for (name, kind), (_, function, args) in composed.items()
            }
        )


@pytest.mark.parametrize("kind", _COMPOSITIONS)
@pytest.mark.parametrize("name", differentiable_ops())
def test_compiled_composition_agrees_with_the_evaluator(
    name: str, kind: str, composed: Any, results: Results
) -> None:
    if (name, kind) not in composed:
        pytest.skip(f"{name} has no {kind}: a rule says why")
    case, function, args = composed[name, kind]
    symbol = f"{name}_{kind}"
    assert symbol not in results.failures, results.failures[symbol]
    expected = values(function.evaluate(*map(as_array, args)))
    found = differences(
        f"{kind} of {case}",
        results[symbol],
        expected,
        _TOLERANCE * case.tolerance,
        zero_signs=False,
    )
    assert list(found) == []

"""Derivatives: against finite differences, against each other, and their types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from support.op_cases import (
    Case,
    cases_of,
    differences,
    differentiable_ops,
    random_like,
    resolution,
    smooth_cases,
    values,
)

from axir.dialect.core import dtypes
from axir.dialect.core.array import as_array
from axir.dialect.core.errors import UnsupportedRuleError
from axir.dialect.core.symbolic_zeros import UndefinedPrimal, Zero
from axir.dialect.ops import OPS
from axir.dialect.ops.elementwise.family import instantiate
from axir.dialect.program.derived_functions import derive
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.operation import Unsupported
from axir.passes.transforms.jvp import jvp
from axir.passes.transforms.linearize import linearize
from axir.passes.transforms.transpose import transpose

Arrays = list[np.ndarray]

# Ops with a declared derivative of zero, which is not the limit of their differences.
_DECLARED_ZERO = {"stop_gradient", "nextafter"}
_DIFFERENTIABLE = differentiable_ops()
_TRANSPOSABLE = [n for n in _DIFFERENTIABLE if not isinstance(OPS[n].transpose, Unsupported)]


# Cases ------------------------------------------------------------------------------------------


def _directions(case: Case) -> list[list[Any]]:
    """Tangents of the operands: of all float operands together, and of each separately."""
    generator = case.generator()
    full = [
        random_like(generator, x) if active else Zero(t.to_tangent_aval())
        for x, active, t in zip(case.args, case.active, case.types, strict=True)
    ]
    directions = [full]
    if sum(case.active) > 1:
        for chosen in range(len(full)):
            if case.active[chosen]:
                directions.append(
                    [
                        x if i == chosen else Zero(case.types[i].to_tangent_aval())
                        for i, x in enumerate(full)
                    ]
                )
    return directions


def _jvp(
    function: Function, primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    still = [Zero(v.type.to_tangent_aval()) for v in function.captures]
    return jvp(function, [*primals, *function.captured], [*tangents, *still])


def _tangent_values(function: Function, args: Sequence[Any], tangents: Sequence[Any]) -> Arrays:
    """Tangents of the float results, by the jvp driver on values; zeros are made explicit."""
    primals = [as_array(x) for x in args]
    wrapped = [t if type(t) is Zero else as_array(t) for t in tangents]
    _, results = _jvp(function, primals, wrapped)
    return values([instantiate(t) for t in results if not _is_trivial(t)])


def _is_trivial(tangent: Any) -> bool:
    return type(tangent) is Zero and tangent.aval.dtype == dtypes.float0


def _float_results(function: Function, args: Sequence[Any]) -> Arrays:
    results = values(function.evaluate(*map(as_array, args)))
    return [x for x in results if dtypes.is_inexact(x.dtype)]


# Finite differences -----------------------------------------------------------------------------


def _central_differences(
    function: Callable[..., Arrays], args: Sequence[np.ndarray], tangents: Sequence[Any]
) -> Arrays:
    """Derivatives of a function's results in a direction, with an error of order step squared."""
    step = _resolution_of(args) ** (1 / 3)

    def moved(distance: float) -> Arrays:
        return function(
            *[
                x if type(t) is Zero else (x + distance * t).astype(x.dtype)
                for x, t in zip(args, tangents, strict=True)
            ]
        )

    pairs = zip(moved(step), moved(-step), strict=True)
    with np.errstate(invalid="ignore"):  # nan on both sides stays nan
        return [np.asarray((high - low) / (2 * step)).astype(high.dtype) for high, low in pairs]


def _resolution_of(args: Sequence[np.ndarray]) -> float:
    return max(resolution(x.dtype) for x in args if dtypes.is_inexact(x.dtype))


def _disagreement(
    label: str, results: Arrays, expected: Arrays, around: Arrays, args: Sequence[np.ndarray]
) -> list[str]:
    """Compares with finite differences; their rounding errors grow with the values around."""
    found = []
    allowed = 300 * _resolution_of(args) ** (2 / 3)
    for got, want, value in zip(results, expected, around, strict=True):
        is_known = np.isfinite(value)  # out of bounds, `fill` modes give nan
        got, want, value = got[is_known], want[is_known], value[is_known]
        scale = max([1.0, *np.abs(want).tolist(), *np.abs(value).tolist()])
        worst = np.max(np.abs(got - want), initial=0)
        if not worst <= allowed * scale:
            found.append(f"{label}: {got.tolist()} differs from the differences {want.tolist()}")
    return found


@pytest.mark.parametrize("name", _DIFFERENTIABLE)
def test_jvp_is_the_limit_of_differences(name: str) -> None:
    problems = []
    for case in smooth_cases(name):
        function = case.function()
        around = _float_results(function, case.args)
        for tangents in _directions(case):
            got = _tangent_values(function, case.args, tangents)
            if name in _DECLARED_ZERO:
                assert not any(x.any() for x in got)
                continue
            want = _central_differences(
                lambda *xs, f=function: _float_results(f, xs), case.args, tangents
            )
            problems += _disagreement(str(case), got, want, around, case.args)
    assert not problems, "\n".join(problems)


def _tangent_function(case: Case, tangents: Sequence[Any]) -> Function:
    """The derivative in a fixed direction, as a traced function of the operands."""
    function = case.function()

    def derivative(*primals: Any) -> list[Any]:
        _, results = _jvp(function, primals, tangents)
        return [instantiate(t) for t in results if not _is_trivial(t)]

    return trace_function(derivative, case.types)


@pytest.mark.parametrize("name", [n for n in _DIFFERENTIABLE if n not in _DECLARED_ZERO])
def test_second_derivative_is_the_limit_of_differences(name: str) -> None:
    problems = []
    for case in smooth_cases(name):
        tangents = _directions(case)[0]
        first = _tangent_function(case, [t if type(t) is Zero else as_array(t) for t in tangents])
        around = _float_results(first, case.args)
        try:
            got = _tangent_values(first, case.args, tangents)
        except UnsupportedRuleError:
            continue  # the rule names the operands without second derivative
        want = _central_differences(lambda *xs, f=first: _float_results(f, xs), case.args, tangents)
        problems += _disagreement(str(case), got, want, around, case.args)
    assert not problems, "\n".join(problems)


# The transformations agree ----------------------------------------------------------------------


def _explicit(function: Function, args: Sequence[Any], tangents: Sequence[Any]) -> Arrays:
    """Tangents by the traced tangent function."""
    active = tuple(type(t) is not Zero for t in tangents)
    derived = derive(function, "jvp", active, True).function
    moving = [t for t in tangents if type(t) is not Zero]
    return values(derived.evaluate(*map(as_array, (*args, *moving))))[len(function.outputs) :]


@pytest.mark.parametrize("name", _DIFFERENTIABLE)
def test_traced_jvp_and_linearize_agree_with_jvp(name: str) -> None:
    problems: list[str] = []
    for case in smooth_cases(name):
        function = case.function()
        primals = [as_array(x) for x in case.args]
        for tangents in _directions(case):
            want = _tangent_values(function, case.args, tangents)
            traced = _explicit(function, case.args, tangents)
            problems += differences(f"traced jvp of {case}", traced, want, 4)
            moving = [t for t in tangents if type(t) is not Zero]
            linearized = linearize(function, primals, [type(t) is not Zero for t in tangents])
            results = iter(values(linearized.linear.evaluate(*map(as_array, moving))))
            found = [
                next(results) if active else np.zeros(t.shape, t.dtype)
                for t, active in zip(function.output_types, linearized.active_outputs, strict=True)
                if dtypes.is_inexact(t.dtype)
            ]
            problems += differences(f"linearize of {case}", found, want, 4, zero_signs=False)
    assert not problems, "\n".join(problems)


def _pairing(cotangents: Sequence[Any], tangents: Sequence[Any]) -> tuple[float, float]:
    """The sum of Re(c t) over all elements, and the sum of its absolute terms."""
    total = magnitude = 0.0
    for cotangent, tangent in zip(cotangents, tangents, strict=True):
        if type(cotangent) is Zero:
            continue
        product = np.asarray(cotangent).astype(np.complex128) * np.asarray(tangent)
        total += float(product.real.sum())
        magnitude += float(np.abs(product).sum())
    return total, magnitude


def _is_adjoint(
    cotangents: Sequence[Any], moved: Sequence[Any], pulled: Sequence[Any], tangents: Sequence[Any]
) -> bool:
    """Whether <ct, J t> equals <J^T ct, t> to within rounding."""
    left, left_size = _pairing(cotangents, moved)
    right, right_size = _pairing(pulled, tangents)
    allowed = 256 * _resolution_of(list(tangents)) * max(left_size, right_size, 1e-30)
    return abs(left - right) <= allowed


def _hosts(results: Sequence[Any]) -> list[Any]:
    return [x if type(x) is Zero else x.host() for x in results]


@pytest.mark.parametrize("name", _DIFFERENTIABLE)
def test_transposed_linear_part_is_the_adjoint(name: str) -> None:
    for case in smooth_cases(name):
        function = case.function()
        primals = [as_array(x) for x in case.args]
        for tangents in _directions(case):
            moving = [t for t in tangents if type(t) is not Zero]
            active = [type(t) is not Zero for t in tangents]
            linear = linearize(function, primals, active).linear
            if not linear.outputs:
                continue
            moved = values(linear.evaluate(*map(as_array, moving)))
            if not all(np.isfinite(x).all() for x in moved):
                continue  # a maximum of nothing
            generator = case.generator()
            cotangents = [random_like(generator, x) for x in moved]
            unknown = [UndefinedPrimal(v.type) for v in linear.inputs]
            arguments = [*unknown, *linear.captured]
            try:
                results = transpose(linear, arguments, [as_array(c) for c in cotangents])
            except UnsupportedRuleError:
                continue  # forward mode only
            pulled = _hosts(results[: len(moving)])
            assert _is_adjoint(cotangents, moved, pulled, moving), str(case)


@pytest.mark.parametrize("name", _TRANSPOSABLE)
def test_transpose_rule_is_the_adjoint_in_each_operand(name: str) -> None:
    checked = 0
    for case in smooth_cases(name):
        for chosen, is_active in enumerate(case.active):
            if is_active:
                checked += _check_transpose_rule(case, chosen)
    assert checked


def _check_transpose_rule(case: Case, chosen: int) -> bool:
    """Compares the rule with the jvp in one operand; False if the op is not linear in it."""
    function, generator = case.function(), case.generator()
    tangents: list[Any] = [Zero(t.to_tangent_aval()) for t in case.types]
    tangent = tangents[chosen] = random_like(generator, case.args[chosen])
    operands: list[Any] = [as_array(x) for x in case.args]
    operands[chosen] = UndefinedPrimal(case.types[chosen])
    given = [
        as_array(random_like(generator, t)) if dtypes.is_inexact(t.dtype) else Zero(t)
        for t in (t.to_tangent_aval() for t in function.output_types)
    ]
    cotangents = given if case.primitive.multiple_results else given[0]
    assert case.primitive.transpose is not None
    try:
        results = case.primitive.transpose(cotangents, *operands, **case.params)
    except UnsupportedRuleError:
        return False
    assert len(results) == len(operands), str(case)
    assert all(r is None for i, r in enumerate(results) if i != chosen), str(case)
    if results[chosen] is None:
        return False
    moved = _tangent_values(function, case.args, tangents)
    inexact = [x.host() for x in given if type(x) is not Zero]
    assert _is_adjoint(inexact, moved, _hosts([results[chosen]]), [tangent]), str(case)
    return True


# Types ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", _DIFFERENTIABLE)
def test_tangents_and_cotangents_have_the_types_of_what_they_belong_to(name: str) -> None:
    for case in cases_of(name):
        if not any(case.active):
            continue
        function = case.function()
        try:
            derived = derive(function, "jvp", case.active, True).function
        except UnsupportedRuleError:
            continue  # the rule names the parameters without derivative
        inexact = [t for t in function.output_types if dtypes.is_inexact(t.dtype)]
        tangent_types = derived.output_types[len(function.outputs) :]
        assert [(t.shape, t.dtype) for t in tangent_types] == [
            (t.shape, t.dtype) for t in inexact
        ], str(case)
        split = derive(function, "linearize", case.active)
        if not any(split.active_outputs):
            continue
        linear = split.linear
        is_linear = [*[True] * len(linear.inputs), *[False] * len(linear.captures)]
        outputs = (True,) * len(linear.outputs)
        try:
            pulled = derive(linear, "transpose", tuple(is_linear), outputs, True).function
        except UnsupportedRuleError:
            continue  # forward mode only
        assert [(t.shape, t.dtype) for t in pulled.output_types] == [
            (v.type.shape, v.type.dtype) for v in linear.inputs
        ], str(case)

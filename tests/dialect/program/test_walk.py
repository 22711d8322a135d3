"""Walks over equations: environments, application in order, slices, and restricted functions."""

from __future__ import annotations

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir.dialect.core.array import as_array
from axir.dialect.core.state import state
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.effects import is_effectful
from axir.dialect.program.function_tracing import Copy, restricted, trace_function
from axir.dialect.program.module_writer import embed_captures
from axir.dialect.program.tracer import Trace
from axir.dialect.program.walk import (
    Environment,
    apply_equations,
    backward_slice,
    dependents,
)

SCALAR = ShapedArray((), np.dtype("float32"))


def names(equations):
    return [e.primitive.name for e in equations]


@pytest.fixture
def function():
    """Of (x, y): sin x, cos y, and the product of exp(sin x) and y."""

    def body(x, y):
        s = jnp.sin(x)
        return [s, jnp.cos(y), jnp.exp(s) * y]

    return trace_function(body, [SCALAR, SCALAR])


def test_an_environment_holds_values_of_variables_and_literals_their_own():
    function = trace_function(lambda x: [x * 2.0, jnp.sin(x)], [SCALAR])
    environment = Environment.of(function, [as_array(np.float32(3))])
    apply_equations(function.equations, environment)
    assert [float(x) for x in environment.values_of(function.outputs)] == [
        6.0,
        float(np.sin(np.float32(3))),
    ]
    literal = next(v for v in function.equations[0].operands if v not in environment)
    assert float(environment[literal]) == 2.0


def test_an_environment_takes_one_value_for_each_argument(function):
    with pytest.raises(ValueError, match="zip"):
        Environment.of(function, [1.0])
    with pytest.raises(KeyError):
        Environment()[function.inputs[0]]


def test_each_equation_is_the_origin_while_it_is_applied(function):
    origins = []

    def bind(equation, operands):
        origins.append(state.origin)
        return equation.primitive.bind(*operands, **equation.params)

    apply_equations(function.equations, Environment.of(function, [1.0, 2.0]), bind)
    assert origins == list(function.equations)
    assert state.origin is None


def test_a_slice_has_what_a_variable_depends_on(function):
    x, y = function.inputs
    found = backward_slice(function.equations, [function.outputs[2]])
    assert names(found.equations) == ["sin", "exp", "mul"]
    assert found.marks([x, y, function.outputs[1]]) == (True, True, False)


def test_a_slice_ends_at_what_is_given(function):
    found = backward_slice(
        function.equations, [function.outputs[2]], given={function.outputs[0]: 1.0}
    )
    assert names(found.equations) == ["exp", "mul"]
    assert found.marks(function.inputs) == (False, True)
    assert backward_slice(function.equations, function.inputs[:1]).equations == []


def test_a_slice_keeps_what_it_is_told_to_keep():
    def body(x, y):
        axir.debug.callback(lambda value: None, jnp.cos(y))
        return [jnp.sin(x)]

    function = trace_function(body, [SCALAR, SCALAR])
    assert names(backward_slice(function.equations, function.outputs).equations) == ["sin"]
    kept = backward_slice(function.equations, function.outputs, is_kept=is_effectful)
    assert names(kept.equations) == ["cos", "debug_callback", "sin"]
    assert kept.marks(function.inputs) == (True, True)


def test_a_slice_has_what_stands_in_the_place_of_equations(function):
    seen = []

    def enter(equation, needed):
        seen.append((equation.primitive.name, [v in needed for v in equation.results]))
        return None if equation.primitive.name == "exp" else equation

    found = backward_slice(function.equations, [function.outputs[2]], enter=enter)
    assert seen == [("mul", [True]), ("exp", [True])]
    assert names(found.equations) == ["mul"]
    assert found.marks(function.inputs) == (False, True)


def test_dependents_are_reached_forwards(function):
    x, y = function.inputs
    assert [v in dependents(function.equations, [x]) for v in function.outputs] == [1, 0, 1]
    assert [v in dependents(function.equations, [y]) for v in function.outputs] == [0, 1, 1]


def test_a_restricted_function_computes_the_same(function):
    y = function.inputs[1]
    s, _, product = function.outputs
    equations = backward_slice(function.equations, [product], given={s}).equations
    cut = restricted(function, equations, [s, y], [product], "Test")
    assert names(cut.equations) == ["exp", "mul"]
    (value,) = cut.evaluate(np.float32(0.5), np.float32(2))
    np.testing.assert_allclose(value, 2 * np.exp(np.float32(0.5)), rtol=1e-6)


def test_constants_stay_constants_and_captures_captures():
    constant, captured = jnp.arange(3.0), jnp.ones(3)
    inner = embed_captures(trace_function(lambda x: [x * constant], [SCALAR]))

    def body(x, y):
        return [inner.interpret([x])[0] + captured, y]

    with Trace("outer") as trace:  # the constant becomes a literal of this function
        x, y = trace.add_input(SCALAR), trace.add_input(SCALAR)
        trace.embed(constant)
        function = trace.finish(body(x, y))
    equations = backward_slice(function.equations, function.outputs[:1]).equations
    cut = restricted(function, equations, function.inputs[:1], function.outputs[:1], "Test")
    assert len(cut.captured) == len(function.captured)
    np.testing.assert_array_equal(cut.evaluate(np.float32(2))[0], 2 * np.arange(3) + 1)


def test_a_copy_does_not_fold_and_does_not_replace_what_is_known():
    function = trace_function(lambda x: [jnp.sin(jnp.float32(1)) + x], [SCALAR])
    with Trace("pair", "Test") as trace:
        copy = Copy(trace, function, [])
        copy[function.inputs[0]] = as_array(np.float32(1))
        known = copy[function.outputs[0]] = as_array(np.float32(7))
        copy.add(function.equations)
        assert copy[function.outputs[0]] is known
        result = trace.finish([])
    assert names(result.equations) == names(function.equations)
    assert "add" in names(result.equations)

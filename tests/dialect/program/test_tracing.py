"""Tracing: recorded ops, computed values, constants; and the jaxpr view."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import core, lax, random
from axir.dialect.core.context import describe_location
from axir.dialect.core.state import state
from axir.dialect.program.tracer import Trace


def test_the_grammar_of_jaxprs() -> None:
    table = jnp.arange(3.0)
    text = str(axir.make_jaxpr(lambda x: lax.mul(lax.sin(x), table))(jnp.ones(3)))
    assert text == (
        "{ lambda a:f32[3] ; b:f32[3]. let c:f32[3] = sin b; d:f32[3] = mul c a in (d,) }"
    )
    text = str(axir.make_jaxpr(lambda x, y: (lax.reduce_sum(x, (0,)), 1.0))(jnp.ones(3), 2))
    assert text == (
        "{ lambda ; a:f32[3] b:i32[]. let c:f32[] = reduce_sum[axes=(0,)] a in (c, 1.0:f32[]) }"
    )


def test_names_go_on_after_z() -> None:
    def f(x):
        for _ in range(60):
            x = lax.sin(x)
        return x

    lines = str(axir.make_jaxpr(f)(1.0)).splitlines()
    assert lines[0] == "{ lambda ; a:f32[]. let"
    assert lines[27] == "    bb:f32[] = sin ba"
    assert lines[-1] == "  in (ci,) }"


def test_what_does_not_depend_on_arguments_is_computed_while_tracing() -> None:
    def f(x):
        return x + jnp.sin(jnp.arange(100.0)).sum()

    equations = axir.make_jaxpr(f)(1.0).eqns
    assert [e.primitive.name for e in equations] == ["add"]


def test_the_view_offers_what_interpreters_expect() -> None:
    closed = axir.make_jaxpr(lambda x: lax.exp(lax.tanh(x)) * 2.0)(jnp.ones(2))
    environment = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    environment[closed.jaxpr.invars[0]] = jnp.array([0.0, 1.0])
    for equation in closed.jaxpr.eqns:
        values = [v.val if isinstance(v, core.Literal) else environment[v] for v in equation.invars]
        environment[equation.outvars[0]] = equation.primitive.bind(*values, **equation.params)
    expected = np.exp(np.tanh([0.0, 1.0])) * 2
    np.testing.assert_allclose(environment[closed.jaxpr.outvars[0]], expected, rtol=1e-6)
    np.testing.assert_allclose(
        core.eval_jaxpr(closed.jaxpr, closed.consts, jnp.array([0.0, 1.0]))[0], expected, rtol=1e-6
    )


def test_ops_carry_the_line_of_the_user_through_passes() -> None:
    def f(x):
        return lax.sin(x) * 3.0  # the line

    here = f.__code__.co_firstlineno + 1
    for closed in (axir.make_jaxpr(f)(1.0), axir.make_jaxpr(axir.grad(f))(1.0)):
        for equation in closed.eqns:
            assert describe_location(equation.location) == f"{__file__}:{here}"


def test_a_failing_function_leaves_no_trace_open() -> None:
    def f(x):
        raise RuntimeError("mine")

    for transform in (axir.jit, axir.grad, axir.vmap, axir.make_jaxpr):
        with pytest.raises(RuntimeError, match="mine"):
            transform(f)(jnp.ones(()) if transform is not axir.vmap else jnp.ones(2))
    assert state.level == 0
    assert state.origin is None


def test_outer_values_become_captures_of_the_inner_function() -> None:
    with Trace("outer") as outer:
        x = outer.add_input(core.ShapedArray((3,), np.float32))
        with Trace("inner") as inner:
            y = inner.add_input(core.ShapedArray((3,), np.float32))
            product = lax.mul(lax.sin(x), y)
            function = inner.finish([product])
        assert len(function.captures) == 1
        assert len(outer.equations) == 1
        total = function.evaluate(x)
        whole = outer.finish(total)
    ones = jnp.ones(3)
    np.testing.assert_allclose(whole.evaluate(ones)[0], np.sin(1.0) * np.ones(3), rtol=1e-6)


@pytest.mark.parametrize(
    ("array", "ops"),
    [
        (lambda: jnp.arange(40), ["iota"]),
        (lambda: jnp.arange(100, 20, -2), ["iota", "mul", "add"]),
        (lambda: jnp.arange(2**32 - 20, 2**32, dtype=np.uint32), ["iota", "add"]),
        (lambda: jnp.arange(100, 20, -2, dtype=np.uint32), ["iota", "mul", "add"]),
        (lambda: jnp.arange(40, dtype=np.uint32) * np.uint32(2**31), []),
        (lambda: jnp.broadcast_to(jnp.arange(30)[:, None], (30, 50)), ["iota", "broadcast_in_dim"]),
        (lambda: jnp.broadcast_to(jnp.sin(jnp.ones(3)), (700, 3)), ["broadcast_in_dim"]),
        (lambda: jnp.arange(40) ** 2, []),
        (lambda: jnp.arange(5), []),
        (lambda: jnp.arange(0.0, 40.0), []),
    ],
)
def test_counted_and_repeated_arrays_are_written_down_under_jit(
    array: Callable[[], axir.Array], ops: list[str]
) -> None:
    known = array()
    nothing = jnp.zeros((), known.dtype)
    closed = axir.jit(lambda x: known + x).trace(nothing).jaxpr
    names = [equation.primitive.name for equation in closed.eqns]
    assert names == [*ops, "add"]
    np.testing.assert_array_equal(core.eval_jaxpr(closed.jaxpr, closed.consts, nothing)[0], known)
    assert all(x.size < 1000 for x in closed.consts)


def test_counts_at_the_ends_of_64_bits_are_written_down() -> None:
    with axir.enable_x64(True):
        ends = [
            jnp.arange(20, dtype=np.uint64) + np.uint64(2**64 - 20),
            jnp.array([-(2**63), 2**63 - 1] * 10),
            jnp.array(np.linspace(-(2**62), 2**62, 17).astype(np.int64)),
        ]
        for known in ends:
            nothing = jnp.zeros((), known.dtype)
            closed = axir.jit(lambda x, known=known: known + x).trace(nothing).jaxpr
            [value] = core.eval_jaxpr(closed.jaxpr, closed.consts, nothing)
            np.testing.assert_array_equal(value, known)


def test_uniform_arrays_become_a_scalar_and_a_broadcast_under_jit() -> None:
    closed = axir.make_jaxpr(lambda x: x + jnp.zeros((500, 500)))(1.0)
    assert not closed.consts
    assert "broadcast_in_dim" in str(closed)


@pytest.mark.parametrize(
    "array",
    [
        lambda: jnp.ones(3),
        lambda: jnp.full((500, 500), 2.5),
        lambda: jnp.arange(40),
        lambda: jnp.broadcast_to(jnp.arange(30)[:, None], (30, 50)),
        lambda: np.zeros((2, 3), np.float32),
        lambda: random.uniform(random.key(0), (3,)),
    ],
)
def test_made_jaxprs_hold_arrays_from_outside_as_constants(array: Callable[[], Any]) -> None:
    known = array()
    nothing = jnp.zeros((), known.dtype)
    closed = axir.make_jaxpr(lambda x: jnp.add(x, known))(nothing)
    assert [equation.primitive.name for equation in closed.eqns] == ["add"]
    [constant] = closed.consts
    assert [v.aval.shape for v in closed.jaxpr.constvars] == [known.shape]
    np.testing.assert_array_equal(constant, known)
    np.testing.assert_array_equal(core.jaxpr_as_fun(closed)(nothing)[0], known)


def test_made_jaxprs_describe_what_the_function_makes() -> None:
    def function(x: Any) -> Any:
        x += jnp.full_like(x, 2, int, 30)
        return x + jnp.zeros(30, int) + lax.full((30,), 2) + jnp.arange(30)

    for _ in range(2):  # cached facts about arrays are freed with them
        closed = axir.make_jaxpr(function)(1)
        assert not closed.consts
        names = [equation.primitive.name for equation in closed.eqns]
        assert [names.count(name) for name in ("broadcast_in_dim", "iota")] == [3, 1]


def test_calls_of_known_arrays_stay_calls_while_a_jaxpr_is_made() -> None:
    table = axir.jit(lambda x: lax.fori_loop(0, 100, lambda i, y: jnp.sin(y), x))
    closed = axir.make_jaxpr(lambda x: x + table(jnp.ones(3)))(1.0)
    names = [equation.primitive.name for equation in closed.eqns]
    assert names == ["broadcast_in_dim", "jit", "add"]


def _texts_of_tracers(transform: Callable[..., Any], *arguments: Any) -> list[str]:
    seen = []

    def f(x: Any) -> Any:
        y = x * 2
        seen.extend((repr(x), f"{y}"))
        return jnp.sum(y)

    transform(f, *arguments)
    return seen


ONES = np.ones(2, np.float32)


@pytest.mark.parametrize(
    ("transform", "argument", "texts"),
    [
        (axir.eval_shape, 1.0, ["JitTracer(~float32[])", "JitTracer(~float32[])"]),
        (
            lambda f, x: axir.make_jaxpr(f)(x),
            np.ones((2, 3), np.int32),
            ["JitTracer(int32[2,3])", "JitTracer(int32[2,3])"],
        ),
        (
            lambda f, x: axir.grad(f)(x),
            ONES,
            ["GradTracer(float32[2], primal=[1. 1.])", "GradTracer(float32[2], primal=[2. 2.])"],
        ),
        (
            lambda f, x: axir.make_jaxpr(axir.grad(f))(x),
            ONES,
            ["GradTracer(float32[2], primal=JitTracer(float32[2]))"] * 2,
        ),
        (
            lambda f, x: axir.vmap(f)(x),
            np.ones((3, 2), np.float32),
            ["VmapTracer(float32[2])", "VmapTracer(float32[2])"],
        ),
    ],
    ids=["eval_shape", "make_jaxpr", "grad", "grad within", "vmap"],
)
def test_text_of_a_tracer_names_transformation_type_and_known_value(
    transform: Callable[..., Any], argument: Any, texts: list[str]
) -> None:
    assert _texts_of_tracers(transform, argument) == texts


def test_text_of_a_tracer_that_leaked_has_no_value() -> None:
    kept: list[Any] = []
    axir.grad(lambda x: (kept.append(x), x)[1])(1.0)
    assert repr(kept[0]) == "GradTracer(~float32[])"


def test_tracing_leaves_no_garbage_cycles() -> None:
    def f(x):
        for _ in range(20):
            x = jnp.sin(x) * x
        return x

    def work():
        axir.make_jaxpr(axir.grad(f))(1.0)
        axir.grad(f)(1.0)
        axir.vmap(f)(jnp.ones(3))

    work()
    gc.collect()
    gc.disable()
    try:
        work()
        assert gc.collect() == 0
    finally:
        gc.enable()

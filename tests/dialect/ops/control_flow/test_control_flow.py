"""Control flow in the dialect: loops of flat values, bodies in text, and verification errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import axir
from axir import lax
from axir.dialect.core.array import ConcreteArray, as_array
from axir.dialect.core.errors import VerificationError
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.control_flow.flat_loops import cond_values, fori_values, while_values
from axir.dialect.ops.elementwise.arithmetic import add, mul
from axir.dialect.ops.elementwise.comparison import gt, lt
from axir.dialect.ops.elementwise.transcendental import sin
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.module_writer import write_module
from axir.dialect.text.module_reader import parse_module, read_module

X = as_array(np.array([0.5, -1.5, 2.0], np.float32))


# Loops of flat values --------------------------------------------------------------------------


def test_while_values_repeats_as_long_as_the_condition_holds() -> None:
    count, x = while_values(
        lambda n, v: lt(n, 3), lambda n, v: [add(n, 1), mul(v, 2.0)], [np.int32(0), X]
    )
    assert int(count) == 3
    np.testing.assert_array_equal(x.host(), X.host() * 8)


@pytest.mark.parametrize("is_traced", [False, True])
def test_fori_values_counts_from_lower_to_upper(is_traced: bool) -> None:
    upper = as_array(np.int64(4)) if is_traced else 4

    def body(i: Any, total: Any, x: Any) -> list[Any]:
        return [add(total, i), mul(x, 0.5)]

    total, x = fori_values(1, upper, body, [np.int32(0), X])
    assert int(total) == 6
    np.testing.assert_array_equal(x.host(), X.host() / 8)
    total, x = fori_values(4, upper, body, [np.int32(0), X])
    assert int(total) == 0
    assert x is X or (x.host() == X.host()).all()


def test_fori_values_of_known_bounds_has_a_gradient() -> None:
    def loop(x: Any) -> Any:
        return fori_values(0, 3, lambda i, v: [sin(v)], [x])[0].sum()

    slope, v = 1.0, 0.5
    for _ in range(3):
        slope, v = slope * np.cos(v), np.sin(v)
    np.testing.assert_allclose(float(axir.grad(loop)(np.float32(0.5))), slope, rtol=1e-6)


@pytest.mark.parametrize("pred", [True, False])
def test_cond_values_applies_one_function(pred: bool) -> None:
    [y] = cond_values(as_array(np.bool_(pred)), lambda v: [mul(v, 2.0)], lambda v: [add(v, X)], [X])
    np.testing.assert_array_equal(y.host(), X.host() * 2)
    [z] = cond_values(as_array(np.bool_(pred)), lambda v: [mul(v, 2.0)], lambda v: [mul(v, X)], [X])
    np.testing.assert_array_equal(z.host(), X.host() * (2 if pred else X.host()))


# Text ------------------------------------------------------------------------------------------


def _scan_text() -> str:
    def loop(x: Any, xs: Any) -> list[Any]:
        carry, ys = lax.scan(lambda c, y: (mul(c, y), sin(c)), x, xs)
        return [carry, ys]

    scalar, vector = ShapedArray((), np.float32), ShapedArray((5,), np.float32)
    return str(write_module({"main": trace_function(loop, [scalar, vector])}))


def _while_text() -> str:
    def loop(x: Any) -> list[Any]:
        return [lax.while_loop(lambda c: lt(c, 5.0), lambda c: add(c, 1.0), x)]

    return str(write_module({"main": trace_function(loop, [ShapedArray((), np.float32)])}))


def _cond_text() -> str:
    def choice(x: Any) -> list[Any]:
        return [lax.cond(gt(x, 0.0), sin, lambda v: add(v, 1.0), x)]

    return str(write_module({"main": trace_function(choice, [ShapedArray((), np.float32)])}))


def test_text_of_control_flow_can_be_read_transformed_and_run() -> None:
    main = read_module(parse_module(_scan_text()))["main"]
    x, xs = as_array(np.float32(0.5)), as_array(np.arange(1, 6, dtype=np.float32))

    def total(x: Any) -> Any:
        return add(main.evaluate(x, xs)[0], main.evaluate(x, xs)[1].sum())

    carries = 0.5 * np.cumprod([1, 1, 2, 3, 4, 5])[:5]
    slope = 120 + (np.cos(carries) * carries / 0.5).sum()
    np.testing.assert_allclose(float(axir.grad(total)(x)), slope, rtol=1e-5)
    np.testing.assert_allclose(float(axir.jit(axir.grad(total))(x)), slope, rtol=1e-5)


@pytest.mark.parametrize(
    ("text", "old", "new", "message"),
    [
        (_scan_text, "length = 5", "length = 4", "first axis of extent length=4"),
        (_scan_text, "num_carry = 1", "num_carry = 2", "is given"),
        (_scan_text, "num_consts = 0", "num_consts = 7", "num_consts=7"),
        (_scan_text, "length = 5 : i64, ", "", "length"),
        (_scan_text, "jaxpr = @", "jaxpr = @no_", "no function @no_"),
        (_scan_text, '"jaxpr.sin"', '"jaxpr.is_finite"', "jaxpr.is_finite gives bool"),
        (_while_text, "cond_nconsts = 0", "cond_nconsts = 3", "name 3 constants"),
        (_while_text, '"jaxpr.lt"', '"jaxpr.sub"', "jaxpr.sub gives"),
        (_cond_text, "branches = [", "branches = [@main, ", "calls itself"),
        (_cond_text, 'new_dtype = i32, weak_type = false} : (tensor<i1>) -> tensor<i32>',
         'new_dtype = i64, weak_type = false} : (tensor<i1>) -> tensor<i64>', "int32 scalar"),
    ],
)  # fmt: skip
def test_edited_text_is_refused_with_the_reason(
    text: Any, old: str, new: str, message: str
) -> None:
    written = text()
    assert old in written
    edited = written.replace(old, new)
    if "tensor<i64>" in new:
        edited = edited.replace("(tensor<i32>, tensor<f32>", "(tensor<i64>, tensor<f32>")
    with pytest.raises(VerificationError) as caught:
        read_module(parse_module(edited))
    assert message in str(caught.value)


def test_bodies_of_other_types_are_refused() -> None:
    from axir.dialect.ops import OPS
    from axir.dialect.ops.control_flow.closed_bodies import trace_body

    scalar = ShapedArray((), np.float32)
    body = trace_body(lambda c: [gt(c, 0.0)], [scalar]).function
    with pytest.raises(ValueError, match=r"must return \(float32\[\]\), but returns \(bool\[\]\)"):
        OPS["while"].infer(scalar, body_jaxpr=body, body_nconsts=0, cond_jaxpr=body, cond_nconsts=0)
    step = trace_body(lambda c: [add(c, 1.0)], [scalar]).function
    with pytest.raises(ValueError, match=r"the condition .* must return \(bool\[\]\)"):
        OPS["while"].infer(scalar, body_jaxpr=step, body_nconsts=0, cond_jaxpr=step, cond_nconsts=0)
    with pytest.raises(ValueError, match="branch 1, like branch 0, .* must return"):
        OPS["cond"].infer(ShapedArray((), np.int32), scalar, branches=(step, body))
    with pytest.raises(ValueError, match="at least one branch"):
        OPS["cond"].infer(ShapedArray((), np.int32), branches=())


# Derived bodies --------------------------------------------------------------------------------


def test_branches_share_slots_for_residuals_of_equal_type() -> None:
    def choice(x: Any) -> Any:
        return lax.switch(
            np.int32(1) + (x > 9).astype(np.int32),
            [lambda v: sin(v), lambda v: sin(mul(v, v)), lambda v: v],
            x,
        )

    shown = axir.make_jaxpr(axir.grad(choice))(0.5)
    first, second = [e for e in shown.eqns if e.primitive.name == "cond"]
    # One slot holds the cosine of either branch; x itself is an operand and needs no slot.
    assert len(first.results) == 2
    assert len(second.results) == 1


def test_transposing_a_loop_with_a_counter_runs_the_counter_first() -> None:
    from axir.dialect.core.symbolic_zeros import UndefinedPrimal
    from axir.dialect.ops import OPS
    from axir.dialect.ops.control_flow.closed_bodies import trace_body

    scalar, index = ShapedArray((), np.float32), ShapedArray((), np.int32)

    def step(i: Any, c: Any) -> list[Any]:
        return [add(i, 1), mul(c, i.astype(np.float32))]

    body = trace_body(step, [index, scalar]).function
    params = {
        "jaxpr": body, "length": 4, "reverse": False, "unroll": 1, "num_consts": 0,
        "num_carry": 2, "linear": (False, False),
    }  # fmt: skip
    zero = axir.dialect.core.symbolic_zeros.Zero(index.to_tangent_aval())
    results = OPS["scan"].transpose(
        [zero, as_array(np.float32(1))], as_array(np.int32(2)), UndefinedPrimal(scalar), **params
    )
    assert results[0] is None
    assert type(results[1]) is ConcreteArray
    assert float(results[1]) == 2 * 3 * 4 * 5

"""Reductions: semantics shared with JAX, and the texts of errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import axir.passes.transforms.vmap
from axir.dialect.core.array import Array, ConcreteArray, as_array, scalar
from axir.dialect.core.errors import AxirError, AxisError, DTypeError, ParameterError, ShapeError
from axir.dialect.core.state import BatchFrame
from axir.dialect.core.symbolic_zeros import Zero
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise import arithmetic as elementwise
from axir.dialect.ops.elementwise import comparison
from axir.dialect.ops.elementwise.transcendental import exp, log
from axir.dialect.ops.reductions.arg_reduce import argmax, argmin
from axir.dialect.ops.reductions.cumulative import cumlogsumexp, cummax, cummin, cumprod, cumsum
from axir.dialect.ops.reductions.reduce import (
    reduce_and,
    reduce_max,
    reduce_min,
    reduce_or,
    reduce_prod,
    reduce_sum,
    reduce_xor,
)
from axir.dialect.ops.reductions.variadic_reduce import reduce
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function
from axir.passes.transforms.jvp import jvp

MATRIX = as_array(np.arange(6, dtype=np.float32).reshape(2, 3))
FLAGS = as_array(np.array([True, False]))
COMPLEX = as_array(np.array([1 + 1j], np.complex64))


def array(values: Any, dtype: Any = np.float32) -> Array:
    return as_array(np.array(values, dtype))


def trace(function: Callable[..., Any], *arguments: Array) -> Function:
    return trace_function(lambda *xs: [function(*xs)], [x.type for x in arguments], name="function")


def tangent(function: Callable[..., Any], x: Array, dx: Array) -> np.ndarray:
    _, (result,) = jvp(trace(function, x), [x], [dx])
    return result.host()


def gradient(function: Callable[..., Any], values: Any) -> np.ndarray:
    """The gradient of a scalar function, one tangent at a time."""
    x = array(values)
    return np.array([tangent(function, x, as_array(row)) for row in np.eye(x.size, dtype="f")])


# Values ----------------------------------------------------------------------------------------


def test_half_precision_sums_round_once() -> None:
    # In half precision 2048 + 1 is 2048: without a wider accumulator the sum would stand still.
    ones = np.ones(5000)
    assert float(reduce_sum(as_array(ones.astype(np.float16)), (0,))) == 5000
    assert float(reduce_sum(as_array(ones.astype(ml_dtypes.bfloat16)), (0,))) == 4992
    sums = cumsum(as_array(ones.astype(np.float16))).host()
    np.testing.assert_array_equal(sums, np.arange(1, 5001).astype(np.float16))


def test_half_precision_products_do_not_overflow_on_the_way() -> None:
    x = array([2.0**15, 2.0**15, 2.0**-14, 2.0**-14], np.float16)
    assert float(reduce_prod(x, (0,))) == 4
    np.testing.assert_array_equal(cumprod(x, 0, True).host()[0], np.float16(4))


def test_integer_sums_and_products_wrap_in_their_dtype() -> None:
    assert int(reduce_sum(array([127, 1], np.int8), (0,))) == -128
    assert int(reduce_prod(array([200, 2], np.uint8), (0,))) == 144
    np.testing.assert_array_equal(cumsum(array([100, 100], np.int8)).host(), [100, -56])


@pytest.mark.parametrize(
    ("function", "dtype", "identity"),
    [
        (reduce_sum, np.int32, 0),
        (reduce_prod, np.float32, 1),
        (reduce_max, np.float32, -np.inf),
        (reduce_min, ml_dtypes.bfloat16, np.inf),
        (reduce_max, np.int8, -128),
        (reduce_min, np.uint16, 65535),
        (reduce_max, np.bool_, False),
        (reduce_min, np.bool_, True),
        (reduce_and, np.int16, -1),
        (reduce_and, np.bool_, True),
        (reduce_or, np.uint32, 0),
        (reduce_xor, np.bool_, False),
        (reduce_max, np.complex64, complex(-np.inf, -np.inf)),
    ],
)
def test_reduction_of_nothing_is_the_identity(function: Any, dtype: Any, identity: Any) -> None:
    result = function(as_array(np.zeros((2, 0), dtype)), (1,))
    assert result.shape == (2,)
    assert result.dtype == np.dtype(dtype)
    assert (result.host() == np.array(identity, dtype)).all()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.complex64])
@pytest.mark.parametrize("function", [reduce_max, reduce_min, cummax, cummin])
def test_extrema_propagate_nan(function: Any, dtype: Any) -> None:
    x = array([1, np.nan, 3], dtype)
    result = function(x, (0,)) if function in (reduce_max, reduce_min) else function(x)
    assert np.isnan(result.host().reshape(-1)[-1])


def test_complex_extrema_compare_real_parts_first() -> None:
    x = np.array([1 + 2j, 1 + 3j, 0 + 9j], np.complex64)
    assert complex(reduce_max(as_array(x), (0,))) == complex(jax.lax.reduce_max(x, (0,))) == 1 + 3j
    assert complex(reduce_min(as_array(x), (0,))) == complex(jax.lax.reduce_min(x, (0,))) == 9j


def test_weak_type_stays() -> None:
    assert reduce_sum(scalar(2.0), ()).weak_type
    assert cumsum(
        ConcreteArray(ShapedArray((2,), np.float32, True), np.ones(2, np.float32))
    ).weak_type
    assert not argmax(
        ConcreteArray(ShapedArray((2,), np.int32, True), np.ones(2, np.int32)), 0
    ).weak_type


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_positions_prefer_the_first_and_nan(dtype: Any) -> None:
    rows = np.array([[0, 2, 2, 1], [0, np.nan, -1, np.nan], [-np.inf] * 4]).astype(dtype)
    np.testing.assert_array_equal(argmax(as_array(rows), 1).host(), [1, 1, 0])
    np.testing.assert_array_equal(argmin(as_array(rows), 1).host(), [0, 1, 0])
    expected = jax.lax.argmin(rows, 1, np.int32)
    np.testing.assert_array_equal(argmin(as_array(rows), 1).host(), expected)


def test_positions_have_the_index_dtype() -> None:
    assert argmax(MATRIX, 1, np.uint8).dtype == np.uint8
    assert argmax(MATRIX, 1, np.int64).dtype == np.int32  # 64-bit types are off
    assert argmax(FLAGS, -1).tolist() == 0


@pytest.mark.parametrize("is_reversed", [False, True])
@pytest.mark.parametrize(
    ("function", "name"),
    [
        (cumsum, "cumsum"),
        (cumprod, "cumprod"),
        (cummax, "cummax"),
        (cummin, "cummin"),
        (cumlogsumexp, "cumlogsumexp"),
    ],
)
def test_running_reductions_equal_those_of_jax(function: Any, name: str, is_reversed: bool) -> None:
    edges = [-np.inf, -np.inf, 0.5, 2, 2, -1, np.inf, 1, np.nan, 1]
    x = np.array([edges, edges[::-1]], np.float32)
    expected = getattr(jax.lax, name)(x, 1, is_reversed)
    result = function(as_array(x), 1, is_reversed).host()
    np.testing.assert_allclose(result, expected, rtol=1e-6)


# Derivatives -----------------------------------------------------------------------------------


def test_gradient_of_max_is_shared_by_ties() -> None:
    x = [2.0, 5.0, 5.0, 1.0, 5.0]
    np.testing.assert_allclose(
        gradient(lambda v: reduce_max(v, (0,)), x), [0, 1 / 3, 1 / 3, 0, 1 / 3], rtol=1e-6
    )
    expected = jax.grad(lambda v: jax.lax.reduce_max(v, (0,)))(jnp.array(x))
    np.testing.assert_allclose(gradient(lambda v: reduce_max(v, (0,)), x), expected, rtol=1e-6)


@pytest.mark.parametrize("x", [[2.0, 3, 4], [2.0, 0, 4], [0.0, 3, 0], [0.0], [2.0, 3, 4, 5, 0]])
def test_gradient_of_product_is_right_at_zeros(x: list[float]) -> None:
    others = [np.prod(x[:i] + x[i + 1 :]) for i in range(len(x))]
    np.testing.assert_allclose(gradient(lambda v: reduce_prod(v, (0,)), x), others)


@pytest.mark.parametrize(
    ("function", "name"), [(cumprod, "cumprod"), (cummax, "cummax"), (cummin, "cummin")]
)
@pytest.mark.parametrize("is_reversed", [False, True])
@pytest.mark.parametrize("x", [[1.0, 0, 3, 0], [1.0, 3, 3, 3, 2], [2.0, 2], [4.0]])
def test_running_derivatives_equal_those_of_jax_at_zeros_and_ties(
    function: Any, name: str, is_reversed: bool, x: list[float]
) -> None:
    jacobian = np.array(
        jax.jacobian(lambda v: getattr(jax.lax, name)(v, 0, is_reversed))(jnp.array(x))
    )
    result = gradient(lambda v: function(v, 0, is_reversed), x)
    np.testing.assert_allclose(result.T, jacobian, rtol=1e-6)


def test_derivative_of_running_logsumexp_is_finite_after_minus_infinity() -> None:
    x, ones = array([-np.inf, 1.0, 2.0]), array([0.0, 1.0, 1.0])
    np.testing.assert_allclose(tangent(cumlogsumexp, x, ones), [0, 1, 1], rtol=1e-6)


def test_positions_have_no_derivative() -> None:
    x = array([1.0, 2.0])
    _, (result,) = jvp(trace(lambda v: argmax(v, 0), x), [x], [x])
    assert type(result) is Zero
    assert result.aval.dtype.names == ("float0",)


# Reductions by a computation -------------------------------------------------------------------


def log_add_exp(x: Any, y: Any) -> Any:
    return log(elementwise.add(exp(x), exp(y)))


def primitives(function: Callable[..., Any], *arguments: Array) -> list[str]:
    return [equation.primitive.name for equation in trace(function, *arguments).equations]


@pytest.mark.parametrize(
    ("computation", "init", "name"),
    [
        (elementwise.add, 0, "reduce_sum"),
        (elementwise.mul, 1, "reduce_prod"),
        (elementwise.max, -np.inf, "reduce_max"),
        (elementwise.min, np.inf, "reduce_min"),
        (lambda x, y: elementwise.add(y, x), 0, "reduce_sum"),
        (elementwise.add, 1, "reduce"),
        (elementwise.max, 0, "reduce"),
        (lambda x, y: elementwise.add(x, x), 0, "reduce"),
        (log_add_exp, -np.inf, "reduce"),
    ],
)
def test_known_monoids_become_special_reductions(computation: Any, init: Any, name: str) -> None:
    x = array([1.0, 2.0, 4.0])
    assert primitives(lambda v: reduce(v, np.float32(init), computation, (0,)), x) == [name]


def test_known_monoids_of_bits() -> None:
    x = array([6, 3], np.uint8)
    for computation, init, name in (
        (comparison.and_, 255, "reduce_and"),
        (comparison.or_, 0, "reduce_or"),
        (comparison.xor, 0, "reduce_xor"),
    ):
        found = primitives(lambda v: reduce(v, np.uint8(init), computation, (0,)), x)  # noqa: B023
        assert found == [name]


@pytest.mark.parametrize("extent", [1, 2, 3, 8, 13])
def test_reduction_by_a_computation(extent: int) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (extent, 4)).astype(np.float32)
    result = reduce(as_array(x), np.float32(0.5), log_add_exp, (0,)).host()
    expected = np.log(np.exp(x).sum(0) + np.exp(0.5))
    np.testing.assert_allclose(result, expected, rtol=1e-5)


def test_reduction_of_several_arrays_keeps_their_order() -> None:
    def first_largest(lhs: Any, rhs: Any) -> Any:
        is_later = comparison.lt(lhs[0], rhs[0])
        return tuple(comparison.select_n(is_later, a, b) for a, b in zip(lhs, rhs, strict=True))

    values = array([[1, 7, 7, 3, 7], [2, 2, 1, 0, 1]])
    labels = array([[0, 1, 2, 3, 4]] * 2, np.int32)
    inits = (np.float32(-np.inf), np.int32(-1))
    largest, label = reduce((values, labels), inits, first_largest, (1,))
    assert largest.tolist() == [7, 2]
    assert label.tolist() == [1, 0]


def test_derivative_of_a_computation_reaches_operand_and_initial_value() -> None:
    x, init = array([0.1, 0.7, -0.3]), array(0.2)

    def function(v: Any, start: Any) -> Any:
        return reduce(v, start, log_add_exp, (0,))

    dx, dinit = array([1.0, 2.0, 3.0]), array(4.0)
    _, (result,) = jvp(trace(function, x, init), [x, init], [dx, dinit])
    weights = np.exp([0.1, 0.7, -0.3, 0.2])
    expected = (weights * [1, 2, 3, 4]).sum() / weights.sum()
    np.testing.assert_allclose(result.host(), expected, rtol=1e-5)


def test_batched_initial_values() -> None:
    x, inits = array([0.1, 0.7]), array([0.0, 1.0, 2.0])
    scalar_init = array(0.0)
    function = trace(lambda v, start: reduce(v, start, log_add_exp, (0,)), x, scalar_init)
    frame = BatchFrame(3)
    (result,), (axis,) = axir.passes.transforms.vmap.batch(function, [x, inits], [None, 0], frame)
    assert axis == 0
    expected = np.log(np.exp([0.1, 0.7]).sum() + np.exp([0.0, 1, 2]))
    np.testing.assert_allclose(result.host(), expected, rtol=1e-5)


def test_reduction_along_no_axes_is_the_operand() -> None:
    x = array([1.0, 2.0])
    result = reduce(x, np.float32(5), log_add_exp, ())
    expected = jax.lax.reduce(x.host(), np.float32(5), jnp.logaddexp, ())
    np.testing.assert_array_equal(result.host(), expected)


# Errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: reduce_sum(MATRIX, (2,)),
            AxisError,
            "reduce_sum: axis 2 is out of bounds for an array of dimension 2.",
        ),
        (
            lambda: reduce_sum(MATRIX, (0, -2)),
            AxisError,
            "reduce_sum: an axis occurs twice in (0, -2)",
        ),
        (lambda: reduce_sum(FLAGS, (0,)), DTypeError, "reduce_sum does not accept bool; it takes"),
        (lambda: reduce_or(MATRIX, (0,)), DTypeError, "reduce_or does not accept float32"),
        (lambda: argmax(COMPLEX, 0), DTypeError, "argmax does not accept complex64"),
        (
            lambda: argmin(as_array(np.zeros((2, 0), np.float32)), 1),
            ShapeError,
            "argmin: axis 1 of the operand float32[2,0] is empty",
        ),
        (
            lambda: argmax(MATRIX, 0, np.float32),
            DTypeError,
            "argmax: index_dtype must be an integer type, not float32.",
        ),
        (
            lambda: argmax.primitive.bind(MATRIX, axes=(0, 1), index_dtype=np.dtype("int32")),
            ParameterError,
            "argmax: axes=(0, 1) must name one axis.",
        ),
        (
            lambda: reduce_sum.primitive.bind(MATRIX, axes=(-1,)),
            AxisError,
            "reduce_sum: parameter axes=(-1,) has negative axes.",
        ),
        (lambda: cumsum(FLAGS), DTypeError, "cumsum does not accept bool"),
        (lambda: cumsum(MATRIX, 3), AxisError, "cumsum: axis 3 is out of bounds"),
        (
            lambda: reduce((), (), elementwise.add, (0,)),
            ParameterError,
            "reduce needs at least one operand.",
        ),
        (
            lambda: reduce((MATRIX,), (0.0, 1.0), lambda x, y: x, (0,)),
            ParameterError,
            "reduce: 1 operands, but 2 initial values.",
        ),
        (
            lambda: reduce(MATRIX, np.zeros(2, np.float32), log_add_exp, (0,)),
            ShapeError,
            "reduce: initial values are scalars, but one is float32[2].",
        ),
        (
            lambda: reduce(MATRIX, np.int32(0), log_add_exp, (0,)),
            DTypeError,
            "reduce: the initial value int32[] of operand float32[2,3] has another dtype.",
        ),
        (
            lambda: reduce((MATRIX, FLAGS), (0.0, False), lambda x, y: x, (0,)),
            ShapeError,
            "reduce: operands must be of one shape, but are float32[2,3] and bool[2].",
        ),
        (
            lambda: reduce(MATRIX, 0.0, comparison.gt, (0,)),
            DTypeError,
            "must return values of the types of the initial values (float32[]), but returns "
            "(bool[]).",
        ),
        (
            lambda: trace(
                lambda s: reduce(
                    MATRIX, 0.0, lambda x, y: elementwise.add(x, elementwise.mul(s, y)), (0,)
                ),
                array(2.0),
            ),
            ParameterError,
            "uses values from around it (float32[])",
        ),
    ],
)
def test_errors_say_what_is_wrong(
    call: Callable[[], Any], error: type[AxirError], text: str
) -> None:
    with pytest.raises(error, match=re.escape(text)):
        call()

"""Reductions of windows and their derivatives agree with JAX's, and name errors."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest
from jax import lax as jax_lax

import axir
import axir.numpy as jnp
from axir import lax
from axir.dialect.core.errors import DTypeError, ParameterError, ShapeError, UnsupportedRuleError
from axir.dialect.ops.windows.select_and_scatter_by_function import select_and_scatter

RNG = np.random.default_rng(3)

# Shape, window, strides, padding, base dilation, window dilation.
WINDOWS: list[tuple[Any, ...]] = [
    ((7,), (3,), (1,), "SAME", None, None),
    ((7,), (4,), (2,), "SAME_LOWER", None, None),
    ((8,), (2,), (3,), "VALID", (3,), (2,)),
    ((5, 6), (2, 3), (1, 2), ((1, 0), (-1, 2)), None, (2, 1)),
    ((4, 3, 5), (3, 1, 2), (2, 1, 3), ((0, 2), (0, 0), (1, 1)), (1, 2, 2), None),
    ((6,), (3,), None, ((4, 5),), None, None),
    ((40,), (33,), None, ((5, 0),), None, None),
    ((), (), None, "SAME", None, None),
]
LEAST = {"f": -np.inf, "i": -128, "u": 0, "V": -np.inf}
OPERATIONS = [("add", 0), ("add", 3), ("mul", 1), ("max", None), ("max", 2)]
DTYPES = [np.float32, np.int8, np.uint8, ml_dtypes.bfloat16]


def distinct(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    return (RNG.permutation(int(np.prod(shape))).reshape(shape) % 50).astype(dtype)


def reductions(case: tuple[Any, ...], name: str, init: Any) -> tuple[Any, Any]:
    _, *arguments = case
    return (
        lambda x: lax.reduce_window(x, init, getattr(lax, name), *arguments),
        lambda x: jax_lax.reduce_window(x, init, getattr(jax_lax, name), *arguments),
    )


@pytest.mark.parametrize("case", WINDOWS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
def test_results_are_jax_s(case: tuple[Any, ...], dtype: Any) -> None:
    kind = np.dtype(dtype).kind
    # Products of many elements are too large for narrow types.
    x = distinct(case[0], dtype) if kind != "V" else (distinct(case[0]) % 3).astype(dtype)
    for name, given in OPERATIONS:
        init = np.asarray(LEAST[kind] if given is None else given).astype(dtype)[()]
        ours, theirs = reductions(case, name, init)
        # Long products overflow, and then depend on their order: infinity times zero is nan.
        values = x % 3 if name == "mul" and kind == "f" else x
        result, expected = np.asarray(ours(values)), np.asarray(theirs(values))
        assert result.dtype == expected.dtype
        tolerance = 2e-2 if kind == "V" else 1e-5
        np.testing.assert_allclose(
            result.astype(np.float64), expected.astype(np.float64), rtol=tolerance
        )


@pytest.mark.parametrize("case", WINDOWS[:-1], ids=str)
@pytest.mark.parametrize(("name", "init"), [("add", 0.0), ("max", -np.inf), ("min", np.inf)])
def test_derivatives_are_jax_s(case: tuple[Any, ...], name: str, init: float) -> None:
    ours, theirs = reductions(case, name, np.float32(init))
    x, tangent = distinct(case[0]), RNG.normal(size=case[0]).astype(np.float32)

    def pushed(module: Any, function: Any) -> Any:
        return module.jvp(function, (x,), (tangent,))[1]

    np.testing.assert_allclose(pushed(axir, ours), pushed(jax, theirs), rtol=1e-5)
    weights = RNG.normal(size=ours(x).shape).astype(np.float32)
    if (case[5] is None and case[4] is None) or name == "add":  # others have no gradient in JAX
        gradient = axir.grad(lambda x: (ours(x) * weights).sum())(x)
        expected = jax.grad(lambda x: (theirs(x) * weights).sum())(x)
        np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-6)
    # The derivative of the squares' sum along the tangent of x, forward over reverse.
    second = axir.jvp(axir.grad(lambda x: (ours(x) ** 2).sum()), (x,), (tangent,))[1]
    slope = axir.jvp(ours, (x,), (tangent,))[1]
    reached = axir.vjp(ours, x)[1](2 * slope)[0]
    np.testing.assert_allclose(second, reached, rtol=1e-4, atol=1e-5)


def test_a_dilated_maximum_has_a_gradient() -> None:
    x = np.array([3, 1, 4, 1, 5], np.float32)
    gradient = axir.grad(
        lambda x: lax.reduce_window(x, -np.inf, lax.max, (2,), window_dilation=(2,)).sum()
    )(x)
    np.testing.assert_array_equal(gradient, [0, 1, 1, 0, 1])


def test_a_generic_reduction_has_a_gradient() -> None:
    x = np.array([2, 3, 5, 7], np.float32)
    gradient = axir.grad(lambda x: lax.reduce_window(x, 1.0, lax.mul, (2,)).sum())(x)
    np.testing.assert_allclose(gradient, [3, 7, 10, 5])


def test_nan_and_equal_elements() -> None:
    x = np.array([1, np.nan, 3, 3, -np.inf, -np.inf], np.float32)

    def largest(x: Any) -> Any:
        return lax.reduce_window(x, -np.inf, lax.max, (2,), (2,))

    np.testing.assert_array_equal(largest(x), [np.nan, 3, -np.inf])
    gradient = axir.grad(lambda x: largest(x).sum())(x)
    np.testing.assert_array_equal(gradient, [0, 1, 1, 0, 1, 0])


@pytest.mark.parametrize(("axis", "with_init"), [(0, False), (1, False), (0, True)])
def test_vmap_of_a_function_s_reduction(axis: int, with_init: bool) -> None:
    x = distinct((3, 3))
    inits = np.array([1, 2, 3], np.float32)

    def reduced(x: Any, init: Any) -> Any:
        return lax.reduce_window(x, init, lambda a, b: a + 2 * b, (2,), padding="SAME")

    axes = (axis, 0 if with_init else None)
    init = inits if with_init else inits[0]
    result = axir.vmap(reduced, axes)(x, init)
    rows = np.moveaxis(x, axis, 0)
    each = [reduced(row, inits[i] if with_init else init) for i, row in enumerate(rows)]
    np.testing.assert_array_equal(result, np.stack(each))


def test_several_operands() -> None:
    x, names = np.array([3, 9, 4, 1], np.float32), np.arange(4, dtype=np.int32)

    def larger(current: Any, element: Any) -> Any:
        (a, i), (b, j) = current, element
        return lax.select_n(a >= b, b, a), lax.select_n(a >= b, j, i)

    function = axir.jit(
        lambda x, names: lax.reduce_window((x, names), (-np.inf, -1), larger, (2,), (1,), "SAME")
    )
    for values, positions in (function(x, names), function.__wrapped__(x, names)):
        np.testing.assert_array_equal(values, [9, 9, 4, 1])
        np.testing.assert_array_equal(positions, [1, 1, 2, 3])


def test_jaxpr_has_the_primitives_of_jax() -> None:
    x = np.ones((3, 4), np.float32)

    def pooled(x: Any) -> Any:
        return lax.reduce_window(x, -np.inf, lax.max, (2, 2), (1, 2), "SAME")

    text = str(axir.make_jaxpr(axir.grad(lambda x: pooled(x).sum()))(x))
    assert "reduce_window_max[" in text
    assert "select_and_scatter_add[" in text
    traced = axir.make_jaxpr(lambda x: lax.reduce_window(x, 0.0, lambda a, b: a + b, (1, 2)))
    assert "reduce_window_sum[" in str(traced(x))
    tangent = str(axir.make_jaxpr(lambda x, t: axir.jvp(pooled, (x,), (t,)))(x, x))
    assert "select_and_gather_add[" in tangent


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        (((2, 2),), ShapeError, "one entry for each of the 1 dimensions"),
        (((0,),), ShapeError, "must be positive"),
        (((2,), (0,)), ShapeError, "window_strides"),
        (((2,), (1,), "OTHER"), ParameterError, "OTHER"),
        (((2,), (1,), ((1,),)), ParameterError, "pair"),
    ],
)
def test_windows_that_do_not_fit(arguments: Any, error: type, match: str) -> None:
    with pytest.raises(error, match=match):
        lax.reduce_window(np.ones(3, np.float32), 0.0, lax.add, *arguments)


def test_initial_values_and_computations_that_do_not_fit() -> None:
    x = np.ones(3, np.float32)
    with pytest.raises(DTypeError, match="another dtype"):
        lax.reduce_window(x, np.int32(0), lax.add, (2,))
    with pytest.raises(ShapeError, match="scalars"):
        lax.reduce_window(x, np.zeros(2, np.float32), lax.add, (2,))
    with pytest.raises(ParameterError, match="initial values"):
        lax.reduce_window((x, x), (0.0,), lambda a, b: a, (2,))
    with pytest.raises(ParameterError, match="values from around"):
        axir.jit(lambda k: lax.reduce_window(x, 0.0, lambda a, b: a + k * b, (2,)))(2.0)
    with pytest.raises(DTypeError, match="must return"):
        lax.reduce_window(x, 0.0, lambda a, b: a > b, (2,))


def test_shape_tuple() -> None:
    given = ((5, 4), (2, 2), (1, 2), ((0, 1), (0, -1)), (2, 1), (1, 2))
    assert lax.reduce_window_shape_tuple(*given) == jax_lax.reduce_window_shape_tuple(*given)


def test_select_and_scatter_is_jax_s() -> None:
    from jax._src.lax.windowed_reductions import _select_and_scatter

    x = distinct((4, 6))
    source = RNG.normal(size=(3, 5)).astype(np.float32)
    for init, scatter in ((0.0, "add"), (1.0, "mul"), (2.0, "max")):
        ours = select_and_scatter(
            x, lax.ge, (2, 2), (1, 1), "VALID", source, init, getattr(lax, scatter)
        )
        theirs = _select_and_scatter(
            x, jax_lax.ge, (2, 2), (1, 1), ((0, 0), (0, 0)), source, np.float32(init),
            getattr(jax_lax, scatter),
        )  # fmt: skip
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_select_and_scatter_by_any_function_has_no_derivative() -> None:
    x, source = np.ones(4, np.float32), np.ones(3, np.float32)
    with pytest.raises(UnsupportedRuleError, match="initial value 0"):
        axir.grad(
            lambda s: select_and_scatter(x, lax.ge, (2,), (1,), "VALID", s, 1.0, lax.mul).sum()
        )(source)


def test_a_running_sum_of_a_long_array_is_exact_enough() -> None:
    x = RNG.normal(size=100_000).astype(np.float32)
    sums = np.asarray(lax.reduce_window(x, 0.0, lax.add, (1000,)))
    wide = np.cumsum(np.concatenate([[0], x.astype(np.float64)]))
    np.testing.assert_allclose(sums, wide[1000:] - wide[:-1000], atol=2e-4)


def test_nothing_warns() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = jnp.array([np.inf, -np.inf, np.nan])
        lax.reduce_window(x, 0.0, lax.add, (2,), padding="SAME")


def test_integers_may_begin_with_an_infinity() -> None:
    x = jnp.array([-7, 3, -(2**31)], jnp.int32)
    greatest = lax.reduce_window(x, -np.inf, lax.max, (2,), (1,), ((1, 0),))
    least = lax.reduce_window(x, np.inf, lax.min, (2,), (1,), ((0, 1),))
    assert greatest.tolist() == [-7, 3, 3]
    assert least.tolist() == [-7, -(2**31), -(2**31)]
    begun = lax.reduce_window(x, -float("inf"), lax.max, (1,), (1,), ((1, 0),))
    assert begun.tolist() == [-(2**31), -7, 3, -(2**31)]

"""Elementwise functions: accepted operands beyond equal dtypes, and values at the edges."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from support.against_jax import compare

import axir
import axir.scipy.special
from axir import lax
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.errors import DTypeError, ShapeError


@pytest.mark.parametrize("exponent", [np.int32(3), np.int8(-2), np.uint8(0), 3])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_pow_takes_integer_exponents(dtype: Any, exponent: Any) -> None:
    x = np.array([2, 0.5, 1.5], dtype)
    compare(lax.pow, jax.lax.pow, x, np.asarray(exponent) if np.ndim(exponent) else exponent)


def test_pow_differentiates_by_the_base_of_an_integer_exponent() -> None:
    assert float(axir.grad(lambda x: lax.pow(x, np.int32(3)))(2.0)) == 12.0
    with pytest.raises(DTypeError, match="pow does not accept int32"):
        lax.pow(np.int32(2), np.int32(2))


def test_integers_have_no_negative_powers() -> None:
    for function in (lax.reciprocal, lambda x: lax.integer_pow(x, -1)):
        with pytest.raises(DTypeError) as caught:
            function(np.int8(2))
        assert "cannot be raised to negative powers, but got integer_pow(int8[], -1)" in str(
            caught.value
        )
        assert "x.astype(float)" in str(caught.value)


def test_first_powers_are_arrays() -> None:
    assert type(lax.integer_pow(np.float32(2), 1)) is ConcreteArray
    with pytest.raises(DTypeError, match="integer_pow does not accept bool"):
        lax.integer_pow(np.bool_(True), 1)


def test_clamp_of_complex_numbers_is_lexicographic() -> None:
    x = np.array([1 + 1j, -1 + 3j, 0.5 - 9j, 0.7 + 3j, 2j, -1j], np.complex64)
    low, high = np.complex64(0), np.complex64(0.7 + 1j)

    def by_parts(z: np.complex64) -> tuple[float, float]:
        return z.real, z.imag

    expected = [min(max(z, low, key=by_parts), high, key=by_parts) for z in x]
    np.testing.assert_array_equal(np.asarray(lax.clamp(low, x, high)), expected)


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint8, np.float32, np.float16])
def test_conversion_of_complex_numbers_takes_the_real_part(dtype: Any) -> None:
    x = np.array([1j, 1e3, -3.7 + 2j, np.nan], np.complex64)
    with pytest.warns(np.exceptions.ComplexWarning, match="drops the imaginary part"):
        result = lax.convert_element_type(x, dtype)
    with pytest.warns(np.exceptions.ComplexWarning):
        expected = jax.lax.convert_element_type(x, dtype)
    np.testing.assert_array_equal(np.asarray(result), np.asarray(expected))


def test_complex_numbers_at_the_edges_follow_c99() -> None:
    inf, nan = np.inf, np.nan
    x = np.array([complex(-inf, 2), complex(inf, 0), complex(100, 0), complex(0.001, 0)])

    def functions(x: Any, one: Any) -> list[Any]:
        return [lax.logistic(x), lax.expm1(x), lax.rsqrt(x), lax.div(one, x), lax.sign(x)]

    x = x.astype(np.complex64)
    arguments = (x, np.complex64(1))
    expected = [
        [0, 1, 1, 0.50025],
        [complex(-1, 0), inf, inf, 0.0010005],
        [0, 0, 0.1, 31.622776],
        [0, 0, 0.01, 1000],
        [complex(nan, 0), complex(nan, 0), 1, 1],
    ]
    for results in (functions(*arguments), axir.jit(functions)(*arguments)):
        for got, want in zip(results, expected, strict=True):
            np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6)


def test_log1p_keeps_small_real_parts() -> None:
    got = np.asarray(lax.log1p(np.complex64(0.001j)))
    assert got.real == pytest.approx(0.5e-6, rel=1e-5)


def test_cube_roots_reach_the_ends_of_the_range() -> None:
    with axir.enable_x64():
        x = np.array([1.7e308, -1e308, 3e-308, 8.0])
        np.testing.assert_allclose(np.asarray(axir.jit(lax.cbrt)(x)), np.cbrt(x), rtol=1e-15)


def test_compiled_code_takes_subnormal_numbers_for_zero() -> None:
    x = np.array([1e-40, 1.0], np.float32)
    assert np.asarray(lax.mul(x, np.float32(2)))[0] > 0
    products, moved = axir.jit(lambda x: (x * 2, x[::-1]))(x)
    assert np.asarray(products)[0] == 0
    assert np.asarray(moved)[1] == x[0]


def test_slopes_at_zero_are_those_of_jax() -> None:
    for name in ("abs", "cbrt"):
        ours, theirs = axir.grad(getattr(lax, name)), jax.grad(getattr(jax.lax, name))
        for point in (0.0, -0.0, 1.5, -1.5):
            assert float(ours(point)) == pytest.approx(float(theirs(point))), name
    second = jax.grad(jax.grad(jax.lax.cbrt))(0.0)
    assert float(axir.grad(axir.grad(lax.cbrt))(0.0)) == float(second)


def test_functions_made_of_sizes_are_symmetric_at_ties() -> None:
    for function in (axir.numpy.logaddexp, axir.numpy.logaddexp2):
        assert [float(g) for g in axir.grad(function, (0, 1))(2.0, 2.0)] == [0.5, 0.5]
    assert float(axir.grad(axir.nn.softplus)(0.0)) == 0.5
    assert float(axir.grad(axir.numpy.i0)(0.0)) == 0
    assert float(axir.grad(axir.scipy.special.i0)(0.0)) == 0


# Extents of 1 -----------------------------------------------------------------------------------

STRETCHING = {
    "float32": ("add", "sub", "mul", "div", "rem", "max", "min", "pow", "atan2", "nextafter", "eq",
                "ne", "lt", "le", "gt", "ge", "complex", "igamma", "igammac", "igamma_grad_a",
                "random_gamma_grad", "zeta", "polygamma"),
    "int32": ("bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right_logical",
              "shift_right_arithmetic", "mulhi"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "dtype"), [(name, dtype) for dtype, names in STRETCHING.items() for name in names]
)
def test_extents_of_1_stretch(name: str, dtype: str) -> None:
    x = np.array([[[1.5, 2.5, 3.5]], [[4.5, 5.5, 6.5]]]).astype(dtype)
    y = np.array([[[2.2], [3.2], [1.2], [0.2]]]).astype(dtype)
    function = getattr(lax, name)
    wide = np.broadcast_arrays(x, y)
    for operands, full in (((x, y), wide), ((y, x), wide[::-1]), ((x, wide[1]), wide)):
        result = function(*operands)
        assert result.shape == (2, 4, 3)
        np.testing.assert_array_equal(result, function(*full))
        mapped = axir.vmap(function, (None, 0), 1)(operands[0], np.stack([operands[1]] * 2))
        np.testing.assert_array_equal(mapped[:, 1], result)
    for shape in ((3,), (1,), (2, 3), (2, 1, 4), (2, 2, 3)):
        with pytest.raises(ShapeError, match="extents of 1 and scalars stretch") as caught:
            function(wide[0], np.ones(shape, dtype))
        assert "Broadcast one of them first" in str(caught.value)


def test_gradients_sum_over_stretched_extents() -> None:
    x = np.array([[0.5, 1.5, 2.5]], np.float32)
    y = np.array([[1.25], [0.75]], np.float32)
    z = np.array([[0.3]], np.float32)

    def values(package: Any) -> Any:
        def function(x: Any, y: Any, z: Any) -> Any:
            parts = [
                package.sub(package.mul(x, y), z), package.div(package.max(x, z), y),
                package.atan2(y, x), package.pow(x, y), package.rem(package.add(x, z), y),
                package.imag(package.complex(x, y)), package.real(package.complex(x, y)),
                package.select_n(package.lt(x, y), package.add(x, y), package.sub(y, x)),
            ]  # fmt: skip
            return sum(part.sum() for part in parts)

        return function

    expected = jax.grad(values(jax.lax), (0, 1, 2))(x, y, z)
    gradient = axir.grad(values(lax), (0, 1, 2))
    for got in (gradient(x, y, z), axir.jit(gradient)(x, y, z)):
        for ours, theirs in zip(got, expected, strict=True):
            assert ours.shape == theirs.shape
            np.testing.assert_allclose(ours, theirs, rtol=2e-5)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32"])
def test_integers_of_any_dtype_choose(dtype: str) -> None:
    which = np.array([0, 1, 2, -5, 100, 1]).astype(dtype)
    cases = [np.full(6, n, np.float32) for n in (10, 20, 30)]
    expected = np.asarray(jax.lax.select_n(which, *cases))
    for choose in (lax.select_n, axir.jit(lax.select_n)):
        np.testing.assert_array_equal(np.asarray(choose(which, *cases)), expected)
    assert float(lax.select_n(np.int64(1), np.float32(2), np.float32(3))) == 3
    with pytest.raises(DTypeError, match="the selector must be a bool or an integer"):
        lax.select_n(np.float32(1), np.float32(2), np.float32(3))


def test_choices_and_limits_do_not_stretch() -> None:
    x, row = np.ones((2, 3), np.float32), np.ones((1, 3), np.float32)
    for call in (
        lambda lax: lax.select_n(x > 0, x, row),
        lambda lax: lax.select_n(row > 0, x, x),
        lambda lax: lax.clamp(row, x, x),
        lambda lax: lax.clamp(x, x, row),
    ):
        with pytest.raises(ShapeError, match=r"equal shape \(or scalars\)"):
            call(lax)
        with pytest.raises(TypeError):
            call(jax.lax)

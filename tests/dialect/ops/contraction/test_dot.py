"""Contractions: semantics shared with JAX, and the texts of errors."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import lax
from axir.dialect.core.array import Array, as_array
from axir.dialect.core.config import config
from axir.dialect.core.errors import AxirError, DTypeError, ParameterError, ShapeError
from axir.dialect.core.symbolic_zeros import UndefinedPrimal
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.contraction.dot_general import MATMUL, batch_matmul, dot, dot_general
from axir.dialect.ops.contraction.types import canonical_precision

INNER = (((0,), (0,)), ((), ()))


def zeros(*shape: int, dtype: Any = np.float32) -> Array:
    return as_array(np.zeros(shape, dtype))


def draw(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(len(shape)).uniform(-4, 4, shape).astype(dtype)


# Values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lhs_shape", "rhs_shape", "numbers"),
    [
        ((3, 4), (4, 5), MATMUL),
        ((3, 4), (5, 4), (((1,), (1,)), ((), ()))),
        ((4,), (5, 4), (((0,), (1,)), ((), ()))),
        ((2, 3, 4, 5), (4, 2, 3, 6), (((1, 2), (2, 0)), ((0,), (1,)))),
        ((2, 3, 4), (5, 3, 2), (((1,), (1,)), ((0,), (2,)))),
        ((2, 3), (4, 5), (((), ()), ((), ()))),
        ((2, 3), (3, 2), (((), ()), ((1, 0), (0, 1)))),
        ((2, 3), (3, 2), (((1, 0), (0, 1)), ((), ()))),
        ((2, 0), (0, 3), MATMUL),
    ],
)
def test_products_equal_those_of_jax(lhs_shape: Any, rhs_shape: Any, numbers: Any) -> None:
    lhs, rhs = draw(lhs_shape), draw(rhs_shape)
    expected = np.asarray(jax.lax.dot_general(lhs, rhs, numbers, precision="highest"))
    result = dot_general(as_array(lhs), as_array(rhs), numbers)
    assert result.shape == expected.shape
    np.testing.assert_allclose(result.host(), expected, rtol=1e-5, atol=1e-5)


BYTES, UNSIGNED = np.array([100, 100], np.int8), np.array([200, 200], np.uint8)
FLAGS, INTEGERS = np.array([True, True]), np.array([1, 2], np.int32)
FLOATS, COMPLEX = np.array([1.0, 2.5], np.float32), np.array([1j, 2.5], np.complex64)
HALVES = np.array([1.5, 1.5], np.float32)


@pytest.mark.parametrize(
    ("lhs", "rhs", "preferred", "value", "dtype"),
    [
        (HALVES, HALVES, np.int32, 4, np.int32),  # multiplied first, then converted
        (BYTES, BYTES, None, 32, np.int8),  # wraps
        (BYTES, BYTES, np.int32, 20000, np.int32),
        (UNSIGNED, UNSIGNED, np.uint32, 80000, np.uint32),
        (FLAGS, FLAGS, None, True, np.bool_),
        (FLAGS, FLAGS, np.int32, 2, np.int32),
        (INTEGERS, HALVES, None, 4.5, np.float32),
        (COMPLEX, FLOATS, None, 6.25 + 1j, np.complex64),
        (COMPLEX, FLOATS, np.float32, 6.25, np.float32),
        (FLOATS, FLOATS, np.complex64, 7.25, np.complex64),
    ],
)
@pytest.mark.filterwarnings("ignore:Casting complex values to real")
def test_dtypes_of_operands_and_result(
    lhs: np.ndarray, rhs: np.ndarray, preferred: Any, value: Any, dtype: Any
) -> None:
    result = dot_general(lhs, rhs, INNER, preferred_element_type=preferred)
    expected = jax.lax.dot_general(lhs, rhs, INNER, preferred_element_type=preferred)
    assert result.dtype == expected.dtype == dtype
    assert result.item() == np.asarray(expected).item() == value


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_precision_accumulates_in_float32(dtype: Any) -> None:
    ones = as_array(np.ones(5000).astype(dtype))
    expected = float(np.float32(5000).astype(dtype))
    assert float(dot(ones, ones)) == expected
    assert dot(ones, ones).dtype == dtype
    wide = dot(ones, ones, preferred_element_type=np.float32)
    assert (float(wide), wide.dtype) == (5000, np.float32)


def test_narrow_integers_wrap_however_long_the_sum() -> None:
    x = np.full((2, 3000), -32768, np.int16)
    result = dot_general(as_array(x), as_array(x), (((1,), (1,)), ((), ())))
    np.testing.assert_array_equal(result.host(), x @ x.T)


def test_dot_multiplies_vectors_and_matrices() -> None:
    matrix, vector = draw((3, 3)), draw((3,))
    for lhs, rhs in ((matrix, matrix), (matrix, vector), (vector, matrix), (vector, vector)):
        result = dot(as_array(lhs), as_array(rhs)).host()
        np.testing.assert_allclose(result, lhs @ rhs, rtol=1e-5)


def test_batch_matmul_multiplies_the_last_axes() -> None:
    lhs, rhs = draw((2, 5, 3, 4)), draw((2, 5, 4, 2))
    result = batch_matmul(as_array(lhs), as_array(rhs))
    np.testing.assert_allclose(result.host(), lhs @ rhs, rtol=1e-4, atol=1e-5)


# Parameters ------------------------------------------------------------------------------------


class Precision(enum.Enum):
    HIGH = 1


@pytest.mark.parametrize(
    ("precision", "canonical"),
    [
        (None, None),
        ("highest", ("HIGHEST", "HIGHEST")),
        ("float32", ("HIGHEST", "HIGHEST")),
        ("bfloat16", ("DEFAULT", "DEFAULT")),
        (Precision.HIGH, ("HIGH", "HIGH")),
        (("high", None), ("HIGH", "DEFAULT")),
    ],
)
def test_precision_is_a_pair_of_names(precision: Any, canonical: Any) -> None:
    assert canonical_precision(precision) == canonical


def test_precision_has_a_default_option() -> None:
    config.update("jax_default_matmul_precision", "tensorfloat32")
    assert canonical_precision(None) == ("HIGH", "HIGH")


# Derivatives -----------------------------------------------------------------------------------


def test_cotangents_have_the_dtype_of_the_operands() -> None:
    lhs, rhs = as_array(draw((2, 3), ml_dtypes.bfloat16)), as_array(draw((3, 4), np.float32))
    ct = as_array(draw((2, 4)))
    rule = dot_general.primitive.transpose
    params = {"dimension_numbers": MATMUL, "precision": None, "preferred_element_type": None}
    lhs_ct, _ = rule(ct, UndefinedPrimal(lhs.type), rhs, **params)
    _, rhs_ct = rule(ct, lhs, UndefinedPrimal(rhs.type), **params)
    assert (lhs_ct.dtype, rhs_ct.dtype) == (lhs.dtype, rhs.dtype)
    exact = ct.host() @ rhs.host().T
    np.testing.assert_allclose(lhs_ct.host().astype(np.float32), exact, rtol=2**-8)


def test_complex_cotangents_are_not_conjugated() -> None:
    rhs = as_array(np.array([[1 + 2j]], np.complex64))
    ct = as_array(np.array([[3 - 1j]], np.complex64))
    undefined = UndefinedPrimal(ShapedArray((1, 1), np.complex64))
    params = {"dimension_numbers": MATMUL, "precision": None, "preferred_element_type": None}
    lhs_ct, _ = dot_general.primitive.transpose(ct, undefined, rhs, **params)
    assert lhs_ct.item() == (3 - 1j) * (1 + 2j)


# Errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: dot(zeros(2, 3), zeros(4, 3)),
            ShapeError,
            "dot_general: contracting axes must agree in size, but axes (1,) of lhs float32[2,3] "
            "have (3,) and axes (0,) of rhs float32[4,3] have (4,).",
        ),
        (
            lambda: dot_general(zeros(2, 3), zeros(3, 4), (((1,), (0,)), ((0,), ()))),
            ShapeError,
            "lhs has batch axes (0,) and rhs (): their numbers differ.",
        ),
        (
            lambda: dot_general(zeros(2, 3), zeros(3, 4), (((1, 1), (0, 0)), ((), ()))),
            ShapeError,
            "dot_general: lhs uses an axis twice (contracting (1, 1), batch ()).",
        ),
        (
            lambda: dot_general(zeros(2, 3), zeros(3, 4), (((1,), (2,)), ((), ()))),
            ShapeError,
            "dimension numbers of rhs (contracting (2,), batch ()) lie outside its 2 axes",
        ),
        (
            lambda: dot_general(zeros(2, 3), zeros(3, 3), (((1,), (1,)), ((0,), (0,)))),
            ShapeError,
            "dot_general: batch axes must agree in size",
        ),
        (
            lambda: dot(
                zeros(2, dtype=np.int32),
                zeros(2, dtype=np.int32),
                preferred_element_type=np.int8,
            ),
            DTypeError,
            "preferred_element_type int8 is narrower than the result type int32.",
        ),
        (
            lambda: dot(zeros(2), zeros(2), precision="exact"),
            ParameterError,
            "dot_general: precision 'exact' is not a precision.",
        ),
        (
            lambda: dot(zeros(2), zeros(2), precision=("high",)),
            ParameterError,
            "dot_general: precision ('high',) is not a precision.",
        ),
        (
            lambda: dot(zeros(2, 2, 2), zeros(2)),
            ShapeError,
            "dot multiplies vectors and matrices, but got float32[2,2,2] and float32[2].",
        ),
        (
            lambda: batch_matmul(zeros(3), zeros(2, 3)),
            ShapeError,
            "batch_matmul takes operands of the same rank, at least 2, but got float32[3] and "
            "float32[2,3].",
        ),
    ],
)
def test_errors_say_what_is_wrong(
    call: Callable[[], Any], error: type[AxirError], text: str
) -> None:
    with pytest.raises(error, match=re.escape(text)):
        call()


_MIXED = ("uint8", "int8", "float8_e5m2", "float8_e4m3fn", "float16", "bfloat16", "float32")


@pytest.mark.parametrize("preferred", [None, "float32"])
@pytest.mark.parametrize("other", _MIXED)
@pytest.mark.parametrize("dtype", _MIXED)
def test_results_of_mixed_operands_have_the_dtype_of_jax(
    dtype: str, other: str, preferred: str | None
) -> None:
    numbers = (((1,), (0,)), ((), ()))

    def product(module: Any) -> Any:
        lhs = module.numpy.ones((2, 3), dtype)
        rhs = module.numpy.ones((3, 2), other)
        return module.lax.dot_general(lhs, rhs, numbers, preferred_element_type=preferred)

    ours, theirs = product(axir), product(jax)
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours.astype("float32"), theirs.astype("float32"))


def test_operands_of_which_neither_is_wider_are_refused() -> None:
    lhs, rhs = jnp.ones((2, 2), "float8_e5m2"), jnp.ones((2, 2), "float8_e5m2fnuz")
    with pytest.raises(DTypeError, match="of one range and precision"):
        lax.dot(lhs, rhs)

"""float8, float6, float4, int4, int2 and their like: conversion, promotion, arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import lax
from axir.dialect.core import dtypes

NARROW = dtypes.NARROW
FLOATS = dtypes.NARROW_FLOATS
# One of each kind: without infinity, with it, without negative zero, powers of two, without nan.
COMPILED = tuple(
    np.dtype(getattr(ml_dtypes, name))
    for name in (
        "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float8_e8m0fnu", "float4_e2m1fn",
        "int4", "uint4",
    )
)  # fmt: skip
# JAX has the others, too, but compiles an op at a time, which takes long.
COMPARED = tuple(
    np.dtype(getattr(ml_dtypes, name))
    for name in ("float8_e4m3fn", "float4_e2m1fn", "int4", "uint4")
)
_generator = np.random.default_rng(0)
NUMBERS = np.concatenate(
    [
        _generator.normal(size=500) * np.exp(_generator.uniform(-12, 12, 500)),
        np.ldexp(1.0, np.arange(-149, 128)),
        np.arange(-40, 40) / 4,
        np.arange(0, 600, 1.5),
        [0.0, -0.0, np.inf, -np.inf, np.nan, 448, 464, 464.1, 57344, 61440, 6, 7],
    ]
).astype(np.float32)


def every_element(dtype: np.dtype) -> np.ndarray:
    if dtypes.is_float(dtype):
        return np.arange(2 ** ml_dtypes.finfo(dtype).bits, dtype=np.uint8).view(dtype)
    limits = ml_dtypes.iinfo(dtype)
    return np.arange(limits.min, limits.max + 1).astype(dtype)


def assert_same(ours: Any, expected: Any) -> None:
    ours, expected = np.asarray(ours), np.asarray(expected)
    assert (ours.dtype, ours.shape) == (expected.dtype, expected.shape)
    if ours.dtype == np.float32:
        np.testing.assert_allclose(ours, expected, rtol=2e-6)
    else:  # NumPy itself takes nan of the narrow floats for different numbers
        np.testing.assert_array_equal(ours.astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_names_and_text(dtype: np.dtype) -> None:
    scalar_type = getattr(jnp, dtype.name)
    assert scalar_type.dtype == dtype == jnp.dtype(dtype.name)
    assert jnp.issubdtype(dtype, jnp.floating) == jax.numpy.issubdtype(dtype, jax.numpy.floating)
    assert jnp.issubdtype(dtype, jnp.integer) == jax.numpy.issubdtype(dtype, jax.numpy.integer)
    x = scalar_type(np.ones(2))
    assert x.dtype == dtype
    assert f"dtype={dtype.name}" in repr(x)
    ours, theirs = axir.make_jaxpr(lambda x: x)(x), jax.make_jaxpr(lambda x: x)(np.asarray(x))
    assert str(ours).split() == str(theirs).split()


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_promotion_is_that_of_jax(dtype: np.dtype) -> None:
    for other in (*dtypes.ALL, *NARROW, int, float, complex, bool):
        try:
            expected = jax.numpy.promote_types(dtype, other)
        except jax.dtypes.TypePromotionError:
            with pytest.raises(axir.errors.DTypeError, match="x.astype"):
                jnp.promote_types(dtype, other)
        else:
            assert jnp.promote_types(dtype, other) == expected


@pytest.mark.parametrize("dtype", COMPARED, ids=str)
def test_conversions_are_those_of_jax(dtype: np.dtype) -> None:
    x = every_element(dtype)
    for target in ("float32", "bfloat16", "int32", "bool", "int8"):
        assert_same(jnp.asarray(x).astype(target), jax.numpy.asarray(x).astype(target))


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_elements_are_the_nearest_to_numbers(dtype: np.dtype) -> None:
    if dtypes.is_float(dtype):
        assert_same(jnp.asarray(NUMBERS).astype(dtype), NUMBERS.astype(dtype))
    else:  # floats saturate, integers lose their high bits
        limits = ml_dtypes.iinfo(dtype)
        expected = np.clip(np.nan_to_num(NUMBERS, nan=0), limits.min, limits.max)
        assert_same(jnp.asarray(NUMBERS).astype(dtype), np.trunc(expected).astype(dtype))
        wide = np.arange(-300, 300, dtype=np.int32)
        bits = wide & (2**limits.bits - 1)
        signed = np.where(bits > limits.max, bits - 2**limits.bits, bits)
        assert_same(jnp.asarray(wide).astype(dtype), signed.astype(dtype))


def test_compiled_conversions_are_the_evaluated_ones() -> None:
    elements = [every_element(dtype) for dtype in COMPILED]
    wide = np.arange(-300, 300, dtype=np.int32)

    def convert(number: Any, integer: Any, *elements: Any) -> list[Any]:
        narrowed = [number.astype(dtype) for dtype in COMPILED]
        narrowed += [integer.astype(dtype) for dtype in COMPILED[-3:]]
        return [*narrowed, *[x.astype("float32") for x in elements]]

    with np.errstate(invalid="ignore"):
        expected = convert(*map(jnp.asarray, (NUMBERS, wide, *elements)))
    for ours, evaluated in zip(axir.jit(convert)(NUMBERS, wide, *elements), expected, strict=True):
        assert_same(ours, evaluated)


Function = Callable[[Any, Any], Any]
OPERATIONS: list[Function] = [
    lambda np, x: x + x,
    lambda np, x: x * x - x,
    lambda np, x: x * 2,
    lambda np, x: x == x.T[:1, :1],
    lambda np, x: np.max(x, axis=1),
    lambda np, x: x @ x.T,
    lambda np, x: np.sort(x, axis=1),
    lambda np, x: np.argmax(x, axis=1),
    lambda np, x: np.where(x > 0, x, x * 2),
    lambda np, x: np.concatenate([x, x]),
    lambda np, x: x.at[0, 1].set(x[1, 1]),
    lambda np, x: x.at[0].add(x[1]),
    lambda np, x: x[np.array([1, 0])],
    lambda np, x: np.cumsum(x, axis=1),
    lambda np, x: np.zeros((2,), x.dtype),
    lambda np, x: np.arange(2, dtype=x.dtype),
    lambda np, x: np.pad(x, 1),
    lambda np, x: np.clip(x, 0, 1),
    lambda np, x: np.tile(x, (2, 2)),
    lambda np, x: x // np.ones_like(x),
    lambda np, x: np.mean(x, axis=0),
    lambda np, x: np.exp(x),
    lambda np, x: np.isnan(x),
    lambda np, x: np.round(x),
]
OF_FLOATS: list[Function] = [
    lambda np, x: np.sin(x) / 3,
    lambda np, x: np.sum(x, axis=0),
    lambda np, x: np.sqrt(x),
    lambda np, x: -x,
]


def small_matrix(dtype: np.dtype) -> np.ndarray:
    return np.array([[1, 0, 1], [1, 1, 1]]).astype(dtype)


def operations(dtype: np.dtype) -> list[Function]:
    return OPERATIONS + (OF_FLOATS if dtypes.is_float(dtype) else [])


@pytest.mark.parametrize("dtype", COMPARED, ids=str)
def test_operations_are_those_of_jax(dtype: np.dtype) -> None:
    x = small_matrix(dtype)
    ours, theirs = jnp.asarray(x), jax.numpy.asarray(x)
    for function in operations(dtype):
        assert_same(function(jnp, ours), function(jax.numpy, theirs))


@pytest.mark.parametrize("name", ["float8_e4m3fn", "int4"])
def test_compiled_programs_are_the_evaluated_ones(name: str) -> None:
    dtype = jnp.dtype(name)
    preferred = jnp.float32 if dtypes.is_float(dtype) else jnp.int32

    def program(x: Any) -> list[Any]:
        product = lax.dot_general(x, x, (((1,), (1,)), ((), ())), preferred_element_type=preferred)
        return [
            *[function(jnp, x) for function in operations(dtype)],
            product,
            lax.fori_loop(0, 2, lambda i, y: y + x, x),
            lax.cond(x[0, 0] > 0, lambda y: y, lambda y: y + y, x),
            *lax.scan(lambda c, y: (c + y, c), x[0], x),
            axir.vmap(lambda row: row + row[::-1])(x),
            lax.reduce(x, x[0, 0], lax.add, (0,)),
            lax.optimization_barrier(x),
        ]

    x = jnp.asarray(small_matrix(dtype))
    for ours, evaluated in zip(axir.jit(program)(x), program(x), strict=True):
        assert_same(ours, evaluated)


def test_derivatives() -> None:
    def cube(y: Any, np: Any) -> Any:
        return (y * y * y).sum().astype(np.float32)

    x = small_matrix(jnp.dtype("float8_e5m2"))
    ours = axir.grad(lambda y: cube(y, jnp))(jnp.asarray(x))
    theirs = jax.grad(lambda y: cube(y, jax.numpy))(jax.numpy.asarray(x))
    assert_same(ours, theirs)


def test_bits() -> None:
    x = every_element(jnp.dtype("float8_e4m3fn"))
    assert_same(lax.bitcast_convert_type(jnp.asarray(x), jnp.uint8), x.view(np.uint8))
    back = axir.jit(lambda b: lax.bitcast_convert_type(b, jnp.float8_e4m3fn))(x.view(np.uint8))
    np.testing.assert_array_equal(np.asarray(back).view(np.uint8), x.view(np.uint8))


def test_a_saved_module_holds_them() -> None:
    exported = axir.export.export(axir.jit(lambda x: x * jnp.int4(3)))(jnp.ones(2, jnp.int4))
    assert "tensor<2xi4>" in exported.mlir_module()


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "int4", "uint2"])
def test_random_numbers_are_those_of_jax(name: str) -> None:
    dtype = jnp.dtype(name)
    with jax.threefry_partitionable(True), axir.threefry_partitionable(True):
        if dtypes.is_float(dtype):
            ours, theirs = (x.random.normal(x.random.key(1), (50,), dtype) for x in (axir, jax))
        else:
            ours, theirs = (
                x.random.randint(x.random.key(1), (50,), 0, 3, dtype) for x in (axir, jax)
            )
    assert_same(ours, theirs)


def test_random_numbers_need_eight_bits() -> None:
    with pytest.raises(axir.errors.ParameterError, match="too few bits"):
        axir.random.normal(axir.random.key(0), (2,), jnp.float4_e2m1fn)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: jnp.ones(2, jnp.float8_e5m2) + jnp.ones(2), "so few bits do not widen"),
        (lambda: jnp.ones(2, jnp.int4) + 1.5, "so few bits do not widen"),
        (lambda: jnp.float8_e5m2(1) & jnp.float8_e5m2(1), "does not accept float8_e5m2"),
        (lambda: lax.add(jnp.int4(1), jnp.int8(1)), "equal dtype"),
        (lambda: lax.add(jnp.int4(1), jnp.uint4(1)), "equal dtype"),
    ],
)
def test_errors(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(axir.errors.DTypeError, match=text):
        call()

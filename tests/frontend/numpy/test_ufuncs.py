"""Elementwise functions against JAX: dtypes, weak types, scalars, broadcasting, edge values."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest
from support.against_jax import (
    Weak,
    assert_close,
    assert_same,
    compare,
    same_error,
    to_axir,
    to_jax,
)

import axir
import axir.numpy as jnp
from axir.dialect.core.array import Array, from_numpy
from axir.dialect.core.config import enable_x64, numpy_dtype_promotion, numpy_rank_promotion
from axir.dialect.core.errors import DTypeError, NonArrayArgumentError
from axir.numpy._arguments.promotion import BroadcastError

DTYPES = ("bool", "int8", "uint32", "bfloat16", "float32", "complex64")
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, np.inf, -np.inf, np.nan]

UNARY = (
    "absolute arccos arccosh arcsin arcsinh arctan arctanh cbrt ceil conjugate cos cosh deg2rad "
    "exp exp2 expm1 fabs floor imag invert iscomplex isfinite isinf isnan isreal log log10 log1p "
    "log2 logical_not negative positive rad2deg real reciprocal rint round sign signbit sin sinh "
    "sqrt square tan tanh trunc bitwise_count angle isposinf isneginf nan_to_num frexp"
).split()
BINARY = (
    "add arctan2 bitwise_and bitwise_or bitwise_xor copysign divide equal float_power "
    "floor_divide fmax fmin fmod greater greater_equal heaviside hypot left_shift less less_equal "
    "logaddexp logaddexp2 logical_and logical_or logical_xor maximum minimum multiply nextafter "
    "not_equal power remainder right_shift subtract"
).split()
# Where the reference refuses a dtype, so do we; where it computes something of no use, we refuse.
REFUSED = {
    ("arctan2", "complex64"),
    ("copysign", "complex64"),
    ("hypot", "complex64"),
    ("round", "bool"),
}


def values(dtype: str, shape: tuple[int, ...] = (2, 3), seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng([seed, len(shape)])
    if dtype == "bool":
        return generator.integers(0, 2, shape).astype(bool)
    if "int" in dtype:
        return generator.integers(1, 6, shape).astype(dtype)
    x = generator.uniform(0.1, 0.9, shape)
    if dtype == "complex64":
        x = x + 1j * generator.uniform(0.1, 0.9, shape)
    return x.astype(getattr(ml_dtypes, dtype, None) or dtype)


def is_scalar(x: Any) -> bool:
    return isinstance(x, (bool, int, float, complex))


def jax_results(calls: dict[Any, tuple[str, tuple[Any, ...]]]) -> dict[Any, Any]:
    """Computes calls of JAX's functions in one compiled program, without those it refuses."""
    arrays = {key: [a for a in args if not is_scalar(a)] for key, (_, args) in calls.items()}

    def call(key: Any, traced: list[Any]) -> Any:
        name, args = calls[key]
        given = iter(traced)
        scalars = (bool, int, float, complex)
        return getattr(jax.numpy, name)(
            *(a if isinstance(a, scalars) else next(given) for a in args)
        )

    converted = {key: [to_jax(a) for a in args] for key, args in arrays.items()}
    accepted = {}
    for key, args in converted.items():
        try:
            jax.eval_shape(partial(call, key), args)
        except (TypeError, ValueError):
            continue
        accepted[key] = args
    return jax.jit(lambda given: {key: call(key, args) for key, args in given.items()})(accepted)


def check_all(calls: dict[str, tuple[str, tuple[Any, ...]]], factor: float = 8.0) -> None:
    """For each call both agree, or both refuse."""
    expected = jax_results(calls)
    assert expected
    for key, (name, args) in calls.items():
        ours = tuple(map(to_axir, args))
        if key not in expected:
            with pytest.raises((TypeError, ValueError)):
                getattr(jnp, name)(*ours)
            continue
        result = getattr(jnp, name)(*ours)
        if isinstance(result, Array) and result.dtype == np.bool_:
            # A weak type of bools, which JAX sometimes returns, means nothing.
            assert_close(np.asarray(result), np.asarray(expected[key]), factor, key)
        else:
            assert_same(result, expected[key], factor, key)


def described(name: str, *args: Any) -> str:
    return (
        f"{name}({', '.join(a.dtype.name if isinstance(a, np.ndarray) else str(a) for a in args)})"
    )


def all_of(*calls: tuple[Any, ...]) -> dict[str, tuple[str, tuple[Any, ...]]]:
    return {f"{i} {described(*call)}": (call[0], call[1:]) for i, call in enumerate(calls)}


def check(name: str, *args: Any, **kwargs: Any) -> None:
    compare(getattr(jnp, name), getattr(jax.numpy, name), *args, factor=8.0, **kwargs)


@pytest.mark.parametrize("dtype", DTYPES)
def test_unary_functions_over_dtypes(dtype: str) -> None:
    names = [name for name in UNARY if (name, dtype) not in REFUSED]
    check_all(all_of(*((name, values(dtype)) for name in names)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_binary_functions_over_dtypes(dtype: str) -> None:
    # In JAX the remainder of True by False is True, although the remainder of 1 by 0 is 0.
    names = [n for n in BINARY if (n, dtype) not in REFUSED and (n, dtype) != ("fmod", "bool")]
    check_all(all_of(*((name, values(dtype), values(dtype, seed=1)) for name in names)))


@pytest.mark.parametrize("name", ["add", "divide", "maximum", "power", "equal", "floor_divide"])
def test_binary_functions_promote_and_broadcast(name: str) -> None:
    # JAX has NaN for the power of a complex zero.
    firsts = [dtype for dtype in DTYPES if (name, dtype) != ("power", "bool")]
    pairs = itertools.product(firsts, ("uint8", "int32", "float16", "complex64"))
    check_all(all_of(*((name, values(a, (2, 1)), values(b, (3,), 1)) for a, b in pairs)))


SCALARS = (True, 3, 2.5, 1.5 + 0.5j)


@pytest.mark.parametrize("dtype", DTYPES)
def test_python_scalars_are_weak(dtype: str) -> None:
    x = values(dtype)
    names = ("add", "multiply", "divide", "subtract", "maximum", "less")
    pairs = list(itertools.product(names, SCALARS))
    calls = [(name, x, scalar) for name, scalar in pairs]
    check_all(all_of(*calls, *((name, scalar, x) for name, scalar in pairs)))


def test_scalars_with_scalars() -> None:
    names = ("add", "divide", "power", "maximum")
    check_all(all_of(*itertools.product(names, SCALARS, SCALARS)))


def test_weak_types_survive_unary_functions() -> None:
    names = ("sin", "negative", "absolute", "floor", "sqrt", "square", "exp2", "sign", "log1p")
    weak = (Weak(np.array([1.5, 1.5])), Weak(np.array([2, 2])), 2, 2.5)
    check_all(all_of(*itertools.product(names, weak)))


def test_weak_arrays_yield_to_others() -> None:
    calls = [("add", Weak(np.array([2.5, 2.5])), values(dtype, (2,))) for dtype in DTYPES]
    calls += [("multiply", values(dtype, (2,)), Weak(np.array([3, 3]))) for dtype in DTYPES]
    check_all(all_of(*calls))


def test_unary_functions_at_edges() -> None:
    edges = np.array(EDGES, np.float32)
    names = [name for name in UNARY if name not in ("invert", "bitwise_count", "angle")]
    check_all(all_of(*((name, edges) for name in names)))


def test_binary_functions_at_edges() -> None:
    x, y = np.meshgrid(np.array(EDGES, np.float32), np.array(EDGES, np.float32))
    names = (
        "add divide maximum minimum fmax fmin remainder floor_divide fmod copysign arctan2 "
        "nextafter less equal power"
    ).split()
    check_all(all_of(*((name, x, y) for name in names)))


@pytest.mark.parametrize("name", ["hypot", "heaviside", "logaddexp", "logaddexp2"])
def test_numpy_knows_best_what_to_do_with_nan(name: str) -> None:
    x, y = np.meshgrid(np.array(EDGES, np.float32), np.array(EDGES, np.float32))
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x, y)
    function = getattr(jnp, name)
    assert_close(np.asarray(function(x, y)), expected, 8.0)
    traced = axir.vmap(function)(from_numpy(x), from_numpy(y))
    assert_close(np.asarray(traced), expected, 8.0)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8"])
def test_integer_division_of_all_signs(dtype: str) -> None:
    x, y = np.meshgrid(np.arange(-4, 5).astype(dtype), np.arange(-4, 5).astype(dtype))
    names = ("floor_divide", "remainder", "fmod", "divmod")
    check_all(all_of(*((name, x, np.where(y == 0, 1, y).astype(dtype)) for name in names)))


def test_powers() -> None:
    x = values("float32")
    bases = (x, values("int32"), values("uint8"), values("bool"), 2, 2.5, True)
    exponents = (0, 1, 2, 3, 5, 2.0, 0.5, values("int32"), values("int8"), x)
    calls = [("power", *pair) for pair in itertools.product(bases, exponents)]
    check_all(all_of(*calls, ("power", x, -1), ("power", x, -2)))
    for exponent in (-1, -2):
        same_error(jnp.power, jax.numpy.power, values("int32"), exponent)
    exponents = np.array([64, 31, 40], np.int32)
    np.testing.assert_array_equal(jnp.power(3, exponents), np.power(np.int32(3), exponents))


def test_integers_to_negative_powers_are_refused_with_the_way_out() -> None:
    with pytest.raises(DTypeError, match="negative powers") as caught:
        jnp.arange(3) ** -1
    assert "astype(float)" in str(caught.value)


def test_shifts_and_bits() -> None:
    for dtype in ("int8", "uint8", "int32"):
        x = np.array([0, 1, 5, 100], dtype)
        for name in ("left_shift", "right_shift"):
            check(name, x, np.array([0, 1, 3, 2], dtype))
            check(name, x, 1)


@pytest.mark.parametrize("name", ["gcd", "lcm"])
def test_common_divisors_and_multiples(name: str) -> None:
    x = np.array([0, 4, -6, 12, 35, 7, 832040], np.int32)
    y = np.array([0, 6, 4, 18, -14, 0, 514229], np.int32)
    check(name, x, y)
    check(name, x, 6)
    check(name, 4, 6)
    traced = axir.vmap(getattr(jnp, name))(from_numpy(x[:6]), from_numpy(y[:6]))
    np.testing.assert_array_equal(traced, getattr(np, name)(x[:6], y[:6]))
    with pytest.raises(DTypeError, match=rf"jnp\.{name} takes integers"):
        getattr(jnp, name)(1.5, 2)


def test_rounding_to_decimals() -> None:
    x = np.array([0.5, 1.5, 2.5, -1.25, 123.456, 0.125], np.float32)
    for decimals in (0, 1, 2, -1):
        check("round", x, decimals)
        check("round", x.astype(np.float16), decimals)
    check("round", x + 1j * x, 1)
    np.testing.assert_array_equal(jnp.round(jnp.array([5, 15, 25, -15]), -1), [0, 20, 20, -20])


def test_modf_of_infinity_is_numpys() -> None:
    x = np.array(EDGES, np.float32)
    for ours, theirs in zip(jnp.modf(from_numpy(x)), np.modf(x), strict=True):
        np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(np.signbit(ours), np.signbit(theirs))


def test_sinc_has_the_right_derivatives_at_zero() -> None:
    first = axir.grad(jnp.sinc)
    second = axir.grad(first)
    assert float(jnp.sinc(0.0)) == 1.0
    assert float(first(0.0)) == 0.0
    np.testing.assert_allclose(second(0.0), -(np.pi**2) / 3, rtol=1e-6)


@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_gradients_of_logaddexp(name: str) -> None:
    function = getattr(jnp, name)
    points = [(0.0, 0.0), (1.0, -2.0), (100.0, 0.0), (-np.inf, 1.0), (-np.inf, -np.inf)]
    for x, y in points:
        got = axir.grad(function, argnums=(0, 1))(x, y)
        total = np.logaddexp if name == "logaddexp" else np.logaddexp2
        base = np.exp if name == "logaddexp" else np.exp2
        expected = [0.5, 0.5] if x == y else [base(v - total(x, y)) for v in (x, y)]
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-7)
    assert np.isnan(axir.grad(function)(np.nan, 0.0))


@pytest.mark.parametrize(("name", "scale"), [("logaddexp", 1.0), ("logaddexp2", np.log(2))])
def test_second_derivatives_of_logaddexp_where_both_are_equal(name: str, scale: float) -> None:
    function = getattr(jnp, name)
    for evaluate in (axir.hessian(function, (0, 1)), axir.jit(axir.hessian(function, (0, 1)))):
        curvature = np.array(evaluate(0.5, 0.5))
        np.testing.assert_allclose(curvature, scale / 4 * np.array([[1, -1], [-1, 1]]), rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("remainder", (5.5, 2.0)), ("hypot", (3.0, 4.0)), ("maximum", (2.0, 2.0)),
        ("power", (2.0, 3.0)), ("arctan2", (1.0, 2.0)), ("copysign", (2.0, -1.0)),
        ("float_power", (2.0, 0.5)), ("logaddexp", (0.3, 0.7)), ("fmax", (1.0, 2.0)),
    ],
)  # fmt: skip
def test_gradients_of_binary_functions(name: str, args: tuple[float, float]) -> None:
    ours = axir.grad(getattr(jnp, name), argnums=(0, 1))(*args)
    theirs = jax.grad(getattr(jax.numpy, name), argnums=(0, 1))(*args)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_closeness_and_equality() -> None:
    x = np.array([1.0, 1.00001, np.nan, np.inf, -np.inf, 0.0], np.float32)
    y = np.array([1.0, 1.0, np.nan, np.inf, np.inf, 1e-9], np.float32)
    for equal_nan in (False, True):
        for name in ("isclose", "allclose"):
            check(name, x, y, equal_nan=equal_nan)
        check("array_equal", x, x, equal_nan=equal_nan)
    check("isclose", values("int32"), values("int32", seed=1))
    check("isclose", x, 1.0, rtol=0.1)
    check("array_equal", x, x[:2])
    check("array_equiv", np.ones((2, 3), np.float32), np.ones(3, np.float32))
    assert not bool(jnp.array_equiv(jnp.ones(3), jnp.ones(2)))
    assert bool(jnp.array_equal([1, 2], [1, 2]))
    assert not bool(jnp.array_equal([1, 2], "ab"))


def test_random_keys_are_close_to_equal_ones() -> None:
    keys = axir.random.split(axir.random.key(0))
    assert jnp.isclose(keys, keys[0]).tolist() == [True, False]
    assert bool(jnp.allclose(keys, keys))


def test_complex_numbers_compare_by_real_then_imaginary_part() -> None:
    x = np.array([1 + 2j, 1 + 1j, 0.5 + 9j], np.complex64)
    y = np.array([1 + 1j, 1 + 2j, 1 + 0j], np.complex64)
    for name in ("less", "less_equal", "greater", "greater_equal", "maximum", "minimum"):
        check(name, x, y)


def test_lists_are_refused_by_name_with_the_way_out() -> None:
    with pytest.raises(NonArrayArgumentError, match=r"jnp\.sin: argument 0 is \[1\.0\]") as caught:
        jnp.sin([1.0])
    assert "jnp.array" in str(caught.value)
    with pytest.raises(NonArrayArgumentError, match=r"jnp\.add: argument 1"):
        jnp.add(jnp.ones(2), [1.0, 2.0])
    with pytest.raises(NonArrayArgumentError, match="'NoneType'"):
        jnp.add(jnp.ones(2), None)


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(BroadcastError, match=r"jnp\.add: shapes \(3,\) and \(4,\)") as caught:
        jnp.add(jnp.ones(3), jnp.ones(4))
    assert isinstance(caught.value, (TypeError, ValueError))
    assert "test_ufuncs.py" in str(caught.value)


def test_rank_promotion_can_be_forbidden() -> None:
    with numpy_rank_promotion("raise"):
        assert jnp.add(jnp.ones((2, 3)), 1.0).shape == (2, 3)
        with pytest.raises(BroadcastError, match="differ in rank"):
            jnp.add(jnp.ones((2, 3)), jnp.ones(3))
    with numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="differ in rank"):
        jnp.add(jnp.ones((2, 3)), jnp.ones(3))


def test_wide_dtypes() -> None:
    with enable_x64(), jax.enable_x64(True):
        x, y = values("float64"), values("float64", seed=1)
        names = ("add", "divide", "floor_divide", "remainder", "power", "logaddexp")
        calls = [(name, x, y) for name in names]
        calls += [(name, values("int64"), values("float32")) for name in names]
        calls += [(name, x) for name in ("sin", "sqrt", "signbit", "frexp", "log2", "round")]
        check_all(all_of(*calls, ("add", 1, 2.5), ("sin", 2)))


def test_python_integers_wrap_around_in_narrow_dtypes() -> None:
    check("add", values("int8"), 300)
    check("subtract", values("uint8"), -1)
    with enable_x64():
        assert jnp.add(jnp.arange(3, dtype=np.int32), 2**40).tolist() == [0, 1, 2]
    with pytest.raises(OverflowError):
        jnp.add(jnp.arange(3), 2**40)


def test_eager_traced_and_compiled_results_agree() -> None:
    x = values("float32", (4,)) + np.float32(0.5)
    y = values("float32", (4,), 1)
    n = np.array([1, -7, 12, 30], np.int32)
    m = np.array([3, 2, -5, 4], np.int32)

    def everything(x: Any, y: Any, n: Any, m: Any) -> list[Any]:
        of_floats = [getattr(jnp, name)(x, y) for name in (
            "add", "remainder", "floor_divide", "logaddexp", "hypot", "heaviside", "copysign",
            "power", "arctan2", "fmax", "maximum", "isclose",
        )]  # fmt: skip
        of_one = [getattr(jnp, name)(x) for name in (
            "sinc", "log2", "log10", "trunc", "round", "signbit", "reciprocal", "deg2rad",
            "isfinite", "nan_to_num", "exp2",
        )]  # fmt: skip
        of_integers = [getattr(jnp, name)(n, m) for name in (
            "floor_divide", "remainder", "fmod", "bitwise_xor", "left_shift", "gcd",
        )]  # fmt: skip
        return [*of_floats, *of_one, *of_integers, *jnp.frexp(x), *jnp.modf(x), n**m, x**3]

    arrays = [from_numpy(v) for v in (x, y, n, m)]
    eager = everything(*arrays)
    traced = axir.vmap(everything)(*arrays)
    compiled = axir.jit(everything)(*arrays)
    for one, two, three in zip(eager, traced, compiled, strict=True):
        assert one.type == two.type == three.type
        assert_close(np.asarray(two), np.asarray(one), 8.0)
        assert_close(np.asarray(three), np.asarray(one), 8.0)


def test_strictness_concerns_what_users_write() -> None:
    image, mean = jnp.ones((2, 3)), jnp.zeros(3)
    with numpy_rank_promotion("raise"), numpy_dtype_promotion("strict"):
        assert axir.image.resize(image, (0, 5), "linear").shape == (0, 5)
        assert axir.scipy.stats.norm.pdf(image, mean, jnp.ones((), jnp.int32)).shape == (2, 3)
        assert image.at[jnp.array([0, 1])].set(mean).sum() == 0
        assert jnp.full((2, 3), mean).shape == (2, 3)
        assert jnp.polyfit(jnp.arange(5.0), jnp.ones(5), 2).shape == (3,)
        assert jnp.unpackbits(jnp.uint8([[3]]), axis=1).tolist() == [[0] * 6 + [1, 1]]
        with pytest.raises(DTypeError, match="Strict dtype promotion"):
            mean + jnp.arange(3)


def test_objects_that_hold_traced_values_are_operands() -> None:
    class Parameter:
        def __init__(self, value: object):
            self.value = value

        def __jax_array__(self) -> object:
            return self.value

    def function(x: object) -> object:
        held = Parameter(x)
        return jnp.sum(jnp.sin(held) + jnp.ones(2) @ held + jnp.asarray(held) * held)

    x = np.array([1.0, 2.0], np.float32)
    np.testing.assert_allclose(axir.grad(function)(x), np.cos(x) + 2 + 2 * x, rtol=1e-6)

"""Reductions against JAX: over dtypes, axes and edge cases."""

from __future__ import annotations

from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest
from support.against_jax import Weak, assert_close, compare, same_error

import axir
import axir.numpy as jnp
from axir import errors
from axir.dialect.core.array import from_numpy
from axir.dialect.core.config import enable_x64

DTYPES = (
    "bool", "int8", "uint8", "int16", "int32", "uint32", "float16", "bfloat16", "float32",
    "complex64",
)  # fmt: skip
SMOOTH = ("float32", "complex64")


def values(dtype: str, shape: tuple[int, ...] = (3, 4), seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    if dtype == "bool":
        return generator.integers(0, 2, shape).astype(bool)
    if "int" in dtype:
        return generator.integers(0, 5, shape).astype(dtype)
    x = generator.normal(size=shape)
    if dtype == "complex64":
        x = x + 1j * generator.normal(size=shape)
    return x.astype(getattr(ml_dtypes, dtype, None) or dtype)


def both(name: str) -> tuple[Any, Any]:
    return getattr(jnp, name), getattr(jax.numpy, name)


def check(name: str, *args: Any, **kwargs: Any) -> None:
    compare(*both(name), *args, **kwargs)


ASSOCIATIVE = ("sum", "prod", "max", "min", "any", "all", "nansum", "nanprod", "nanmax", "nanmin")
MOMENTS = ("mean", "var", "std", "nanmean", "nanvar", "nanstd", "average")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*ASSOCIATIVE, *MOMENTS, "count_nonzero"])
def test_dtypes(name: str, dtype: str) -> None:
    check(name, values(dtype))
    check(name, values(dtype), axis=1)


@pytest.mark.parametrize("name", [*ASSOCIATIVE, *MOMENTS, "count_nonzero"])
def test_scalars(name: str) -> None:
    check(name, values("float32", ()))
    check(name, values("int8", ()))


@pytest.mark.parametrize("name", [*ASSOCIATIVE, *MOMENTS, "count_nonzero"])
def test_weak_types_become_strong(name: str) -> None:
    check(name, Weak(np.full((3,), 2.0)))
    check(name, Weak(np.full((3,), 2)))
    check(name, 2.5)
    check(name, 3)


AXES = [(None, True), (-1, False), ((0, 2), True), ((-1, 0), False)]


@pytest.mark.parametrize(("axis", "keepdims"), AXES)
@pytest.mark.parametrize("name", [*ASSOCIATIVE, *MOMENTS, "count_nonzero", "ptp"])
def test_axes(name: str, axis: Any, keepdims: bool) -> None:
    check(name, values("float32", (2, 3, 4)), axis=axis, keepdims=keepdims)


@pytest.mark.parametrize("name", [*ASSOCIATIVE, "mean", "var", "nanstd", "count_nonzero", "ptp"])
def test_no_axes(name: str) -> None:
    check(name, values("float32", (2, 3)), axis=())


@pytest.mark.parametrize("name", ["sum", "prod", "any", "all", "nansum", "mean", "var", "nanmean"])
def test_empty_arrays(name: str) -> None:
    check(name, np.zeros((0, 3), np.float32))
    check(name, np.zeros((0, 3), np.float32), axis=0)
    check(name, np.zeros((0, 3), np.float32), axis=1)


@pytest.mark.parametrize("name", [*ASSOCIATIVE, *MOMENTS, "argmax", "argmin"])
def test_not_a_number(name: str) -> None:
    x = np.array([[1, np.nan, 3], [4, 5, 6], [np.nan] * 3, [np.inf, 1, -np.inf]], np.float32)
    check(name, x)
    check(name, x, axis=1)


@pytest.mark.parametrize("name", ["sum", "prod", "nansum", "nanprod", "mean", "nanmean", "cumsum"])
def test_dtype_argument(name: str) -> None:
    for dtype in ("float32", "float16", "int32", "complex64"):
        check(name, values("int8"), dtype=dtype)
    check(name, values("float32"), dtype="float16")


def test_moments_in_another_dtype() -> None:
    for name in ("var", "std"):
        check(name, values("int8"), dtype="float32")
        check(name, values("float16"), dtype="float32")
        check(name, values("float32"), dtype="complex64")


def test_sum_may_leave_integers_narrow() -> None:
    check("sum", values("int8"), promote_integers=False)
    check("prod", values("uint8"), axis=0, promote_integers=False)


MASK = np.array([True, False, True, False])


@pytest.mark.parametrize("name", ["sum", "prod", "any", "all", "mean", "var", "std", "nanmean"])
def test_where(name: str) -> None:
    check(name, values("float32"), where=MASK)
    check(name, values("float32"), axis=1, keepdims=True, where=MASK)
    check(name, values("int8"), axis=0, where=MASK[:3, None])
    check(name, values("float32"), axis=1, where=np.zeros(4, bool))


@pytest.mark.parametrize("name", ["max", "min", "nanmax", "nanmin", "sum", "prod"])
def test_initial(name: str) -> None:
    check(name, values("float32"), initial=0.5)
    check(name, values("int8"), axis=0, initial=2)
    check(name, values("float32"), axis=1, initial=1.0, where=MASK)
    check(name, np.zeros((0,), np.float32), initial=3.0)


def test_average_with_weights() -> None:
    x, w = values("float32"), np.abs(values("float32", (3, 4), 1))
    check("average", x, weights=w)
    check("average", x, axis=1, weights=w[0])
    check("average", x, axis=0, weights=w[:, 0], returned=True)
    check("average", values("int8"), axis=(0, 1), weights=values("int32"), returned=True)


def test_degrees_of_freedom() -> None:
    for name in ("var", "std", "nanvar", "nanstd"):
        check(name, values("float32"), axis=0, ddof=1)
        check(name, values("float32"), axis=0, ddof=3)
        check(name, values("float32"), axis=0, ddof=5)
    check("var", values("float32"), correction=1)
    check("var", values("complex64"), axis=1, ddof=1)
    check("var", values("float32"), axis=1, mean=np.zeros((3, 1), np.float32))


def test_half_precision_accumulates_in_single() -> None:
    many = np.full(4096, 1.0, ml_dtypes.bfloat16)
    for name in ("sum", "mean", "var"):
        check(name, many)
    check("mean", np.full(200, 1000.0, np.float16))


@pytest.mark.parametrize("name", ["argmax", "argmin", "nanargmax", "nanargmin"])
def test_positions(name: str) -> None:
    for dtype in DTYPES[:-1]:
        check(name, values(dtype))
        check(name, values(dtype), axis=-1, keepdims=True)
    check(name, values("float32", (2, 3, 2)), axis=1)
    check(name, values("float32"), keepdims=True)
    check(name, np.array([[np.nan, 1, np.nan], [np.nan] * 3], np.float32), axis=1)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "nancumsum", "nancumprod"])
def test_running_reductions(name: str) -> None:
    for dtype in DTYPES:
        check(name, values(dtype))
    check(name, values("float32", (2, 3, 4)), axis=1)
    check(name, np.array([1, np.nan, 2], np.float32))
    check(name, Weak(np.full((3,), 2.0)))
    check(name, np.zeros((0,), np.float32))


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_standard_running_reductions(name: str) -> None:
    check(name, values("int8", (4,)))
    check(name, values("float32"), axis=0, include_initial=True)
    check(name, values("bool", (3,)), include_initial=True)
    check(name, values("int8", (3,)), dtype="float32")


QUANTILES = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


@pytest.mark.parametrize("method", QUANTILES)
@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_quantiles(name: str, method: str) -> None:
    x = values("float32", (5, 4))
    q = np.array([0, 0.1, 0.5, 0.77, 1], np.float32)
    check(name, x, 0.3, method=method)
    check(name, x, q, axis=0, method=method)
    check(name, x, q, axis=(1, 0), keepdims=True, method=method)
    check(name, x, 0.6, axis=1, keepdims=True, method=method)
    with_nan = x.copy()
    with_nan[1, 2] = with_nan[3, 2] = np.nan
    with_nan[:, 0] = np.nan
    check(name, with_nan, q, axis=0, method=method)
    check(name, values("int8"), 0.25, method=method)


@pytest.mark.parametrize("name", ["percentile", "nanpercentile"])
def test_percentiles(name: str) -> None:
    check(name, values("float32"), 30)
    check(name, values("float32"), np.array([10.0, 90.0], np.float32), axis=1)
    check(name, values("float16"), 50, axis=0)


@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_medians(name: str) -> None:
    for dtype in DTYPES[:-1]:
        check(name, values(dtype))
    check(name, values("float32", (2, 3, 4)), axis=(0, 2), keepdims=True)
    check(name, np.array([[1, np.nan, 3], [4, 5, 6]], np.float32), axis=1)


def test_weighted_quantiles() -> None:
    x, w = values("float32", (6, 2)), np.abs(values("float32", (6, 2), 1))
    check("quantile", x, 0.4, axis=0, weights=w, method="inverted_cdf")
    check("quantile", x, 0.4, axis=0, weights=w[:, 0], method="inverted_cdf")


def test_wide_types() -> None:
    with enable_x64(True), jax.enable_x64(True):
        for dtype in ("bool", "int8", "int32", "int64", "uint64", "float32", "float64"):
            x = values(dtype)
            for name in ("sum", "prod", "mean", "var", "median", "argmax", "cumsum", "max"):
                check(name, x)


ERRORS = [
    ("sum", (np.ones(3, np.float32),), {"axis": 1}, "axis 1 is out of bounds"),
    ("sum", (np.ones((2, 2), np.float32),), {"axis": (0, 0)}, "name an axis twice"),
    ("sum", ([1, 2],), {}, r"jnp.sum: argument 0 is \[1, 2\] of type 'list'"),
    ("max", (np.zeros((0,), np.float32),), {}, "zero-size array to reduction operation max"),
    ("min", (np.ones(2, np.float32),), {"where": np.ones(2, bool)}, "does not have an identity"),
    ("argmax", (np.zeros((0,), np.float32),), {}, "attempt to get argmax of an empty sequence"),
    ("sum", (np.ones(2, np.float32),), {"out": np.ones(())}, "argument 'out' is not supported"),
    ("var", (np.ones(2, np.float32),), {"ddof": 1, "correction": 1}, "say the same thing twice"),
    ("var", (np.ones(2, np.complex64),), {"dtype": np.float32}, "cannot hold the computation"),
    ("average", (np.ones((2, 3), np.float32),), {"weights": np.ones(3)}, "axis must be specified"),
    ("quantile", (np.ones(3, np.complex64), 0.5), {}, "which have no order"),
    ("quantile", (np.ones(3, np.float32), 0.5), {"method": "cubic"}, "method 'cubic' is unknown"),
    ("quantile", (np.ones(3, np.float32), np.ones((1, 1))), {}, "q must have rank 0 or 1"),
    ("cumulative_sum", (np.ones((2, 2), np.float32),), {}, "axis must be given"),
]


@pytest.mark.parametrize(("name", "args", "kwargs", "text"), ERRORS)
def test_errors(name: str, args: Any, kwargs: Any, text: str) -> None:
    error = same_error(*both(name), *args, **kwargs)
    with pytest.raises(type(error), match=text):
        raise error


GRADIENTS = {
    "var": (lambda np_: lambda x: np_.var(x)),
    "std": (lambda np_: lambda x: np_.std(x, ddof=1)),
    "largest, tied": (lambda np_: lambda x: np_.max(np_.round(x))),
    "norm": (lambda np_: lambda x: np_.sum(x * x) ** 0.5),
    "product": (lambda np_: lambda x: np_.prod(x)),
    "running product": (lambda np_: lambda x: np_.sum(np_.cumprod(x) ** 2)),
    "mean where": (lambda np_: lambda x: np_.mean(x, where=x > 0)),
    "median": (lambda np_: lambda x: np_.median(x)),
    "quantile": (lambda np_: lambda x: np_.quantile(x, 0.3)),
    "without nans": (lambda np_: lambda x: np_.nanmean(np_.where(x > 0, x, np_.nan))),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str) -> None:
    x = np.array([0.3, -1.2, 2.0, 0.9, 2.2, 1.1], np.float32)
    if name == "largest, tied":
        x = np.array([2.0, 1.0, 2.0], np.float32)
        ours = axir.grad(lambda v: jnp.max(v))(from_numpy(x))
        theirs = jax.grad(lambda v: jax.numpy.max(v))(x)
    else:
        ours = axir.grad(GRADIENTS[name](jnp))(from_numpy(x))
        theirs = jax.grad(GRADIENTS[name](jax.numpy))(x)
    assert_close(np.asarray(ours), np.asarray(theirs), 16.0)


def everything(np_: Any, x: Any, k: Any) -> list[Any]:
    results = [getattr(np_, name)(x, axis=1) for name in (*ASSOCIATIVE, *MOMENTS)]
    results += [getattr(np_, name)(k) for name in (*ASSOCIATIVE, *MOMENTS, "count_nonzero")]
    results += [getattr(np_, name)(x) for name in ("cumsum", "cumprod", "argmax", "nanargmin")]
    results += [np_.median(x, axis=0), np_.quantile(x, 0.3), np_.nanquantile(x, 0.3, axis=1)]
    results += [np_.quantile(x, 0.4, axis=0, method="inverted_cdf"), np_.ptp(x, axis=(0, 1))]
    return results


def test_compiled_as_evaluated() -> None:
    x, k = from_numpy(values("float32", (5, 4))), from_numpy(values("int8", (5, 4)))
    evaluated = everything(jnp, x, k)
    compiled = axir.jit(lambda x, k: everything(jnp, x, k))(x, k)
    assert len(compiled) == len(evaluated) > 40
    for ours, expected in zip(compiled, evaluated, strict=True):
        assert ours.type is expected.type
        assert_close(np.asarray(ours), np.asarray(expected), 16.0)


# Axes by any sequence ----------------------------------------------------------------------------

AXES = range(2)
CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("axes", [range(2), [0, 1], np.array([0, 1]), (np.int64(0), 1)], ids=repr)
def test_axes_are_any_sequence_of_integers(axes: Any) -> None:
    for lib in (axir, jax):
        x = lib.numpy.asarray(CUBE)
        assert lib.numpy.sum(x, axis=axes).tolist() == CUBE.sum((0, 1)).tolist()
        assert x.max(axes).tolist() == CUBE.max((0, 1)).tolist()


@pytest.mark.parametrize(
    "apply",
    [
        lambda lib, x: lib.numpy.transpose(x, range(2, -1, -1)),
        lambda lib, x: lib.numpy.flip(x, AXES),
        lambda lib, x: lib.numpy.squeeze(x[None, None], AXES),
        lambda lib, x: lib.numpy.expand_dims(x, AXES),
        lambda lib, x: lib.numpy.roll(x, AXES, AXES),
        lambda lib, x: lib.numpy.moveaxis(x, AXES, range(1, 3)),
        lambda lib, x: lib.numpy.mean(x, AXES),
        lambda lib, x: lib.numpy.count_nonzero(x, AXES),
        lambda lib, x: lib.numpy.gradient(x, axis=AXES)[1],
        lambda lib, x: lib.numpy.pad(x, range(1, 3)),
        lambda lib, x: lib.numpy.stack(range(3)),
        lambda lib, x: lib.numpy.fft.fftn(x, axes=AXES).real,
        lambda lib, x: lib.nn.softmax(x, AXES),
        lambda lib, x: lib.lax.reduce(x, 0.0, lib.lax.add, AXES),
        lambda lib, x: lib.jit(lambda x, axes: x.sum(axes), static_argnums=1)(x, AXES),
    ],
    ids=lambda f: ".".join(f.__code__.co_names[:2]),
)
def test_ranges_name_axes(apply: Any) -> None:
    ours, theirs = apply(axir, axir.numpy.asarray(CUBE)), apply(jax, jax.numpy.asarray(CUBE))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_a_traced_axis_is_named_as_such() -> None:
    with pytest.raises(errors.TracerIntegerConversionError):
        axir.make_jaxpr(lambda x, axis: jnp.sum(x, axis))(CUBE, 1)


@pytest.mark.parametrize(
    ("y_shape", "x_shape", "axis"),
    [
        ((2, 3, 5), (3, 5), -2),
        ((2, 3, 5), (3, 5), -1),
        ((3, 5), (2, 3, 5), -1),
        ((3, 5), (3, 1), 0),
    ],
)
def test_trapezoid_broadcasts_where_samples_were_taken(
    y_shape: tuple[int, ...], x_shape: tuple[int, ...], axis: int
) -> None:
    y = np.arange(np.prod(y_shape), dtype=np.float32).reshape(y_shape)
    x = np.arange(np.prod(x_shape), dtype=np.float32).reshape(x_shape) ** 2
    np.testing.assert_allclose(
        jnp.trapezoid(y, x, axis=axis), np.trapezoid(y, x, axis=axis), rtol=1e-6
    )


@pytest.mark.parametrize("name", ["sum", "prod", "nansum", "nanprod"])
@pytest.mark.parametrize("x", [[True, False], [0, 2], [0.5, 0.25], [[0.0], [0.0]]])
def test_sums_and_products_of_truth_values_are_truth_values(name: str, x: list) -> None:
    x = np.array(x)
    result = getattr(jnp, name)(x, axis=0, dtype=bool, keepdims=True)
    expected = (np.any if name.endswith("sum") else np.all)(x, 0, keepdims=True)
    assert result.dtype == bool
    np.testing.assert_array_equal(result, expected)


def test_sums_of_truth_values_begin_and_leave_out() -> None:
    x = jnp.array([False, True])
    assert jnp.sum(x[:1], dtype=bool, initial=True)
    assert not jnp.sum(x, dtype=bool, where=jnp.array([True, False]))
    assert jnp.trace(jnp.eye(2, dtype=bool), dtype=bool)
    assert jnp.add.reduce(x, dtype=bool)
    assert not jnp.multiply.reduce(x, dtype=bool)

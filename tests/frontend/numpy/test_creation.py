"""Creation of arrays against JAX, and the functions that ask about dtypes."""

from __future__ import annotations

from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest
from support.against_jax import Weak, assert_same, compare

import axir
import axir.numpy as jnp
from axir.dialect.core.array import from_numpy
from axir.dialect.core.config import enable_x64
from axir.dialect.core.errors import (
    ConcretizationTypeError,
    DTypeError,
    NonArrayArgumentError,
    ParameterError,
    ShapeError,
)

F32 = np.arange(3, dtype=np.float32)


def check(name: str, *args: Any, **kwargs: Any) -> None:
    compare(getattr(jnp, name), getattr(jax.numpy, name), *args, **kwargs)


@pytest.mark.parametrize(
    "value",
    [
        1, 2.5, True, 1j, [1, 2], [1, 2.5, True], [True, False], [[1, 2], [3, 4]], (1, 2), range(3),
        range(0), [], [[], []], [1 + 2j, 3], np.arange(3), np.float64(2.5), np.int8(3), [F32, F32],
        [1, np.float16(2)], np.arange(3.0), [np.int8(1), np.uint8(2)], [1.5, np.int32(2)],
        [[F32[0], 1], [2, 3.5]], np.array(1.5, ml_dtypes.bfloat16), [range(2), [1.5, 2]],
    ],
    ids=str,
)  # fmt: skip
def test_array_infers_dtype_and_weak_type(value: Any) -> None:
    check("array", value)
    check("asarray", value)


def test_array_converts() -> None:
    for value in (1, 2.5, [1, 2], [1.5, 2.5], F32, Weak(np.array([1, 1]))):
        for dtype in (int, float, "int8", "bfloat16", bool, "complex64"):
            check("array", value, dtype)
    check("array", 1 + 2j, "complex64")
    check("array", 3, ndmin=2)
    check("array", F32, ndmin=3)


def test_an_array_stays_itself_without_a_copy() -> None:
    x = jnp.arange(3)
    assert jnp.asarray(x) is x
    assert jnp.array(x, copy=False) is x
    copied = jnp.array(x)
    assert copied is not x
    assert not np.shares_memory(np.asarray(copied), np.asarray(x))


def test_lists_with_tracers() -> None:
    def build(x: Any) -> Any:
        return jnp.array([[x, 1], [2.5, x * x]])

    assert_same(
        axir.jit(build)(3.0), jax.jit(lambda x: jax.numpy.array([[x, 1], [2.5, x * x]]))(3.0)
    )
    assert float(axir.grad(lambda x: jnp.array([x, x]).sum())(1.0)) == 2.0


def test_bytes_in_buffers_are_numbers() -> None:
    source = bytearray(b"*a")
    for buffer in (source, memoryview(source)):
        for result in (jnp.array(buffer), jnp.asarray(buffer)):
            assert result.dtype == np.uint8
            np.testing.assert_array_equal(result, [42, 97])
    result = jnp.array(source)
    source[0] = 0
    np.testing.assert_array_equal(result, [42, 97])


def test_changing_the_source_does_not_change_the_array() -> None:
    source = np.zeros(3, np.float32)
    x = jnp.array(source)
    y = jnp.asarray(source)
    source[0] = 1.0
    assert float(x[0]) == float(y[0]) == 0.0


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (None, NonArrayArgumentError, "None"),
        ([1, None], NonArrayArgumentError, "None"),
        ([[1], [2, 3]], ParameterError, "same length"),
        ({1: 2}, NonArrayArgumentError, "dict"),
        (["a"], NonArrayArgumentError, "'a'"),
    ],
)
def test_what_is_not_an_array_is_refused(value: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        jnp.array(value)


def test_dtypes_that_are_not_numbers_are_refused() -> None:
    with pytest.raises(DTypeError, match="S3"):
        jnp.zeros(2, dtype="S3")
    with pytest.raises(DTypeError, match="not a dtype"):
        jnp.zeros(2, dtype="nonsense")


def test_integers_that_do_not_fit_are_refused() -> None:
    for value, dtype in ((2**40, None), ([2**40], None), (300, "int8"), (-1, "uint8")):
        with pytest.raises(OverflowError):
            jnp.array(value, dtype)


def test_wide_dtypes_warn_when_they_are_off() -> None:
    with pytest.warns(UserWarning, match="jax_enable_x64"):
        assert jnp.zeros(2, np.float64).dtype == np.float32
    with enable_x64():
        assert jnp.zeros(2, np.float64).dtype == np.float64
        assert jnp.array([1.5]).dtype == np.float64
        assert jnp.array(2**40).dtype == np.int64


@pytest.mark.parametrize("name", ["zeros", "ones"])
def test_filled_arrays(name: str) -> None:
    for shape in (3, (2, 3), (), [2, 2], (0, 2), np.array([2, 1])):
        theirs = getattr(jax.numpy, name)(tuple(shape) if np.ndim(shape) else shape)
        assert_same(getattr(jnp, name)(shape), theirs)
    for dtype in (int, bool, "int8", "bfloat16", complex):
        check(name, (2,), dtype)
    like = f"{name}_like"
    for value in (F32, 2, 2.5, Weak(np.array([1.0, 1.0]))):
        check(like, value)
    check(like, F32, dtype=int)
    check(like, F32, shape=(2, 2))


@pytest.mark.parametrize("shape", [2.0, (2.5,), (-1,), "a", None])
def test_what_is_not_a_shape_is_refused(shape: Any) -> None:
    with pytest.raises(ShapeError, match=r"jnp\.zeros"):
        jnp.zeros(shape)


def test_full() -> None:
    for args in ((2, 1), ((2,), 2.5), ((2, 3), F32), ((2,), True), ((2,), 1j)):
        check("full", *args)
    for value, dtype in ((1.5, int), (-1, "uint8"), (1, float), (np.nan, "float16"), (7, bool)):
        check("full", (2,), value, dtype)
    check("full_like", F32, 1)
    check("full_like", np.arange(3), 1.5)
    check("full_like", 2.5, 1)
    check("full_like", F32, 7, dtype="int8")
    with pytest.raises(NonArrayArgumentError, match=r"jnp\.full"):
        jnp.full((2,), [1, 2])
    with pytest.raises(ShapeError):
        jnp.full((2,), jnp.ones(3))


@pytest.mark.parametrize(
    "args",
    [
        (3,),
        (3.0,),
        (1, 3, 0.5),
        (0,),
        (5, 0, -2),
        (2, 8),
        (0.5, 4),
        (np.int8(3),),
        (-3,),
        (0, 1, 0.1),
    ],
    ids=str,
)
def test_arange(args: tuple[Any, ...]) -> None:
    check("arange", *args)
    for dtype in ("uint8", "float16", "int32", "float32"):
        check("arange", *args, dtype=dtype)


def test_arange_refuses_what_has_no_known_length() -> None:
    with pytest.raises(ConcretizationTypeError, match="arange"):
        axir.jit(jnp.arange)(3)
    with pytest.raises(ParameterError, match="zero"):
        jnp.arange(0, 1, 0)
    with pytest.raises(ParameterError, match="complex"):
        jnp.arange(1j)


def test_linspace() -> None:
    for args in ((0, 1, 5), (0, 10, 5, True, False, int), (0, 1, 3, False), (2, -3, 7), (0, 1, 1),
                 (0, 1, 0), (0, 1j, 3), (F32, F32 + 1, 2), (1e-3, 1e3, 50)):  # fmt: skip
        check("linspace", *args)
    check("linspace", 0, 1, 3, retstep=True)
    check("linspace", F32, F32 + 1, 2, axis=1)
    check("linspace", F32, 2.0, 3, axis=-1)
    assert float(jnp.linspace(0.1, 0.7, 11)[-1]) == np.float32(0.7)
    assert bool(jnp.isnan(jnp.linspace(0, 1, 1, retstep=True)[1]))
    gradient = axir.grad(lambda a, b: jnp.linspace(a, b, 5).sum(), (0, 1))(1.0, 2.0)
    np.testing.assert_allclose(gradient, [2.5, 2.5])
    with pytest.raises(ParameterError, match="fewer"):
        jnp.linspace(0, 1, -1)


def test_logspace_and_geomspace() -> None:
    for args in ((0, 2, 3), (0, 3, 4, False), (0, 3, 4, True, 2.0)):
        check("logspace", *args, factor=16.0)
    for args in (
        (1, 100, 3),
        (-1, -100, 3),
        (1, 1000, 4, True, int),
        (1, 16, 4, False),
        (256, 1, 9),
    ):
        check("geomspace", *args, factor=16.0)
    check("geomspace", F32 + 1, 64.0, 3, factor=16.0)


def test_matrices() -> None:
    for args in ((2,), (2, 3, 1), (3, 2, -1), (2, None, 0, int)):
        check("eye", *args)
        check("tri", *args)
    check("identity", 2)
    matrix = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    for k in (-2, -1, 0, 1, 5):
        for name in ("tril", "triu"):
            check(name, matrix, k)
            check(name, np.stack([matrix, matrix]) > 3, k)
        check("diag", F32, k)
        if -3 < k < 4:
            check("diag", matrix, k)
        check("diagflat", np.ones((2, 2), np.int8), k)
    with pytest.raises(ShapeError, match=r"jnp\.tril takes arrays of at least two axes"):
        jnp.tril(F32)
    with pytest.raises(ShapeError, match=r"jnp\.diag takes a vector or a matrix"):
        jnp.diag(np.ones((2, 2, 2)))


def test_grids() -> None:
    y = np.arange(2)
    for indexing in ("xy", "ij"):
        for sparse in (False, True):
            check("meshgrid", F32, y, indexing=indexing, sparse=sparse)
    check("meshgrid", F32, y, np.ones(4, np.float32))
    check("meshgrid", F32)
    check("indices", (2, 3))
    check("indices", (2, 3), sparse=True)
    check("indices", (2, 2), "float32")
    check("fromfunction", lambda i, j: i + 2 * j, (2, 3))
    with pytest.raises(ParameterError, match="rank 1"):
        jnp.meshgrid(np.ones((2, 2)))


def test_scalar_types_are_dtypes_and_functions() -> None:
    for name in ("float32", "int8", "uint32", "bfloat16", "float16", "complex64", "int32"):
        ours, theirs = getattr(jnp, name), getattr(jax.numpy, name)
        assert np.dtype(ours) == np.dtype(theirs)
        assert ours == np.dtype(theirs)
        assert ours != jnp.uint16
        assert hash(ours) == hash(getattr(jnp, name))
        assert ours not in (np.generic, np.floating, np.signedinteger, np.complexfloating)
        for value in (1, [1, 2]):
            assert_same(ours(value), theirs(value))
        assert jnp.zeros(2, ours).dtype == theirs
    assert_same(jnp.bool_(2), jax.numpy.bool_(2))
    assert_same(jnp.float64(1.5), jax.numpy.float32(1.5))
    assert repr(jnp.float32) == "<class 'axir.numpy.float32'>"


def test_questions_about_dtypes() -> None:
    x = from_numpy(F32)
    cases = [
        (1, 1.0),
        ("int8", "uint8"),
        (int, "int8"),
        (1.5, "bfloat16"),
        (float, "int32"),
        (True, 2),
    ]
    for case in cases:
        assert jnp.result_type(*case) == jax.numpy.result_type(*case), case
    assert jnp.result_type(x, 1) == np.float32
    assert jnp.promote_types("int8", "uint32") == jax.numpy.promote_types("int8", "uint32")
    assert jnp.issubdtype(jnp.bfloat16, jnp.floating)
    assert not jnp.issubdtype(jnp.int8, jnp.inexact)
    assert jnp.issubdtype(jnp.floating, jnp.number)
    for kind in ("bool", "integral", "real floating", "numeric", "float32", ("bool", "int8")):
        assert jnp.isdtype("float32", kind) == jax.numpy.isdtype(np.dtype("float32"), kind)
    assert jnp.finfo(jnp.bfloat16).eps == 0.0078125
    assert jnp.iinfo("int8").max == 127
    assert jnp.can_cast("int8", "int16")
    assert not jnp.can_cast("int16", "int8")
    assert jnp.iscomplexobj(1j)
    assert jnp.isrealobj(x)
    assert (jnp.shape([[1, 2]]), jnp.ndim(x), jnp.size(x)) == ((1, 2), 1, 3)
    assert [jnp.isscalar(v) for v in (1, jnp.ones(()), x, "a")] == [True, True, False, False]


def test_astype() -> None:
    x = np.array([1.7, -1.7, 0.0, 300.0], np.float32)
    for dtype in (int, bool, "int8", "uint8", "bfloat16", "complex64", float, None):
        check("astype", x, dtype)
    check("astype", x + 1j, float)
    check("astype", Weak(np.array([2.5, 2.5])), float)


def test_arrays_of_float0_are_arrays_of_numpys() -> None:
    for made in (jnp.zeros((2,), axir.float0), jnp.ones((2,), axir.float0)):
        assert type(made) is np.ndarray
        assert (made.shape, made.dtype) == ((2,), axir.float0)
    _, tangent = axir.jvp(lambda x, n: (x, n), (2.0, 3), (1.0, jnp.zeros((), axir.float0)))
    assert tangent[1].dtype == axir.float0

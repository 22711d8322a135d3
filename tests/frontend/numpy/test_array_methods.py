"""Operators and methods of arrays and tracers against JAX and NumPy."""

from __future__ import annotations

import operator
from collections.abc import Container
from typing import Any

import jax
import numpy as np
import pytest
from support.against_jax import assert_same

import axir
import axir.numpy as jnp
from axir import errors
from axir.dialect.core.array import ConcreteArray, from_numpy
from axir.dialect.core.errors import DTypeError, NonArrayArgumentError
from axir.numpy._methods.array_methods import (
    _WAYS_OUT,
    _WAYS_OUT_OF_TRACES,
    AbsentAttributeError,
)

F = np.array([[1.5, -2.0, 3.0], [4.0, 5.5, -6.0]], np.float32)
I = np.array([[1, -2, 3], [4, 5, -6]], np.int32)  # noqa: E741
B = np.array([[True, False, True], [False, False, True]])

ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
BITS = ("and_", "or_", "xor")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def pair(x: Any) -> tuple[Any, Any]:
    return (from_numpy(x), jax.numpy.asarray(x)) if isinstance(x, np.ndarray) else (x, x)


def check(function: Any, *args: Any) -> None:
    ours, theirs = zip(*map(pair, args), strict=True)
    assert_same(function(*ours), function(*theirs), 8.0, f"{function} of {args}")


@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic_operators(name: str) -> None:
    apply = getattr(operator, name)
    for first, second in (
        (F, F),
        (F, I),
        (I, np.abs(I)),
        (F[0], F),
        (F, 2),
        (I, 2),
        (2.5, F),
        (3, np.abs(I)),
        (I, 1.5),
    ):
        check(apply, first, second)


@pytest.mark.parametrize("name", [*BITS, "lshift", "rshift"])
def test_bit_operators(name: str) -> None:
    apply = getattr(operator, name)
    for first, second in ((I, np.abs(I)), (I, 3), (3, np.abs(I))):
        check(apply, first, second)
    if name in BITS:
        check(apply, B, ~B)
        check(apply, B, True)


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparison_operators(name: str) -> None:
    apply = getattr(operator, name)
    for first, second in ((F, F.round()), (F, I), (I, 3), (2.5, F), (F, F[0])):
        check(apply, first, second)


def test_unary_operators_and_builtins() -> None:
    for x in (F, I):
        for apply in (operator.neg, operator.pos, abs, round):
            check(apply, x)
        check(lambda x: divmod(x, 2), x)
        check(lambda x: divmod(7, x), x)
    check(operator.invert, I)
    check(operator.invert, B)
    check(lambda x: round(x, 1), F)
    check(lambda x: pow(x, 2), F)


def test_matrix_product() -> None:
    check(operator.matmul, F, F.T.copy())
    np.testing.assert_allclose(F @ from_numpy(F.T), F @ F.T)


def test_numpy_arrays_and_scalars_leave_operators_to_arrays() -> None:
    x = from_numpy(F)
    for result, value in (
        (F + x, F + F), (np.float32(2) * x, 2 * F), (np.int32(2) - x, 2 - F), (F[0] < x, F[0] < F),
        (np.float64(2) / x, 2 / F), (F == x, F == F),
    ):  # fmt: skip
        assert type(result) is ConcreteArray
        np.testing.assert_allclose(result, value)
    traced = axir.grad(lambda x: (F * x).sum())(x)
    np.testing.assert_array_equal(traced, F)


class Celsius:
    """A foreign class with reflected operators."""

    def __radd__(self, other: Any) -> str:
        return "added"

    def __rmatmul__(self, other: Any) -> str:
        return "multiplied"

    def __rpow__(self, other: Any) -> str:
        return "raised"

    def __gt__(self, other: Any) -> str:
        return "compared"


def test_operators_leave_foreign_classes_their_turn() -> None:
    x, degrees = from_numpy(F), Celsius()
    assert x + degrees == "added"
    assert x @ degrees == "multiplied"
    assert x**degrees == "raised"
    assert (x < degrees) == "compared"
    with pytest.raises(TypeError, match="unsupported operand"):
        x - degrees
    with pytest.raises(TypeError, match="unsupported operand"):
        x + None


def test_comparisons_with_foreign_objects() -> None:
    x = from_numpy(F)
    assert (x == None) is False  # noqa: E711
    assert (x != None) is True  # noqa: E711
    assert (x == "a") is False
    with pytest.raises(TypeError, match="not supported"):
        x < None  # noqa: B015


def test_lists_are_told_how_to_become_arrays() -> None:
    x = from_numpy(F[0])
    for apply in (lambda: x * [1, 2, 3], lambda: (1, 2) - x, lambda: x == (1, 2, 3)):
        with pytest.raises(NonArrayArgumentError, match=r"jnp\.array"):
            apply()


METHODS = {
    "all": (), "any": (), "argmax": (), "argmin": (0,), "argsort": (), "clip": (0, 2), "conj": (),
    "cumprod": (0,), "cumsum": (), "diagonal": (), "flatten": (), "max": (), "mean": (0,),
    "min": (1,), "nonzero": (), "prod": (), "ravel": (), "repeat": (2,), "reshape": (3, 2),
    "round": (), "sort": (), "squeeze": (), "std": (), "sum": (), "swapaxes": (0, 1),
    "trace": (), "transpose": (), "var": (0,), "astype": (int,), "copy": (),
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_methods(name: str) -> None:
    for x in (F, I):
        check(lambda x: getattr(x, name)(*METHODS[name]), x)


def test_methods_with_several_forms() -> None:
    for x in (F, I):
        for form in (
            lambda x: x.reshape((3, 2)), lambda x: x.reshape(-1), lambda x: x.reshape(2, -1),
            lambda x: x.reshape(3, 2, order="F"), lambda x: x.transpose(1, 0),
            lambda x: x.transpose((1, 0)), lambda x: x.T, lambda x: x.mT, lambda x: x.real,
            lambda x: x.imag, lambda x: x.sum(axis=0, keepdims=True), lambda x: x.mean(-1),
            lambda x: x.argmax(axis=1), lambda x: x.flatten("F"), lambda x: x.clip(max=1),
            lambda x: x.dot(x.T), lambda x: x.max(0).searchsorted(2),
            lambda x: x.compress(np.array([True, False, True]), axis=1),
            lambda x: x.compress(np.array([True])),
        ):  # fmt: skip
            check(form, x)
    check(
        lambda x: (
            x.take(jax.numpy.array([0, 2]))
            if isinstance(x, jax.Array)
            else x.take(jnp.array([0, 2]))
        ),
        F,
    )
    check(lambda places, x: places.choose([x[0], x[1]]), np.array([1, 0, 1]), F)
    np.testing.assert_array_equal(from_numpy(F[1]).argpartition(0)[0], 2)
    assert from_numpy(F).item(1, 0) == 4.0
    assert from_numpy(F).tolist() == F.tolist()


def test_views_of_bits() -> None:
    for dtype in ("int32", "uint32", "uint8", "int16"):
        np.testing.assert_array_equal(from_numpy(F).view(dtype), F.view(dtype))
    words = np.arange(8, dtype=np.int8).reshape(2, 4)
    for dtype in ("int32", "uint16", "float16", "bool"):
        np.testing.assert_array_equal(from_numpy(words).view(dtype), words.view(dtype))
    np.testing.assert_array_equal(from_numpy(B).view("int8"), B.view("int8"))
    with pytest.raises(TypeError, match="multiple of 8"):
        with axir.enable_x64():
            from_numpy(F).view("float64")
    with pytest.raises(DTypeError, match="cannot be viewed"):
        from_numpy(F).view("complex64")


def test_bytes_in_reverse() -> None:
    for dtype in ("int16", "uint32", "int8", "float16", "float32", "complex64"):
        x = F.astype(dtype)
        np.testing.assert_array_equal(
            np.asarray(from_numpy(x).byteswap()).view(np.uint8), x.byteswap().view(np.uint8)
        )
    np.testing.assert_array_equal(axir.jit(lambda x: x.byteswap())(I), I.byteswap())


@pytest.mark.parametrize("name", _WAYS_OUT)
def test_what_numpy_has_for_arrays_that_change_says_the_way_out(name: str) -> None:
    x = jnp.arange(3.0)
    assert hasattr(np.asarray(x), name) or name == "itemset"  # NumPy 2 has it no more
    assert not hasattr(x, name)
    with pytest.raises(AbsentAttributeError) as raised:
        axir.jit(lambda x: getattr(x, name))(x)
    first, _, last = str(raised.value).splitlines()
    assert first.startswith(f"Arrays have no attribute {name!r}: they never change")
    assert last.strip() == f"{_WAYS_OUT[name]}."


@pytest.mark.parametrize("name", _WAYS_OUT_OF_TRACES)
def test_what_is_known_of_results_only_says_so_while_tracing(name: str) -> None:
    x = jnp.arange(3.0)
    assert hasattr(x, name)
    with pytest.raises(AbsentAttributeError) as raised:
        axir.jit(lambda x: getattr(x, name))(x)
    first, _, last = str(raised.value).splitlines()
    assert first.startswith(f"Traced arrays have no attribute {name!r}: they are still to be")
    assert last.strip() == f"{_WAYS_OUT_OF_TRACES[name]}."
    assert not axir.grad(lambda x: x.sum() * hasattr(x, name))(x).any()


def test_what_is_not_zero_is_true() -> None:
    z = np.array([3j, 0, 1], np.complex64)
    for made in (
        from_numpy(z).astype(bool),
        axir.jit(lambda z: z.astype(bool))(z),
        jnp.asarray(z, dtype=bool),
        jnp.array([3j, 0, 1], dtype=bool),
    ):
        np.testing.assert_array_equal(made, [True, False, True])
    assert jnp.bool_(3j)


def test_lists_update_parts() -> None:
    x = jnp.zeros(4)
    np.testing.assert_array_equal(x.at[:3].set([1, 2, 3]), [1, 2, 3, 0])
    np.testing.assert_array_equal(axir.jit(lambda x: x.at[1:].add((1, 2, 3)))(x), [0, 1, 2, 3])


def test_small_cases_are_those_of_numpy() -> None:
    empty = np.zeros((0, 3), np.float32)
    np.testing.assert_array_equal(
        jnp.linalg.vector_norm(empty, ord=np.inf, axis=0), np.zeros(3, np.float32)
    )
    assert jnp.linalg.norm(jnp.zeros(0), ord=np.inf) == 0
    for function in (jnp.fmod, axir.jit(jnp.fmod)):
        np.testing.assert_array_equal(
            function(np.array([5, -7, 7]), np.array([0, 3, 3])), [0, -1, 1]
        )
    x = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(jnp.add.accumulate(x, axis=None), np.cumsum(x))


def test_devices() -> None:
    x = from_numpy(F)
    assert x.devices() == {x.device} == {axir.devices()[0]}
    moved = x.to_device(axir.devices()[0])
    np.testing.assert_array_equal(moved + 1, F + 1)
    assert x.__array_namespace__() is jnp


def test_everything_works_under_a_trace() -> None:
    def everything(x: Any, n: Any) -> list[Any]:
        operators = [x + 1, 2 - x, x * x, x / 3, x // 2, x % 2, x**2, 2**x, -x, +x, abs(x), x @ x.T]
        bits = [n & 3, n | 4, n ^ 5, n << 2, n >> 1, ~n, divmod(n, 3)[1], n == 3, n >= 2, n != 1]
        methods = [
            x.sum(0),
            x.mean(),
            x.T,
            x.reshape(-1),
            x.astype(int),
            x.clip(0, 1),
            x.real,
            round(x, 1),
        ]
        return [
            *operators,
            *bits,
            *methods,
            x.argmax(1),
            x.std(),
            x.cumsum(0),
            x.at[0].set(n[0] * 1.0),
        ]

    x, n = from_numpy(np.abs(F)), from_numpy(np.abs(I))
    for one, two in zip(everything(x, n), axir.jit(everything)(x, n), strict=True):
        assert one.type == two.type
        np.testing.assert_allclose(one, two, rtol=1e-5)


def test_operators_are_differentiable() -> None:
    def loss(x: Any) -> Any:
        return ((x * 2.0 - 1.0) ** 2 / (abs(x) + 1.0)).sum() + (x @ x.T).sum()

    ours = axir.grad(loss)(from_numpy(F))
    theirs = jax.grad(loss)(jax.numpy.asarray(F))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_in_compares_with_all_elements() -> None:
    for lib in (axir, jax):
        x = lib.numpy.arange(6)
        assert 4 in x
        assert 6 not in x
        assert isinstance(x, Container)
        with pytest.raises(ValueError, match="one"):
            4 in x.reshape(2, 3)  # noqa: B015
    with pytest.raises(errors.TracerBoolConversionError):
        axir.make_jaxpr(lambda x: 1 in x)(jnp.arange(3))


@pytest.mark.parametrize("kind", [int, float, complex])
def test_arrays_of_several_elements_are_no_python_scalars(kind: Any) -> None:
    assert kind(jnp.ones(1)) == 1
    for error in (TypeError, ValueError):  # NumPy's class, and the class of earlier versions
        with pytest.raises(error, match="Only scalar arrays can be converted to Python scalars"):
            kind(jnp.ones(2))

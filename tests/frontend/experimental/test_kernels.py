"""Kernels of users' own: compiled code against the interpreter, and both against NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import axir
import axir.numpy as jnp
from axir.errors import AxirError, KernelScopeError, NonArrayArgumentError, ParameterError
from axir.experimental import kernels
from axir.experimental.kernels import kernel_call
from axir.experimental.pallas import KernelResultError

GENERATOR = np.random.default_rng(7)
X = GENERATOR.standard_normal((5, 37)).astype(np.float32)
COUNTS = GENERATOR.integers(-20, 20, (4, 19)).astype(np.int32)


def like(x: Any) -> Any:
    return axir.ShapeDtypeStruct(np.shape(x), np.asarray(x).dtype)


def of(shape: tuple[int, ...], dtype: str = "float32") -> Any:
    return axir.ShapeDtypeStruct(shape, dtype)


def softmax(x_ref: Any, o_ref: Any) -> None:
    i = kernels.program_id(0)
    e = kernels.exp(x_ref[i, :] - kernels.max(x_ref[i, :]))
    o_ref[i, :] = e / kernels.sum(e)


def product(a_ref: Any, b_ref: Any, o_ref: Any) -> None:
    i, j = kernels.program_id(0), kernels.program_id(1)
    o_ref[i, j] = kernels.sum(a_ref[i, :] * b_ref[:, j])


def running_maximum(x_ref: Any, o_ref: Any, place_ref: Any) -> None:
    def step(i: Any, carried: Any) -> Any:
        most, place = carried
        is_larger = x_ref[i] > most
        carried = kernels.select(is_larger, x_ref[i], most), kernels.select(is_larger, i, place)
        o_ref[i] = carried[0]
        return carried

    _, place = kernels.fori_loop(0, x_ref.shape[0], step, (-np.inf, 0))
    place_ref[()] = place


def collatz(n_ref: Any, o_ref: Any) -> None:
    """Integer division, branches, a loop without a known end, in a grid."""
    i = kernels.program_id(0)

    def goes_on(state: Any) -> Any:
        return state[0] > 1

    def step(state: Any) -> Any:
        n, steps = state
        return kernels.select(n % 2 == 0, n // 2, 3 * n + 1), steps + 1

    o_ref[i] = kernels.while_loop(goes_on, step, (n_ref[i], 0))[1]


def accumulated(x_ref: Any, o_ref: Any) -> None:
    """Instances one after the other add to what those before left."""
    o_ref[...] += x_ref[kernels.program_id(0)]


def conditional(x_ref: Any, o_ref: Any) -> None:
    i = kernels.program_id(0)

    @kernels.when((x_ref[i, 0] > 0.0) & (i != 1))
    def positive() -> None:
        o_ref[i, :] = kernels.sqrt(abs(x_ref[i, :]))

    @kernels.when(~(x_ref[i, 0] > 0.0) | (i == 1))
    def other() -> None:
        o_ref[i, 1:4] = -x_ref[i, 2:5]
        o_ref[i, -1] = 7


def smoothed(x_ref: Any, o_ref: Any) -> None:
    """Scratch memory, blocks at computed positions, and blocks of blocks."""
    own = kernels.scratch((3,))
    i = kernels.program_id(0)
    own[...] = x_ref[0, kernels.ds(i, 3)]
    before = own[...]
    own[1] = 0.0  # a value read before stays unchanged
    o_ref[0, i] = kernels.sum(before) + own[0]
    o_ref[1, i] = own[1] + kernels.min(before)


def outside(x_ref: Any, o_ref: Any) -> None:
    """Negative indices count from the end; beyond it reads get the nearest, writes do nothing."""
    i = kernels.program_id(0)
    o_ref[i - 2] = x_ref[i + 3]
    o_ref[i + 100] = 1.0
    kernels.fori_loop(-2, 2, lambda k, _: o_ref.__setitem__(k, x_ref[k - 1] + 10.0))


def mathematics(x_ref: Any, o_ref: Any) -> None:
    x = x_ref[...]
    y = kernels.log(abs(x) + 1.0) + kernels.tanh(x) * kernels.cos(x) - kernels.sin(x)
    y = y + kernels.expm1(x / 4.0) + kernels.log1p(x * x) + kernels.floor(x)
    y = y + kernels.power(abs(x) + 0.5, 1.5) + kernels.minimum(x, 0.5) * kernels.maximum(x, -0.5)
    o_ref[...] = kernels.select(kernels.is_nan(y), 0.0, y)


def doubled_often(x_ref: Any, o_ref: Any) -> None:
    """A block that is used twice in each of many steps is computed once in each."""
    y = x_ref[...]
    for _ in range(60):
        y = y * 0.5 + y * 0.5
    o_ref[...] = y


def conversions(x_ref: Any, i_ref: Any, b_ref: Any, f_ref: Any, s_ref: Any) -> None:
    x = x_ref[...]
    i_ref[...] = x.astype("int32")
    b_ref[...] = x.astype(bool)
    f_ref[...] = x.astype("int8").astype("float32") + b_ref[...].astype("float32")
    s_ref[...] = b_ref[...].astype("int64") + i_ref[...].astype("int16").astype("int64")


def integers(x_ref: Any, y_ref: Any, q_ref: Any, r_ref: Any) -> None:
    q_ref[...] = x_ref[...] // y_ref[...]
    r_ref[...] = x_ref[...] % y_ref[...]


def everywhere(o_ref: Any) -> None:
    o_ref[...] = 3
    o_ref[0] = kernels.program_id(1)


EXTREME = np.array([0.0, -1.5, 1e10, -1e10, np.nan, np.inf, 300.7, 2.0, -0.0], np.float32)
LEAST = np.iinfo(np.int32).min
DIVIDENDS = np.array([7, -7, 7, -7, 5, LEAST, LEAST, 0, 6], np.int32)
DIVISORS = np.array([2, 2, -2, -2, 0, -1, 0, 3, -3], np.int32)
START = np.array([1, 6, 27, 97], np.int32)

CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "softmax": (kernel_call(softmax, like(X), grid=5), (X,)),
    "softmax in parallel": (kernel_call(softmax, like(X), grid=5, parallel=True), (X,)),
    "product": (kernel_call(product, of((5, 5)), grid=(5, 5), parallel=True), (X, X.T)),
    "running maximum": (kernel_call(running_maximum, [like(X[0]), of((), "int32")]), (X[0],)),
    "collatz": (kernel_call(collatz, like(START), grid=4), (START,)),
    "accumulated": (kernel_call(accumulated, like(X[0]), grid=(5,)), (X,)),
    "conditional": (kernel_call(conditional, like(X), grid=5), (X,)),
    "smoothed": (kernel_call(smoothed, of((2, 37)), grid=37), (X,)),
    "outside": (kernel_call(outside, of((6,)), grid=6), (X[0, :6],)),
    "mathematics": (kernel_call(mathematics, like(X)), (X,)),
    "mathematics of f64": (kernel_call(mathematics, of((5, 37), "float64")), (X.astype(float),)),
    "doubled often": (kernel_call(doubled_often, like(X)), (X,)),
    "integers": (kernel_call(integers, (like(DIVIDENDS),) * 2), (DIVIDENDS, DIVISORS)),
    "conversions": (
        kernel_call(conversions, [of((9,), d) for d in ("int32", "bool", "float32", "int64")]),
        (EXTREME,),
    ),
    "without operands": (kernel_call(everywhere, of((4,), "int32"), grid=(2, 3)), ()),
    "no instance": (kernel_call(softmax, like(X), grid=0), (X,)),
    "vmap": (axir.vmap(kernel_call(softmax, like(X[:, :3]), grid=5)), (np.stack([X[:, :3]] * 4),)),
    "vmap of some": (
        axir.vmap(kernel_call(product, of((5, 2)), grid=(5, 2)), in_axes=(None, 1), out_axes=2),
        (X, np.stack([X.T[:, :2], X.T[:, 2:4], X.T[:, 1:3]], 1)),
    ),
    "vmap of vmap": (
        axir.vmap(axir.vmap(kernel_call(accumulated, of((4,)), grid=3), in_axes=1), in_axes=(0,)),
        (GENERATOR.standard_normal((2, 3, 5, 4)).astype(np.float32),),
    ),
    "vmap over nothing": (
        axir.vmap(kernel_call(accumulated, of((4,)), grid=3)),
        (np.zeros((0, 3, 4), np.float32),),
    ),
}


def run_all(*arguments: Any) -> list[Any]:
    return [f(*xs) for (f, _), xs in zip(CASES.values(), arguments, strict=True)]


@pytest.fixture
def x64() -> Iterator[None]:
    with axir.enable_x64(True):
        yield


@pytest.fixture(scope="module")
def compiled() -> dict[str, list[np.ndarray]]:
    """Returns the results of all cases from one program."""
    with axir.enable_x64(True):
        results = axir.jit(run_all)(*(xs for _, xs in CASES.values()))
    return {
        name: list(map(np.asarray, axir.tree.leaves(x)))
        for name, x in zip(CASES, results, strict=True)
    }


@pytest.mark.parametrize("name", CASES)
def test_compiled_kernels_agree_with_the_interpreter(name: str, compiled: Any) -> None:
    function, arguments = CASES[name]
    with axir.enable_x64(True):
        wanted = list(map(np.asarray, axir.tree.leaves(function(*arguments))))
    for got, want in zip(compiled[name], wanted, strict=True):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        if want.dtype.kind == "f":
            tolerance = 64 * np.finfo(want.dtype).eps
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(got, want)


@pytest.mark.usefixtures("x64")
def test_the_interpreter_agrees_with_numpy() -> None:
    e = np.exp(X - X.max(1, keepdims=True))
    call = {name: function for name, (function, _) in CASES.items()}
    np.testing.assert_allclose(call["softmax"](X), e / e.sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(call["product"](X, X.T), X @ X.T, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(call["accumulated"](X), X.sum(0), rtol=1e-4, atol=1e-5)
    sums, place = call["running maximum"](X[0])
    np.testing.assert_array_equal(sums, np.maximum.accumulate(X[0]))
    assert int(place) == X[0].argmax()
    assert np.asarray(call["collatz"](START)).tolist() == [0, 8, 111, 118]
    windows = np.minimum(np.arange(37), 34)[:, None] + np.arange(3)
    parts = X[0][windows]
    smooth = np.stack([parts.sum(1) + parts[:, 0], parts.min(1)])
    np.testing.assert_allclose(call["smoothed"](X), smooth, rtol=1e-5, atol=1e-5)
    quotients, rests = map(np.asarray, call["integers"](DIVIDENDS, DIVISORS))
    np.testing.assert_array_equal(quotients, jnp.floor_divide(DIVIDENDS, DIVISORS))
    np.testing.assert_array_equal(rests, jnp.remainder(DIVIDENDS, DIVISORS))
    assert np.asarray(call["conversions"](EXTREME)[0]).tolist() == [
        0, -1, 2**31 - 1, -(2**31), 0, 2**31 - 1, 300, 2, 0,
    ]  # fmt: skip
    wanted = np.zeros(6, np.float32)
    for i in range(6):
        wanted[i - 2] = X[0, min(i + 3, 5)]
        for k in range(-2, 2):
            wanted[k] = X[0, :6][k - 1] + 10
    np.testing.assert_array_equal(call["outside"](X[0, :6]), wanted)
    assert not np.asarray(call["no instance"](X)).any()


@settings(max_examples=10, deadline=None)
@given(
    rows=st.integers(1, 9),
    columns=st.integers(1, 40),
    dtype=st.sampled_from(["float32", "float64", "float16", "bfloat16", "int8", "int32"]),
    parallel=st.booleans(),
    data=st.data(),
)
def test_any_shape(rows: int, columns: int, dtype: str, parallel: bool, data: Any) -> None:
    start = data.draw(st.integers(0, columns - 1))

    def kernel(x_ref: Any, y_ref: Any, o_ref: Any, least_ref: Any) -> None:
        i = kernels.program_id(0)
        o_ref[i, start:] = x_ref[i, start:] * y_ref[start:, i] + x_ref[i, start]
        o_ref[i, 0] = kernels.max(x_ref[i, :])
        least_ref[i] = kernels.min(x_ref[i, start:] - y_ref[start:, i])

    with axir.enable_x64(True):
        x = jnp.asarray(GENERATOR.integers(-9, 9, (rows, columns))).astype(dtype)
        y = jnp.asarray(GENERATOR.integers(-9, 9, (columns, rows))).astype(dtype)
        shapes = of((rows, columns), dtype), of((rows,), dtype)
        call = kernel_call(kernel, shapes, grid=rows, parallel=parallel)
        for got, want in zip(axir.jit(call)(x, y), call(x, y), strict=True):
            np.testing.assert_array_equal(np.asarray(got), np.asarray(want))


def test_a_kernel_under_custom_vjp() -> None:
    def square(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] * x_ref[...]

    def scaled(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
        o_ref[...] = 2.0 * x_ref[...] * y_ref[...]

    @axir.custom_vjp
    def f(x: Any) -> Any:
        return kernel_call(square, x)(x)

    f.defvjp(lambda x: (f(x), x), lambda x, ct: (kernel_call(scaled, x)(x, ct),))
    gradient = axir.grad(lambda x: f(x).sum())
    for transformed in (gradient, axir.jit(gradient), axir.jit(axir.vmap(gradient))):
        np.testing.assert_allclose(transformed(X), 2 * X, rtol=1e-6)


def test_a_kernel_in_a_loop_and_in_what_is_exported() -> None:
    halve = kernel_call(lambda x_ref, o_ref: o_ref.__setitem__(..., x_ref[...] * 0.5), like(X))

    def program(x: Any) -> Any:
        return axir.lax.fori_loop(0, 3, lambda _, x: halve(x), x)

    np.testing.assert_allclose(axir.jit(program)(X), X / 8, rtol=1e-6)
    exported = axir.export.export(axir.jit(program))(like(X))
    np.testing.assert_allclose(exported.call(X), X / 8, rtol=1e-6)


def test_arguments_are_not_overwritten() -> None:
    x = jnp.asarray(X)
    axir.jit(CASES["conditional"][0])(x)
    np.testing.assert_array_equal(x, X)


ERRORS: dict[str, tuple[type[AxirError], Callable[[], Any], str]] = {
    "no function": (NonArrayArgumentError, lambda: kernel_call(3, of((2,))),
                    "kernel_call takes a function first, not 3"),
    "out_shape": (ParameterError, lambda: kernel_call(softmax, 3),
                  "kernel_call: out_shape holds 3 of type 'int'"),
    "grid": (ParameterError, lambda: kernel_call(softmax, X, grid=-1), "grid is -1"),
    "parallel": (ParameterError, lambda: kernel_call(softmax, X, parallel=True), "without a grid"),
    "returns": (KernelResultError, lambda: kernel_call(lambda x, o: 1, X)(X),
                "in the kernel_call <lambda> at .* should return None"),
    "program_id": (KernelScopeError, lambda: kernels.program_id(0), "outside of a kernel"),
    "scratch": (KernelScopeError, lambda: kernels.scratch(3), "scratch is called outside of a ker"),
    "fori_loop": (KernelScopeError, lambda: kernels.fori_loop(0, 1, lambda i, c: c, 0),
                  "fori_loop is called outside of a kernel"),
    "while_loop": (KernelScopeError, lambda: kernels.while_loop(lambda c: c, lambda c: c, 0),
                   "while_loop is called outside of a kernel"),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_a_mistake(name: str) -> None:
    kind, call, message = ERRORS[name]
    with pytest.raises(kind, match=f"(?s){message}"):
        call()


def test_a_kernel_is_a_program_like_others() -> None:
    """It has a name, text, derivatives, and any dtype."""
    call = CASES["softmax"][0]
    assert call.__name__ == "softmax"
    assert axir.make_jaxpr(call)(X).eqns[0].params["name"] == "softmax"
    assert "softmax" in axir.export.export(axir.jit(call))(X).mlir_module()
    gradient = axir.grad(lambda x: (call(x) * X).sum())(X)
    np.testing.assert_allclose(
        gradient, axir.grad(lambda x: (axir.nn.softmax(x) * X).sum())(X), rtol=1e-4, atol=1e-5
    )
    square = kernel_call(lambda x, o: o.__setitem__(..., x[...] ** 2), of((2,), "complex64"))
    np.testing.assert_array_equal(square(np.complex64([1j, 2])), np.complex64([-1, 4]))

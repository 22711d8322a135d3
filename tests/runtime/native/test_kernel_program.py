"""Programs of kernels as plain data, and functions of the host between kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import axir
import axir.numpy as jnp
from axir.dialect.core.errors import CallbackError
from axir.dialect.program.function_tracing import trace_function
from axir.extend.backend import wait_for_compilers
from axir.runtime import default_device
from axir.runtime.calls.compiled_function import CompiledFunction
from axir.runtime.calls.executable import Executable
from axir.runtime.calls.native_executable import NativeExecutable
from axir.runtime.native.kernel_program import KernelProgram

_origins = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 999))).map(tuple)
_shapes = st.lists(st.integers(0, 1 << 40), max_size=4).map(tuple)
_names = st.sampled_from(["float32", "bfloat16", "bool", "uint64"])
_places = st.lists(st.tuples(st.integers(0, 999), st.integers(0, 1 << 40))).map(tuple)
_steps = st.lists(st.tuples(st.text(max_size=9), st.integers(0, 999), _places)).map(tuple)
_programs = st.builds(
    KernelProgram,
    st.binary(max_size=300),
    st.lists(st.integers(0, 999)).map(tuple),
    st.lists(st.tuples(_names, _shapes, st.binary())).map(tuple),
    st.lists(st.tuples(_names, _shapes)).map(tuple),
    st.integers(0, 1 << 40),
    _origins,
    _steps,
    st.booleans(),
    st.lists(st.binary(max_size=30)).map(tuple),
    _places,
)


@given(_programs)
def test_a_program_is_what_it_was_when_read_back(program: KernelProgram) -> None:
    assert KernelProgram.from_bytes(program.to_bytes()) == program


pytestmark = pytest.mark.chooses_compiler
RNG = np.random.default_rng(5)
X = RNG.normal(size=(40, 40)).astype(np.float32)
Z = (X + 1j * X.T).astype(np.complex64)


def compiled(function: Callable[..., Any], *arguments: Any) -> CompiledFunction:
    arrays = [jnp.asarray(x) for x in arguments]
    traced = trace_function(
        lambda *xs: axir.tree.leaves(function(*xs)), [x.type for x in arrays], name="program"
    )
    return CompiledFunction(traced, default_device())


def called(function: Callable[..., Any], x: Any, like: Any = None) -> Any:
    return axir.pure_callback(
        function, axir.ShapeDtypeStruct(*_kind(x if like is None else like)), x
    )


def _kind(x: Any) -> tuple[tuple[int, ...], Any]:
    return x.shape, x.dtype


PROGRAMS: dict[str, tuple[Callable[..., Any], np.ndarray]] = {
    "alone": (lambda x: called(np.sin, x), X),
    "between": (lambda x: called(np.sin, x * 2) + 1, X),
    "twice": (lambda x: called(np.cos, called(np.sin, x) * 3) - x, X),
    "of_a_constant": (lambda x: called(np.sin, jnp.ones(3)) + x[0, :3], X),
    "truths": (lambda x: called(np.logical_not, x > 0) & (x < 1), X),
    "complex": (lambda z: called(np.conj, z * 2) + 1j, Z),
    "transform": (lambda z: jnp.fft.fft(z) * 2, Z),
    "real_transform": (lambda x: jnp.fft.irfft(jnp.fft.rfft(x) * 2), X),
    "solved": (lambda x: jnp.linalg.solve(x + 9 * jnp.eye(40), x[0]), X),
    "numbers": (lambda x: called(lambda v: v + 1, x.sum()) * 2, X),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_with_functions_of_the_host(name: str) -> None:
    function, x = PROGRAMS[name]
    program = compiled(function, x)
    assert isinstance(program._executable, NativeExecutable)
    array = jnp.asarray(x)
    with axir.disable_jit():
        want = np.asarray(function(array))
    for _ in range(2):  # the first call, and a quick one
        [result] = program.run([array])
        np.testing.assert_allclose(result.host(), want, rtol=1e-4, atol=1e-4)


def test_an_exception_is_the_users_own() -> None:
    class MyError(Exception):
        pass

    def fail(x):
        raise MyError("of mine")

    program = compiled(lambda x: called(fail, x * 2), X)
    for _ in range(2):
        with pytest.raises(MyError, match="of mine"):
            program.run([jnp.asarray(X)])


def test_what_a_function_keeps_stays_as_it_was() -> None:
    kept: list[np.ndarray] = []

    def keep(x):
        kept.append(x)
        return x

    def function(x):
        for n in range(3):
            x = called(keep, x * 2 + n)
        return x

    program = compiled(function, X)
    program.run([jnp.asarray(X)])
    program.run([jnp.asarray(X + 1)])
    np.testing.assert_allclose(kept[0], X * 2, rtol=1e-6)
    np.testing.assert_allclose(kept[1], X * 4 + 1, rtol=1e-6)


def test_results_of_another_kind_are_refused() -> None:
    program = compiled(lambda x: called(lambda v: v[:2], x), X)
    with pytest.raises(CallbackError, match=r"returned \(float32\[2,40\]\), but"):
        program.run([jnp.asarray(X)])


def test_denormal_numbers_count_in_functions_of_the_host() -> None:
    tiny = np.full(3, 1e-41, np.float32)
    program = compiled(lambda x: called(lambda v: v * np.float32(1e5), x), tiny)
    [result] = program.run([jnp.asarray(tiny)])
    np.testing.assert_allclose(result.host(), tiny * np.float32(1e5), rtol=1e-3)


def test_effects_happen_once_and_in_order() -> None:
    seen: list[float] = []

    def function(x):
        for n in range(4):
            axir.experimental.io_callback(
                lambda v: seen.append(float(v)), None, x[0, 0] * 0 + n, ordered=True
            )
        return x + 1

    program = compiled(function, X)
    assert isinstance(program._executable, NativeExecutable)
    program.run([jnp.asarray(X)])
    assert seen == [0, 1, 2, 3]


def test_large_programs_are_taken_over() -> None:
    x = np.tile(X, (20, 20))
    program = compiled(lambda x: called(np.sin, x @ x) + 1, x)
    assert isinstance(program._executable, NativeExecutable)
    [first] = program.run([jnp.asarray(x)])
    wait_for_compilers()
    [second] = program.run([jnp.asarray(x)])
    assert isinstance(program._executable, Executable)
    np.testing.assert_array_equal(first.host(), second.host())

"""Programs as machine code: small ones as one kernel, large ones as kernels until IREE is done."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import lax
from axir.dialect.core.config import config
from axir.dialect.program.function_tracing import trace_function
from axir.extend.backend import wait_for_compilers
from axir.runtime import default_device
from axir.runtime.calls.background import wait_for_all
from axir.runtime.calls.compiled_function import CompiledFunction
from axir.runtime.calls.executable import Executable
from axir.runtime.calls.native_executable import NativeExecutable
from axir.runtime.calls.successor import begin_all_successors
from axir.runtime.compiler import function_compilation
from axir.runtime.compiler.compilation import begin_legalized
from axir.runtime.native import kernel_program

pytestmark = pytest.mark.chooses_compiler
RNG = np.random.default_rng(3)
LAYOUTS = (
    ("NHWC", "HWIO", "NHWC"),
    ("NCHW", "OIHW", "NCHW"),
    ("NHWC", "OIHW", "NCHW"),
    ("NCHW", "HWIO", "NHWC"),
)


def floats(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def compiled(function: Callable[..., Any], *arguments: np.ndarray) -> CompiledFunction:
    arrays = [jnp.asarray(x) for x in arguments]
    traced = trace_function(
        lambda *xs: axir.tree.leaves(function(*xs)), [x.type for x in arrays], name="program"
    )
    return CompiledFunction(traced, default_device())


def check(function: Callable[..., Any], *arguments: np.ndarray, tolerance: float = 1e-5) -> None:
    """Checks that a program is machine code, and computes the evaluator's results."""
    program = compiled(function, *arguments)
    assert isinstance(program._executable, NativeExecutable)
    arrays = [jnp.asarray(x) for x in arguments]
    with axir.disable_jit():
        wanted = axir.tree.leaves(function(*arrays))
    for _ in range(2):  # the first call, and one that takes the quick way
        results = program.run(arrays)
        for result, want in zip(results, wanted, strict=True):
            assert (result.shape, result.dtype) == (want.shape, want.dtype)
            size = float(np.max(np.abs(want.host()), initial=1.0))
            np.testing.assert_allclose(
                result.host(), want.host(), rtol=tolerance, atol=tolerance * size
            )


# One kernel -------------------------------------------------------------------------------------


def convolutions() -> Iterator[tuple[str, Callable[..., Any], np.ndarray, np.ndarray]]:
    x, kernel = floats(2, 5, 6, 6), floats(3, 3, 6, 5)
    for layout in LAYOUTS:
        lhs = x if layout[0] == "NHWC" else x.transpose(0, 3, 1, 2)
        is_last = layout[1] == "HWIO"
        rhs = kernel if is_last else kernel.transpose(3, 2, 0, 1)

        def convolved(
            x: Any,
            k: Any,
            strides: Any = (1, 1),
            padding: Any = "SAME",
            d: Any = layout,
            **more: Any,
        ) -> Any:
            return lax.conv_general_dilated(x, k, strides, padding, dimension_numbers=d, **more)

        def dilated(x: Any, k: Any, c: Any = convolved) -> Any:
            dilations = {"lhs_dilation": (2, 1), "rhs_dilation": (1, 2)}
            return c(x, k, (2, 1), [(1, 2), (0, -1)], **dilations)

        def grouped(x: Any, k: Any, c: Any = convolved, last: bool = is_last) -> Any:
            return c(x, k[..., :2, :3] if last else k[:3, :2], feature_group_count=3)

        def batched(x: Any, k: Any, c: Any = convolved, last: bool = is_last) -> Any:
            return c(x, k[..., :4] if last else k[:4], padding="VALID", batch_group_count=2)

        def gradients(x: Any, k: Any, c: Any = convolved) -> Any:
            return axir.grad(lambda x, k: jnp.sum(c(x, k, (2, 2)) ** 2), (0, 1))(x, k)

        for form in (convolved, dilated, grouped, batched, gradients):
            yield f"{form.__name__} {'-'.join(layout)}", form, lhs, rhs


@pytest.mark.parametrize(
    ("function", "x", "kernel"), [pytest.param(*x[1:], id=x[0]) for x in convolutions()]
)
def test_convolutions_are_part_of_a_kernel(
    function: Callable[..., Any], x: np.ndarray, kernel: np.ndarray
) -> None:
    check(function, x, kernel, tolerance=2e-5)


def pooled(x: Any) -> Any:
    results = []
    for padding in ("SAME", "VALID"):
        for strides in ((1, 1, 1, 1), (1, 2, 3, 2)):

            def largest(x: Any, s: Any = strides, p: str = padding) -> Any:
                return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 2, 1), s, p)

            def total(x: Any, s: Any = strides, p: str = padding) -> Any:
                return lax.reduce_window(x, 0.0, lax.add, (1, 3, 2, 3), s, p)

            for form in (largest, total):
                results += [form(x), axir.grad(lambda x, f=form: jnp.sum(f(x) ** 2))(x)]
    return results


def test_windows_are_part_of_a_kernel() -> None:
    check(pooled, floats(2, 5, 7, 3))

    def of_two(x: Any) -> Any:
        def both(a: Any, b: Any) -> Any:
            return a[0] + b[0], jnp.maximum(a[1], b[1])

        window = (2, 2), (1, 1), "VALID"
        return lax.reduce_window((x, x + 1), (0.0, -jnp.inf), both, *window)

    def dilated(x: Any) -> Any:
        padding = ((1, 0), (-1, 1))
        dilations = {"base_dilation": (2, 2), "window_dilation": (1, 2)}
        return lax.reduce_window(x, 0, lax.add, (2, 2), (1, 1), padding, **dilations)

    check(of_two, floats(4, 5))
    check(dilated, RNG.integers(0, 9, (5, 6)).astype(np.int32))


def test_complex_numbers_are_pairs_of_real_ones_in_a_kernel() -> None:
    z = (floats(3, 4) + 1j * floats(3, 4)).astype(np.complex64)
    check(lambda z: (z, z * z + 1, jnp.exp(z), jnp.abs(z), z @ z.T, jnp.sum(z)), z)
    check(lambda z: (jnp.fft.fft(z), jnp.conj(z)[::-1], z == z, jnp.zeros_like(z)), z)
    check(lambda z: lax.fori_loop(0, 10, lambda i, c: c * 0.5 + z, z), z)
    check(lambda x: (x + 1j, jnp.array([1 + 2j, 3])), z.real)


def test_numbers_of_all_kinds_pass_a_barrier_beside_complex_ones() -> None:
    def beside(x: Any, z: Any) -> Any:
        z, x, n = lax.optimization_barrier((z * 2, x + 1, jnp.arange(3)))
        return z * x, x * 2, n + 1

    def in_loop(x: Any, z: Any) -> Any:
        return lax.fori_loop(
            0, 3, lambda _, c: lax.optimization_barrier((c[0] + 1, c[1] * z)), (x, z)
        )

    x, z = floats(3), (floats(3) + 1j * floats(3)).astype(np.complex64)
    check(beside, x, z)
    check(in_loop, x, z)


def test_long_loops_are_part_of_a_kernel() -> None:
    check(lambda x: lax.fori_loop(0, 1000, lambda i, x: jnp.sin(x) + i, x), floats(4))


# Kernels until IREE is done ---------------------------------------------------------------------


def attention(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.einsum("hid,hjd->hij", q, k) / 8
    return jnp.einsum("hij,hjd->hid", axir.nn.softmax(scores), v), jnp.sum(scores > 0, axis=-1)


def perceptron_step(w: Any, v: Any, x: Any, y: Any) -> Any:
    def loss(w: Any) -> Any:
        return jnp.mean((axir.nn.log_softmax(jnp.tanh(x @ w) @ v) - y) ** 2)

    value, gradient = axir.value_and_grad(loss)(w)
    return value, w - 0.1 * gradient


def complex_numbers(z: Any, w: Any) -> Any:
    results = z * w + 1, jnp.exp(z) / w, jnp.abs(z), jnp.conj(z) * z, z.T[::-1], -z * w + z
    return *results, lax.fori_loop(0, 3, lambda _, x: x * z + w, z)


def complex_sums(z: Any, w: Any, v: Any) -> Any:
    y = jnp.exp(z) * w
    few = y[:2, :9] * v
    chosen = lax.cond(jnp.abs(z[0, 0]) > 0, lambda: few.sum(1) * 2, lambda: few[:, 0])
    return y, chosen, few.sum(), v.at[2].set(w[0, 0]), v


def pairs(z: Any, w: Any, x: Any) -> Any:
    """Complex numbers built from parts, and split, in rows that do not fill whole vectors."""
    y = lax.complex(x, x[::-1] * 2)
    return z * w + jnp.conj(z), jnp.stack([x, x + 1], -1), y * z[0, :23], (z.real * 2, z.T.imag)


@axir.jit
def shared(z: Any) -> Any:
    """Has so many operations that calls of it are not inlined."""
    for n in range(14):
        z = jnp.exp(z / (n + 3)) * z + (z * z)[:2].sum()
    return z


def complex_calls(z: Any, w: Any) -> Any:
    return shared(z) + shared(w), shared(z) * 2


def negations(x: Any, y: Any) -> Any:
    return x * x - (-y) * y, (-x) * y + y, x - (-(x * y)), -x * x - -y * y, x * y + (-y) * x


LAST = ("NHWC", "HWIO", "NHWC")
LARGE = {
    "complex": (
        complex_numbers,
        *((floats(300, 400) + 1j * floats(300, 400)).astype(np.complex64) for _ in "zw"),
    ),
    "complex sums": (
        complex_sums,
        *((floats(300, 400) + 1j * floats(300, 400)).astype(np.complex64) for _ in "zw"),
        (floats(9) + 1j * floats(9)).astype(np.complex64),
    ),
    "pairs": (
        pairs,
        *((floats(301, 403) + 1j * floats(301, 403)).astype(np.complex64) for _ in "zw"),
        floats(23),
    ),
    "complex calls": (
        complex_calls,
        *((floats(300, 400) + 1j * floats(300, 400)).astype(np.complex64) for _ in "zw"),
    ),
    "negations": (negations, floats(300, 400), floats(300, 400)),
    "products": (lambda x, y: jnp.tanh(x @ y + 1) @ y, floats(200, 200), floats(200, 200)),
    "rows": (lambda x: (axir.nn.softmax(x), x.mean(0), jnp.sort(x, 1)[:, :3]), floats(400, 300)),
    "attention": (attention, floats(4, 96, 64), floats(4, 96, 64), floats(4, 96, 64)),
    "step": (perceptron_step, floats(256, 96), floats(96, 10), floats(128, 256), floats(128, 10)),
    "convolution": (
        lambda x, w: lax.conv_general_dilated(x, w, (1, 2), "SAME", dimension_numbers=LAST),
        floats(2, 20, 41, 24),
        floats(3, 3, 24, 40),
    ),
    "updates": (lambda x: (x.at[3:7].set(x[:4] * 2), x.at[::2].add(1.0)), floats(500, 200)),
}


@pytest.mark.parametrize("name", LARGE)
def test_iree_takes_over_and_nothing_changes(name: str) -> None:
    function, *arguments = LARGE[name]
    program = compiled(function, *arguments)
    arrays = [jnp.asarray(x) for x in arguments]
    assert isinstance(program._executable, NativeExecutable)
    before = [x.host().copy() for x in program.run(arrays)]
    wait_for_compilers()
    assert isinstance(program._executable, Executable)
    for old, new in zip(before, program.run(arrays), strict=True):
        np.testing.assert_array_equal(old, new.host())


def test_iree_begins_when_calls_have_taken_long_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []

    def begin(*arguments: Any) -> Callable[[], bytes]:
        begun.append(True)
        return begin_legalized(*arguments)

    monkeypatch.setattr(function_compilation, "begin_legalized", begin)
    program = compiled(lambda x: x @ x + x, x := floats(310, 310))
    monkeypatch.setattr(kernel_program, "_ENOUGH", 1e9)
    for _ in range(3):
        program.run([jnp.asarray(x)])[0].host()  # calls that take long run in another thread
    wait_for_all()
    assert not begun
    monkeypatch.setattr(kernel_program, "_ENOUGH", 1e-9)
    program.run([jnp.asarray(x)])[0].host()
    end = time.monotonic() + 60
    while not begun and time.monotonic() < end:  # the call ends in a separate thread
        time.sleep(0.01)
    wait_for_all()
    assert begun == [True]
    assert isinstance(program._executable, Executable)


def test_waiting_is_not_what_calls_take(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[object] = []
    monkeypatch.setattr(function_compilation, "begin_legalized", lambda *x: begun.append(x))

    def waits(x: np.ndarray) -> np.ndarray:
        time.sleep(1.5 * kernel_program._ENOUGH)
        return x

    kind = axir.ShapeDtypeStruct((310, 310), np.float32)
    program = compiled(lambda x: axir.pure_callback(waits, kind, x @ x) + x, x := floats(310, 310))
    assert program._successor is not None
    for _ in range(2):
        program.run([jnp.asarray(x)])[0].host()
    wait_for_all()
    assert not begun


@pytest.mark.parametrize(
    ("function", "threads", "stays"),
    [
        (lambda x, y: jnp.maximum(x + y, 0), 2, True),
        (lambda x, y: jnp.maximum(x + y, 0), 4, False),
        (lambda x, y: x[:, :1] * y[:1], 2, True),
        (lambda x, y: lax.complex(x, y) * lax.complex(y, x), 2, True),
        (lambda x, y: (jnp.concatenate([x, y]), jnp.concatenate([x, y], 1)), 2, True),
        (lambda x, y: jnp.take_along_axis(x, y.astype(int), 1), 2, True),
        (lambda x, y: jnp.exp(jnp.concatenate([x, y])), 2, False),
        (lambda x, y: jnp.exp(x) * y, 2, False),
        (lambda x, y: (x + y, x * y, x - y), 2, False),
        (lambda x, y: (x + y).sum(1), 2, False),
    ],
)
def test_one_pass_over_memory_stays_where_threads_are_few(
    monkeypatch: pytest.MonkeyPatch, function: Callable[..., Any], threads: int, stays: bool
) -> None:
    monkeypatch.setattr(function_compilation, "thread_count", lambda: threads)
    program = compiled(function, floats(300, 400), floats(300, 400))
    assert isinstance(program._executable, NativeExecutable)
    assert (program._successor is None) == stays


@pytest.mark.parametrize(("extent", "stays"), [(70, True), (300, False)])
def test_calls_of_the_host_for_small_arrays_stay_where_threads_are_few(
    monkeypatch: pytest.MonkeyPatch, extent: int, stays: bool
) -> None:
    monkeypatch.setattr(function_compilation, "thread_count", lambda: 2)
    for function in (jnp.linalg.solve, lambda x, y: jnp.linalg.solve(x - y, y) + 1):
        program = compiled(function, floats(extent, extent), floats(extent, extent))
        assert isinstance(program._executable, NativeExecutable)
        is_alone = function is jnp.linalg.solve
        assert (program._successor is None) == (stays or is_alone)


def test_iree_compiles_under_the_options_of_whom_it_compiles_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def begin(*arguments: Any) -> Callable[[], bytes]:
        seen.append(config.axir_dump_dir)
        return begin_legalized(*arguments)

    monkeypatch.setattr(function_compilation, "begin_legalized", begin)
    with config(axir_dump_dir=str(tmp_path)):
        program = compiled(lambda x: x @ x - x, floats(310, 310))
    with config(axir_dump_dir=None):  # as in a thread that runs calls for others
        begin_all_successors()
    wait_for_all()
    assert isinstance(program._executable, Executable)
    assert seen == [str(tmp_path)]


def test_a_successor_does_not_keep_alive_whom_it_succeeds() -> None:
    program = compiled(lambda x: x @ x - 2 * x, floats(310, 310))
    known, successor = weakref.ref(program), program._successor
    assert successor is not None
    del program
    assert known() is None
    successor.begin()
    successor.wait()
    assert not successor.is_lost


def test_an_option_pins_what_runs_a_program() -> None:
    function, *arguments = LARGE["products"]
    arrays = [jnp.asarray(x) for x in arguments]
    results = []
    for choice, kind in (("iree", Executable), ("native", NativeExecutable)):
        with config(axir_compiler=choice):
            program = compiled(function, *arguments)
            wait_for_compilers()
            assert isinstance(program._executable, kind)
            results.append(program.run(arrays)[0].host())
    np.testing.assert_array_equal(*results)


def test_what_is_captured_may_be_read_before_arguments() -> None:
    captured = jnp.asarray(floats(300, 300))
    x = floats(300, 300)
    # A kernel of only the captured array, and later one of the argument.
    check(lambda x: (captured @ captured) @ x, x)

"""Loops and branches of native programs: of several kernels each, and the same after IREE's."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import lax
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.config import config
from axir.dialect.program.function_tracing import trace_function
from axir.extend.backend import wait_for_compilers
from axir.passes.fuse import fitness, islands
from axir.runtime import default_device
from axir.runtime.calls.arguments import buffer_of
from axir.runtime.calls.compiled_function import CompiledFunction
from axir.runtime.calls.executable import Executable
from axir.runtime.calls.native_executable import NativeExecutable
from axir.runtime.native.kernel_program import (
    AGAIN,
    CHOOSE,
    COPY,
    EXCHANGE,
    UNLESS,
    KernelProgram,
    OvertakenError,
)

pytestmark = pytest.mark.chooses_compiler
RNG = np.random.default_rng(7)


def floats(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


@pytest.fixture(autouse=True)
def no_loop_is_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is of large arrays; these are small for the sake of time."""
    monkeypatch.setattr(fitness, "_LARGEST_WORK", 50)
    monkeypatch.setattr(islands, "_MOST_WORK_OF_BRANCH", 10)


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[KernelProgram]:
    """Collects the native programs that a test makes."""
    found: list[KernelProgram] = []
    begin = NativeExecutable.__init__

    def watched(self: NativeExecutable, kernel: KernelProgram, *rest: Any) -> None:
        found.append(kernel)
        begin(self, kernel, *rest)

    monkeypatch.setattr(NativeExecutable, "__init__", watched)
    return found


def compiled(
    function: Callable[..., Any], *arguments: Any, donated: tuple[int, ...] = ()
) -> CompiledFunction:
    arrays = [jnp.asarray(x) for x in arguments]
    traced = trace_function(
        lambda *xs: axir.tree.leaves(function(*xs)), [x.type for x in arrays], name="program"
    )
    return CompiledFunction(traced, default_device(), donated)


X, Y, W = floats(20, 20), floats(20, 20) / 5, floats(5, 20, 20) / 5
COUNT = np.int32(4)


def loop(count: Any, body: Callable[..., Any], *begin: Any) -> Any:
    return lax.fori_loop(0, count, lambda _, carried: body(*carried), begin)


def passed_on(x: Any, y: Any, n: Any) -> Any:
    """The carries of loops, on their way from pass to pass."""
    return [
        loop(5, lambda a, b: (b, a), x @ y, y @ x),
        loop(n, lambda a, b: (b, a @ y), x, y),
        loop(7, lambda a, b, c: (b, c, a @ y), x, y, x + y),
        loop(n - 4, lambda a, b: (b, a @ y), x, y),
        loop(4, lambda a, b, c: (a @ y, a @ y, a), x, x, y),
        loop(4, lambda a, b, c: (a @ b, b, c), x, y, x @ y),
        loop(4, lambda a, b: (a @ y, b * 2), x, x[:0]),
        x,
    ]


def one_after_the_other(x: Any, y: Any, n: Any) -> Any:
    """Loops that begin with the results of other loops."""
    a, b = loop(3, lambda a, b: (b @ y, a), x, y)
    c, d = loop(n, lambda a, b: (b @ y, a), b, a)
    e, f = loop(3, lambda a, b: (b @ y, a), b, d)

    def outer(a: Any, b: Any) -> Any:
        t = a @ y
        q, r = loop(3, lambda c, d: (d @ y, c + a), t, b)
        s = lax.fori_loop(0, n, lambda _, c: c @ y, r)
        u, v = loop(3, lambda c, d: (d, c + 1.0), q, s)
        return u, v + t

    return c, d, e, f, loop(n, outer, x, y)


def in_place(x: Any, y: Any, n: Any) -> Any:
    """Parts of large arrays are changed, and their old elements are read, or not."""

    def small(i: Any, c: Any) -> Any:
        a, b = c
        b = b.at[i].set((a @ y)[0])
        return a.at[:, i].add(b[i]) @ y, b

    def large(i: Any, c: Any) -> Any:
        a, b, o = c
        new = b.at[i].set((a @ big)[0])
        return a.at[:, i].add(new[:, i]) @ big, new, o.at[i, 3:].set(b[i][3:])

    def old(i: Any, c: Any) -> Any:
        a, b, _ = c
        return b @ big, b.at[i].set((a @ big)[0]), b

    big = jnp.tile(y, (3, 3)) / 3
    wide = jnp.tile(x, (3, 3))
    first = lax.fori_loop(0, n, small, (x, y))
    second = lax.fori_loop(0, n, large, (wide, wide @ big, jnp.zeros_like(wide)))
    third = lax.fori_loop(0, n, old, (wide, wide @ big, jnp.ones_like(wide)))
    return first, second, third, second[1] + 1


def branches(x: Any, y: Any, n: Any) -> Any:
    def of_two(c: Any, w: Any) -> Any:
        c = lax.cond(c.sum() > 0, lambda c: c @ w, lambda c: (c @ w).T - 1, c)
        return c, c.max(0)

    def kept(c: Any, w: Any) -> Any:
        return lax.cond(c.sum() > 0, lambda c: c, lambda c: (c @ w).T - 1, c) * 0.5, None

    def of_three(c: Any, w: Any) -> Any:
        number = (w[0, 0] * 20).astype(jnp.int32) % 5 - 1
        sides = [lambda c: c @ w, lambda c: c.T @ w, lambda c: c + 1]
        return lax.switch(number, sides, c), number

    def with_loops(c: Any, w: Any) -> Any:
        def run(c: Any) -> Any:
            return loop(3, lambda a, b: (b @ w, a), *c)

        return lax.cond(c[0].sum() > 0, run, lambda c: (c[1], c[0] - 1), c), c[0][0]

    choices = [lax.switch(n + k, [lambda: x @ y, lambda: y @ x]) for k in (-9, -4, -3, 9)]
    twice = lax.cond(n > 3, lambda: (x @ y, x, x), lambda: (y @ x, y @ y, y))
    scans = [lax.scan(body, x, W) for body in (of_two, kept, of_three)]
    return choices, twice, scans, lax.scan(with_loops, (x, y), W)


def sums(x: Any, y: Any, n: Any) -> Any:
    """Sums and products, in the same order in both ways."""

    def loss(w: Any, x: Any) -> Any:
        c, s = lax.scan(lambda c, w: ((d := jnp.tanh(c @ w)), d.sum()), x, w)
        return (c**2).sum() + s.sum()

    def direction(s: Any) -> Any:
        i, x, r, p, square = s
        q = a @ p
        step = square / (p @ q)
        x, r = x + step * p, r - step * q
        return i + 1, x, r, r + r @ r / square * p, r @ r

    def growing(s: Any) -> Any:
        return s[0] @ y, s[1] + (s[0] ** 2).mean() + 2

    a, b = x @ x.T + jnp.eye(20) * 20, y[0]
    start = (0, jnp.zeros(20), b, b, b @ b)
    windows = (3, 3), (1, 1), "SAME"
    return [
        axir.value_and_grad(loss, (0, 1))(W, x),
        lax.while_loop(lambda s: (s[4] > 1e-6) & (s[0] < 40), direction, start)[1:3],
        lax.fori_loop(0, 3, lambda _, c: lax.reduce_window(c @ y, 0.0, lax.add, *windows), x),
        lax.fori_loop(0, n, lambda i, c: c.at[jnp.array([3, 1, 3]) + i].add((c @ y)[:3]), x),
        lax.fori_loop(0, 3, lambda _, c: (c * c + y) / (jnp.abs(c * c + y)).max() - c * y, x),
        lax.while_loop(
            lambda s: s[1] < 20, lambda s: (s[0] @ y, s[1] + (s[0] ** 2).mean() + 2), (x, 0.0)
        ),
    ]


def of_all_kinds(x: Any, y: Any, n: Any) -> Any:
    def body(i: Any, c: Any) -> Any:
        b, u, s, h = c
        low = (h @ h.T).astype(jnp.bfloat16) * jnp.bfloat16(0.1)
        return ~b ^ (u > 7), u * 3 + jnp.asarray(i, jnp.uint8), s - u.astype(jnp.int8), low

    def noisy(_: Any, c: Any) -> Any:
        key, c = c
        key, other = axir.random.split(key)
        return key, c @ y + axir.random.normal(other, (20, 20))

    bytes_ = jnp.arange(400, dtype=jnp.uint8).reshape(20, 20)
    z, w = x + 1j * y, y / 3 + 1j * x / 9
    low = bytes_.astype(jnp.bfloat16) * jnp.bfloat16(0.01)
    begin = (x > 0, bytes_, bytes_.astype(jnp.int8), low)
    return [
        lax.fori_loop(0, n, body, begin),
        loop(n, lambda a, b: (b @ w, a * 2), z, w),
        axir.vmap(lambda n: loop(n, lambda a, b: (b @ y, a), x, y))(jnp.arange(3) + n),
        lax.fori_loop(0, 3, noisy, (axir.random.key(0), x))[1],
        lax.fori_loop(0, n, lambda i, c: jnp.sort(c @ y, 0)[jnp.argsort(c[:, i])] + 1, x),
        lax.fori_loop(0, 3, lambda i, c: lax.dynamic_slice(jnp.tile(c @ y, 2), (0, i), c.shape), x),
    ]


PROGRAMS = (passed_on, one_after_the_other, in_place, branches, sums, of_all_kinds)


@pytest.mark.parametrize("function", PROGRAMS)
def test_iree_takes_over_and_nothing_changes(
    function: Callable[..., Any], plans: list[KernelProgram]
) -> None:
    arrays = [jnp.asarray(x) for x in (X, Y, COUNT)]
    program = compiled(function, *arrays)
    [plan] = plans
    assert sum(name == AGAIN for name, _, _ in plan.steps) > 1  # loops are loops of several kernels
    with axir.disable_jit():
        wanted = axir.tree.leaves(function(*arrays))
    calls = [[x.host().copy() for x in program.run(arrays)] for _ in range(2)]
    wait_for_compilers()
    assert isinstance(program._executable, Executable)
    calls.append([x.host() for x in program.run(arrays)])
    for first, second, last, want in zip(*calls, wanted, strict=True):
        np.testing.assert_array_equal(second, first)
        np.testing.assert_array_equal(last, first)
        tolerance = 0.05 if first.dtype.name == "bfloat16" else 2e-4
        size = float(np.max(np.abs(want.host().astype(complex)), initial=1.0))
        np.testing.assert_allclose(
            first.astype(complex),
            want.host().astype(complex),
            rtol=tolerance,
            atol=tolerance * size,
        )


def test_arrays_are_exchanged_or_stay_where_they_are(plans: list[KernelProgram]) -> None:
    def exchanged(x: Any, y: Any) -> Any:
        return loop(9, lambda a, b: (b @ y, a), x, y)

    def updated(x: Any, y: Any) -> Any:
        def body(i: Any, c: Any) -> Any:
            return c[0].at[i].set((c[1] @ y[:20, :20])[0]), c[1] @ y[:20, :20]

        return lax.fori_loop(0, 9, body, (y, x))

    big = np.tile(Y, (30, 1))
    with config(axir_compiler="native"):
        compiled(exchanged, X, Y)
        compiled(updated, X, big)
    for plan in plans:
        names = [name for name, _, _ in plan.steps]
        inside = plan.steps[names.index(UNLESS) : names.index(AGAIN)]
        assert [name for name, _, _ in inside].count(EXCHANGE) == 1
        assert not [size for name, size, _ in inside if name == COPY]
    # The large array is changed where it is returned.
    assert plans[1].space < big.nbytes


def test_rows_are_written_in_place_unless_somebody_reads_them(plans: list[KernelProgram]) -> None:
    x, y = floats(300, 203), floats(203, 301)

    def once(x: Any, y: Any) -> Any:
        return axir.nn.softmax(x @ y) @ y.T

    def again(x: Any, y: Any) -> Any:
        scores = x @ y
        return (axir.nn.softmax(scores) @ y.T) @ (scores.T @ x)[:203, :203]

    with config(axir_compiler="native"):
        found = [np.asarray(axir.jit(f)(x, y)) for f in (once, again)]
    scores = x.astype(np.float64) @ y
    shares = np.exp(scores - scores.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    np.testing.assert_allclose(found[0], shares @ y.T, atol=1e-4)
    # The sums are of thousands.
    np.testing.assert_allclose(found[1], shares @ y.T @ (scores.T @ x)[:203, :203], atol=2)
    size = 300 * 301 * 4
    assert size <= plans[0].space < 2 * size
    assert plans[1].space >= 2 * size


def test_real_sizes_are_loops_of_kernels(
    plans: list[KernelProgram], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    x, w = floats(256, 256), floats(4, 256, 256) / 16
    with config(axir_compiler="native"):
        function = lambda x, w: lax.scan(lambda c, w: (jnp.tanh(c @ w), c.sum()), x, w)  # noqa: E731
        program = compiled(function, x, w)
    assert isinstance(program._executable, NativeExecutable)
    want = x
    sums = []
    for one in w:
        sums.append(want.sum())
        want = np.tanh(want @ one)
    results = program.run([jnp.asarray(x), jnp.asarray(w)])
    np.testing.assert_allclose(results[0].host(), want, atol=1e-4)
    np.testing.assert_allclose(results[1].host(), sums, rtol=1e-3, atol=0.05)


# Functions of the host --------------------------------------------------------------------------


def called(function: Callable[..., Any], x: Any, like: Any = None) -> Any:
    like = x if like is None else like
    return axir.pure_callback(function, axir.ShapeDtypeStruct(like.shape, like.dtype), x)


def test_loops_call_functions_of_the_host(plans: list[KernelProgram]) -> None:
    seen: list[float] = []

    def function(x: Any, y: Any, n: Any) -> Any:
        def body(i: Any, c: Any) -> Any:
            axir.experimental.io_callback(lambda v: seen.append(int(v)), None, i, ordered=True)
            d = called(np.cos, c[0] @ y)
            return c[1] + d, d

        truth = jnp.zeros((), bool)
        counted = lax.while_loop(
            lambda c: called(lambda v: np.bool_(v < 5), c, truth),
            lambda c: called(lambda v: np.int32(v + 1), c),
            n,
        )
        chosen = lax.cond(n > 0, lambda: called(np.sin, x), lambda: called(np.cos, x))
        return lax.fori_loop(0, 4, body, (x, y)), counted, chosen

    arrays = [jnp.asarray(x) for x in (X, Y, np.int32(1))]
    program = compiled(function, *arrays)
    assert isinstance(program._executable, NativeExecutable)
    with axir.disable_jit():
        wanted = axir.tree.leaves(function(*arrays))
    assert seen == [0, 1, 2, 3]
    for _ in range(2):
        seen.clear()
        for result, want in zip(program.run(arrays), wanted, strict=True):
            np.testing.assert_allclose(result.host(), want.host(), atol=1e-4)
        assert seen == [0, 1, 2, 3]
    alone = compiled(lambda n: function(x=jnp.asarray(X), y=jnp.asarray(Y), n=n)[1], COUNT)
    assert int(alone.run([jnp.asarray(COUNT)])[0]) == 5


def test_an_exception_ends_a_loop() -> None:
    class MyError(Exception):
        pass

    def fail(x: np.ndarray) -> np.ndarray:
        passes.append(1)
        if len(passes) == 3:
            raise MyError("of mine")
        return x

    def function(x: Any, y: Any) -> Any:
        return lax.fori_loop(0, 9, lambda _, c: called(fail, c @ y), x)

    arrays = [jnp.asarray(X), jnp.asarray(Y)]
    program = compiled(function, *arrays)
    for _ in range(2):
        passes: list[int] = []
        with pytest.raises(MyError, match="of mine"):
            program.run(arrays)
        assert len(passes) == 3


# Calls ------------------------------------------------------------------------------------------


def lasting(x: Any, y: Any, n: Any) -> Any:
    return lax.fori_loop(0, n, lambda _, c: c @ y, x)


def test_a_signal_ends_a_loop() -> None:
    with config(axir_compiler="native", jax_cpu_enable_async_dispatch=False):
        arrays = [jnp.asarray(x) for x in (X, Y, np.int32(1 << 27))]
        program = compiled(lasting, *arrays)
        timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
        # A process that a shell began in the background ignores the signal.
        handler = signal.signal(signal.SIGINT, signal.default_int_handler)
        timer.start()
        start = time.perf_counter()
        try:
            with pytest.raises(KeyboardInterrupt):
                program.run(arrays)
        finally:
            signal.signal(signal.SIGINT, handler)
    assert time.perf_counter() - start < 20
    timer.join()


def test_an_argument_that_is_returned_has_memory_of_its_own() -> None:
    """Either of the two may be donated later to a program that overwrites it."""
    x = jnp.asarray(floats(150, 150))
    with config(axir_compiler="native"):
        program = compiled(lambda x, n: (x, lax.fori_loop(0, n, lambda _, c: c * 0.5, x)), x, COUNT)
    executable, device = program._executable, program.device
    assert isinstance(executable, NativeExecutable)
    given = [device.put(y.host()) for y in (x, jnp.asarray(COUNT))]
    found = executable(given)
    arrays = [device.to_numpy(y.view, x.shape, x.dtype) for y in (given[0], found[0])]
    np.testing.assert_array_equal(*arrays)
    assert not np.shares_memory(*arrays)


class Other:
    """A program that serves from now on."""

    def invoke(self, refs: list[Any], where: str | None = None) -> list[Any]:
        """Returns the first argument."""
        return refs[:1]


def test_a_long_loop_begins_anew_when_iree_is_done() -> None:
    arrays = [jnp.asarray(x) for x in (X, Y, np.int32(1 << 30))]
    with config(axir_compiler="native"):
        native = compiled(lasting, *arrays)._executable
    assert isinstance(native, NativeExecutable)
    native.leave_calls_to(Other())  # type: ignore[arg-type]
    # The caller has the other program already.
    assert native.run(arrays) is None
    with pytest.raises(OvertakenError):
        native.run_generally(arrays)
    [result] = native([buffer_of(x, default_device()) for x in arrays])
    np.testing.assert_array_equal(ConcreteArray(arrays[0].type, None, result).host(), X)


def test_what_is_donated_may_be_carried() -> None:
    with config(axir_compiler="native"):
        program = compiled(lasting, X, Y, COUNT, donated=(0,))
        given = jnp.asarray(X.copy())
        [result] = program.run([given, jnp.asarray(Y), jnp.asarray(COUNT)])
        assert given.is_deleted()
        with axir.disable_jit():
            want = lasting(jnp.asarray(X), jnp.asarray(Y), 4)
        np.testing.assert_allclose(result.host(), want.host(), atol=1e-5)


def test_plans_are_kept_as_they_are(plans: list[KernelProgram]) -> None:
    with config(axir_compiler="native"):
        compiled(branches, X, Y, COUNT)
    [plan] = plans
    assert KernelProgram.from_bytes(plan.to_bytes()) == plan
    assert {AGAIN, UNLESS, CHOOSE} <= {name for name, _, _ in plan.steps}
    assert plan.may_last
    assert plan.stops

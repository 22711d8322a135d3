"""Calls that return before they are done: values, order, errors, memory, threads, ends."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir.dialect.core import errors
from axir.dialect.core.config import config
from axir.runtime.calls import executable, pending
from axir.runtime.calls.executable import Executable
from axir.runtime.errors import RuntimeExecutionError

SIZE = 1000


class Gate:
    """Holds queued calls back until it is open; fails the calls of given numbers."""

    def __init__(self, monkeypatch):
        self._open = threading.Event()
        self.failing: set[int] = set()
        self.order: list[str] = []
        invoke = Executable.invoke

        def gated(this, refs, where=None):
            if where is not None:  # a queued call
                assert self._open.wait(30)
                self.order.append(where)
                if len(self.order) in self.failing:
                    raise this.failure(ValueError("it broke"), where)
            return invoke(this, refs, where)

        monkeypatch.setattr(Executable, "invoke", gated)
        # Every call is a long one.
        monkeypatch.setattr(executable, "LONG_SECONDS", 0.0)

    def open(self):
        self._open.set()

    def close(self):
        pending.finish_all()
        self._open.clear()
        self.order.clear()


@pytest.fixture(autouse=True)
def programs_of_iree():
    """Small programs are IREE's here, which are queued as large ones are, in all threads."""
    config.update("axir_compiler", "iree")


@pytest.fixture
def gate(monkeypatch):
    gate = Gate(monkeypatch)
    yield gate
    gate.open()
    pending.finish_all()


def prepared(function, *args, **options):
    """Returns a compiled function with calls that count as long ones from now on."""
    f = axir.jit(function, **options)
    for _ in range(3):
        f(*[jnp.array(np.asarray(x)) for x in args]) if options else f(*args)
    return f


X = jnp.arange(SIZE, dtype=jnp.float32)


@pytest.fixture
def double(gate):
    f = prepared(lambda x: x * 2, X)
    gate.open()
    gate.close()
    return f


USES = {
    "asarray": np.asarray,
    "tolist": lambda y: np.array(y.tolist(), np.float32),
    "item": lambda y: np.array([y.item(n) for n in range(y.size)], np.float32),
    "eager": lambda y: np.asarray(y + 0),
    "index": lambda y: np.asarray(y[:]),
    "buffer": lambda y: np.frombuffer(bytes(y), np.float32),
    "copy": lambda y: np.asarray(copy.deepcopy(y)),
    "pickle": lambda y: np.asarray(pickle.loads(pickle.dumps(y))),
    "device_put": lambda y: np.asarray(axir.device_put(y, axir.devices()[0])),
    "device_get": axir.device_get,
    "grad": lambda y: np.asarray(axir.grad(lambda v: (v * v).sum() / 2)(y)),
    "block": lambda y: np.asarray(y.block_until_ready()),
    "block tree": lambda y: np.asarray(axir.block_until_ready({"a": [y]})["a"][0]),
    "captured": lambda y: np.asarray(axir.jit(lambda: y + 0)()),
    "dlpack": lambda y: np.from_dlpack(y),
    "callback": lambda y: np.asarray(axir.jit(lambda v: axir.pure_callback(lambda w: w, v, v))(y)),
}


@pytest.mark.parametrize("use", USES)
def test_every_use_waits_for_the_elements(double, gate, use):
    y = double(X)
    assert not y.is_ready()
    assert not y.is_deleted()
    assert (y.shape, y.dtype) == ((SIZE,), np.float32)
    threading.Timer(0.05, gate.open).start()
    np.testing.assert_array_equal(USES[use](y), 2 * np.arange(SIZE, dtype=np.float32))
    assert y.is_ready()


def test_scalars_wait(gate):
    f = prepared(lambda x: x.astype(int).sum(), X)
    threading.Timer(0.05, gate.open).start()
    assert [float(f(X)), int(f(X)), bool(f(X)), f"{f(X)}"] == [499500, 499500, True, "499500"]


def test_calls_of_pending_arrays_are_queued_in_order(double, gate):
    y = X
    for _ in range(10):
        y = double(y)
    assert not y.is_ready()
    gate.open()
    np.testing.assert_array_equal(y, 1024 * np.arange(SIZE, dtype=np.float32))
    assert len(gate.order) == 10


def test_short_calls_wait_in_the_queue_only_for_pending_arguments(double, gate, monkeypatch):
    monkeypatch.setattr(executable, "LONG_SECONDS", 1e9)
    short = prepared(lambda x, y: x + y, X, X)
    y = double(X)
    assert short(X, X).is_ready()
    z = short(X, y)
    assert not z.is_ready()
    gate.open()
    np.testing.assert_array_equal(z, 3 * np.arange(SIZE, dtype=np.float32))


def test_a_failure_belongs_to_whoever_uses_the_result(double, gate):
    gate.failing = {2}
    first = double(X)
    second = double(first)  # this line is in the error
    third = double(second)
    fourth = double(first)
    gate.open()
    np.testing.assert_array_equal(fourth, 4 * X)
    np.testing.assert_array_equal(first, 2 * X)
    for _ in range(2):
        for y in (second, third):
            with pytest.raises(RuntimeExecutionError, match="failed on cpu:0: it broke") as error:
                np.asarray(y)
            assert "this line is in the error" in str(error.value)
            with pytest.raises(RuntimeExecutionError, match="it broke"):
                y.block_until_ready()
            with pytest.raises(RuntimeExecutionError, match="it broke"):
                y + 1
            assert y.is_ready()
            assert not y.is_deleted()
    with pytest.raises(RuntimeExecutionError, match="it broke"):
        double(second).block_until_ready()


def test_deleted_results_are_deleted_though_others_still_need_them(double, gate):
    y = double(X)
    z = double(y)
    y.delete()
    assert y.is_deleted()
    with pytest.raises(errors.DeletedArrayError):
        double(y)
    gate.open()
    np.testing.assert_array_equal(z, 4 * np.arange(SIZE, dtype=np.float32))
    assert y.is_deleted()
    with pytest.raises(errors.DeletedArrayError):
        np.asarray(y)


def test_arguments_deleted_after_the_call_were_there_for_it(double, gate):
    x = double(X)
    gate.open()
    x.block_until_ready()
    gate.close()
    y = double(x)
    x.delete()
    gate.open()
    np.testing.assert_array_equal(y, 4 * np.arange(SIZE, dtype=np.float32))


def test_donated_memory_is_overwritten_after_all_calls_that_read_it(double, gate):
    update = prepared(lambda x: x.at[0].set(7.0), X, donate_argnums=0)
    gate.open()
    x = jnp.array(np.arange(SIZE, dtype=np.float32))
    x = double(x).block_until_ready()
    gate.close()
    from_thread = []
    other = threading.Thread(target=lambda: from_thread.append(double(x)))
    other.start()
    other.join()
    here = double(x)
    y = update(x)
    assert x.is_deleted()
    assert not y.is_ready()
    gate.open()
    expected = 2 * np.arange(SIZE, dtype=np.float32)
    for z in (here, from_thread[0]):
        np.testing.assert_array_equal(z, 2 * expected)
    expected[0] = 7
    np.testing.assert_array_equal(y, expected)


def test_pending_arrays_can_be_donated(double, gate):
    update = prepared(lambda x: x.at[0].set(7.0), X, donate_argnums=0)
    y = double(X)
    z = update(y)
    assert y.is_deleted()
    with pytest.raises(errors.DeletedArrayError):
        update(y)
    gate.open()
    assert z[:2].tolist() == [7, 2]
    assert y.is_deleted()


def test_effects_happen_in_the_order_of_the_source(double, gate):
    seen = []
    gate.open()

    @axir.jit
    def report(x):
        axir.debug.callback(lambda v: seen.append(float(v)), x[1], ordered=True)
        return x + 1

    y = X
    for _ in range(5):
        y = double(report(y))
    y.block_until_ready()
    assert seen == [1, 4, 10, 22, 46]


def test_nothing_is_queued_when_the_option_says_so_or_elements_are_checked(double, gate):
    with config(jax_cpu_enable_async_dispatch=False):
        assert double(X).is_ready()
    with config(jax_debug_nans=True):
        assert double(X).is_ready()
    assert not double(X).is_ready()


def test_the_queue_has_an_end(double, gate):
    calls = []

    def call():
        for _ in range(pending._LIMIT + 1):
            calls.append(double(X))

    thread = threading.Thread(target=call)
    thread.start()
    thread.join(0.5)
    assert thread.is_alive()
    assert len(calls) == pending._LIMIT
    gate.open()
    thread.join(30)
    assert len(calls) == pending._LIMIT + 1
    np.testing.assert_array_equal(calls[-1], 2 * X)


def test_threads_end_before_their_calls_do(double, gate):
    results = []
    thread = threading.Thread(target=lambda: results.append(double(double(X))))
    thread.start()
    thread.join(30)
    gate.open()
    np.testing.assert_array_equal(results[0], 4 * X)


def test_memory_lives_as_long_as_somebody_needs_it(double, gate):
    y = double(X)
    alive = weakref.ref(y._buffer)
    z = double(y)
    del y
    gate.open()
    z.block_until_ready()
    gc.collect()
    assert alive() is None
    gate.close()
    alive = weakref.ref(double(X)._buffer)
    assert alive() is not None  # the queue holds it
    gate.open()
    pending.finish_all()
    assert alive() is None
    assert not pending.is_any_unfinished()


def test_many_threads_queue_and_wait_at_random(gate):
    gate.open()
    add = prepared(lambda x, y: x + y, X, X)
    shared = [X]
    failures = []

    def work(seed):
        generator = np.random.default_rng(seed)
        mine = [(X, np.asarray(X))]
        try:
            for _ in range(150):
                (x, a), (y, b) = (mine[generator.integers(len(mine))] for _ in range(2))
                z, c = add(x, y), a + b
                if generator.random() < 0.2:
                    np.testing.assert_array_equal(z, c)
                if generator.random() < 0.3:
                    shared[0] = z
                    other = shared[0]
                    add(other, z)
                mine = [*mine[-5:], (z, c)]
            for x, a in mine:
                np.testing.assert_array_equal(x, a)
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures
    pending.finish_all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_forked_child_has_what_was_pending_and_queues_calls_of_its_own(double, gate):
    y = double(X)
    threading.Timer(0.05, gate.open).start()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            z = double(y)
            if z.tolist() == (4 * np.arange(SIZE)).tolist():
                status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    np.testing.assert_array_equal(double(y), 4 * X)


AT_EXIT = """
import atexit, threading
import axir, axir.numpy as jnp
from axir.runtime.calls import executable
executable.LONG_SECONDS = 0.0
f = axir.jit(lambda x: x @ x)
x = jnp.ones((300, 300))
for _ in range(3): f(x)
atexit.register(lambda: print(f(x)[0, 0]))
def work():
    for _ in range(20): f(x)
threading.Thread(target=work).start()
for _ in range(20): y = f(x)
"""


def test_the_interpreter_ends_quietly_in_the_middle_of_calls(tmp_path):
    environment = {**os.environ, "AXIR_CACHE_DIR": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-c", AT_EXIT], capture_output=True, text=True, env=environment
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "300.0\n", "")

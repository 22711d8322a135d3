"""Jitted functions in several threads: traced and compiled once, right in each, never stuck."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir.dialect.core.config import config
from axir.runtime.compiler import compilation, native_compilation


@pytest.fixture
def compilations(monkeypatch, tmp_path):
    """Counts the runs of the compilers; nothing comes from the disk."""
    config.update("axir_cache_dir", str(tmp_path))
    runs = []

    def counted(run):
        def call(*arguments):
            runs.append(arguments)
            return run(*arguments)

        return call

    for module, name in ((compilation, "_run_compiler"), (native_compilation, "_run")):
        monkeypatch.setattr(module, name, counted(getattr(module, name)))
    return runs


def in_threads(*works):
    """Runs functions in threads that begin together; returns what each gave or raised."""
    barrier = threading.Barrier(len(works))
    results = [None] * len(works)

    def run(number):
        barrier.wait()
        try:
            results[number] = works[number]()
        except Exception as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return results


def test_eight_threads_trace_and_compile_a_function_once(compilations):
    traces = []

    @axir.jit
    def inner(x):
        traces.append(x)
        return jnp.sin(x)

    @axir.jit
    def f(x):
        time.sleep(0.05)
        return inner(x) * inner(x)

    results = in_threads(*[lambda: float(f(0.5))] * 8)
    np.testing.assert_allclose(results, np.sin(0.5) ** 2, rtol=1e-6)
    assert (len(traces), len(compilations)) == (1, 1)
    gradients = in_threads(*[lambda: float(axir.grad(inner)(0.5))] * 8)
    np.testing.assert_allclose(gradients, np.cos(0.5), rtol=1e-6)
    assert len(traces) == 1
    assert len(compilations) <= 3  # the value with its residuals, and the linear part


def test_equal_programs_of_several_functions_are_compiled_once(compilations):
    def program():
        return axir.jit(lambda x: x * 3)

    assert in_threads(*[lambda: float(program()(2.0))] * 4) == [6.0] * 4
    assert len(compilations) == 1


def test_an_error_of_tracing_reaches_all_threads():
    traces = []

    @axir.jit
    def f(x):
        traces.append(x)
        time.sleep(0.2)
        raise ValueError("not today")

    results = in_threads(*[lambda: f(1.0)] * 4)
    assert [str(error) for error in results] == ["not today"] * 4
    assert len(traces) == 1
    with pytest.raises(ValueError, match="not today"):
        f(1.0)
    assert len(traces) == 2


def test_a_function_may_call_itself_on_something_smaller():
    @axir.jit
    def total(x):
        return x[0] if x.shape == (1,) else x[0] + total(x[1:])

    assert in_threads(*[lambda: float(total(jnp.arange(4.0)))] * 3) == [6.0] * 3


def test_functions_that_call_each_other_are_not_stuck():
    names = threading.local()

    @axir.jit
    def f(x):
        time.sleep(0.1)
        return g(x) + 1 if names.is_first else x

    @axir.jit
    def g(x):
        time.sleep(0.1)
        return x if names.is_first else f(x) + 1

    def call(function, is_first):
        names.is_first = is_first
        return float(function(1.0))

    results = in_threads(lambda: call(f, True), lambda: call(g, False))
    assert set(results) <= {1.0, 2.0}


def test_a_function_of_a_surrounding_trace_is_traced_by_each_thread():
    def outer(y):
        @axir.jit
        def times(x):
            return x * y

        return times(y + 1)

    gradients = in_threads(*[lambda: float(axir.grad(outer)(3.0))] * 4)
    assert gradients == [7.0] * 4

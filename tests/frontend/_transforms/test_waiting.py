"""Functions that do not wait for the compiler: the evaluator, then the program, errors."""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir.dialect.core.config import config
from axir.errors import CompileFailureWarning
from axir.runtime.calls.compiled_function import CompiledFunction
from axir.runtime.compiler.diagnostics import CompilerEndedError
from axir.runtime.compiler.helpers import helpers

X = jnp.arange(3.0)


@pytest.fixture
def gate(monkeypatch):
    """An event that compilations wait for."""
    event = threading.Event()
    compile_now = CompiledFunction._compile

    def compile_later(self):
        assert event.wait(60)
        return compile_now(self)

    monkeypatch.setattr(CompiledFunction, "_compile", compile_later)
    yield event
    event.set()


def unit_of(f) -> CompiledFunction:
    (unit,) = (e.compiled for e in f._entries.values() if e.compiled is not None)
    return unit


def taken_over(f) -> bool:
    unit = unit_of(f)
    if unit._making is not None:
        unit._making.wait()
    f(X)
    return unit._executable is not None


def test_the_evaluator_runs_calls_until_the_program_is_there(gate):
    f = axir.jit(lambda x: axir.jit(jnp.sin)(x) * 2 + X, wait=False)
    for _ in range(3):
        np.testing.assert_allclose(f(X), 2 * np.sin(X) + X, rtol=1e-6)
        assert unit_of(f)._executable is None
    gate.set()
    assert taken_over(f)
    np.testing.assert_allclose(f(X), 2 * np.sin(X) + X, rtol=1e-6)


def test_the_option_concerns_all_functions_and_their_gradients(gate):
    with config(axir_wait_for_compiler=False):
        f = axir.jit(lambda x: (x * x).sum())
        assert axir.grad(f)(X).tolist() == [0, 2, 4]
        assert f(X) == 5
        assert unit_of(f)._executable is None


def test_the_evaluator_gives_up_at_the_next_op_if_the_program_is_there(gate):
    values = []

    def look(x):
        values.append(len(values))
        if len(values) == 1:
            gate.set()
            unit_of(f)._making.wait()
        return x + 1

    @axir.jit
    def inner(x):
        return axir.pure_callback(look, x, x)

    f = axir.jit(lambda x: inner(inner(x)), wait=False)
    assert f(X).tolist() == [2, 3, 4]
    assert len(values) == 3  # once by the evaluator, twice by the program
    assert unit_of(f)._executable is not None


def test_effects_happen_once(gate):
    gate.set()
    seen = []

    def f(x):
        axir.debug.callback(seen.append, x[1])
        return x + 1

    g = axir.jit(f, wait=False)
    assert g(X).tolist() == [1, 2, 3]
    assert seen == [1]
    assert unit_of(g)._making is None


def test_donated_arguments_are_deleted(gate):
    f = axir.jit(lambda x: x + 1, donate_argnums=0, wait=False)
    for _ in range(2):
        x = jnp.arange(3.0)
        assert f(x).tolist() == [1, 2, 3]
        assert x.is_deleted()
        gate.set()
        unit_of(f)._making and unit_of(f)._making.wait()


def test_a_failure_is_one_warning_and_the_evaluator_stays(monkeypatch, tmp_path):
    event = threading.Event()

    def crash(*_):
        assert event.wait(60)
        raise CompilerEndedError("SIGSEGV", "")

    config.update("axir_cache_dir", str(tmp_path))
    config.update("axir_compiler", "iree")  # its failure is tested
    monkeypatch.setattr(helpers, "compile", crash)
    f = axir.jit(lambda x: x - 1, wait=False)
    assert f(X).tolist() == [-1, 0, 1]  # the line of the call that began it
    event.set()
    unit_of(f)._making.wait()
    with pytest.warns(CompileFailureWarning, match="is evaluated op by op in NumPy") as caught:
        assert f(X).tolist() == [-1, 0, 1]  # a line of the user's
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert "the line of the call that began it" in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert f(X).tolist() == [-1, 0, 1]


def test_threads_share_the_making(gate):
    f = axir.jit(lambda x: x * 3, wait=False)
    results = []
    threads = [threading.Thread(target=lambda: results.append(f(X))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [r.tolist() for r in results] == [[0, 3, 6]] * 4
    gate.set()
    assert taken_over(f)


def test_options_of_the_thread_hold_for_the_compiler():
    with config(axir_opt_level=0):
        f = axir.jit(lambda x: x * 3, wait=False)
        f(X)
        assert taken_over(f)


def test_the_interpreter_ends_quietly_while_the_compiler_runs(tmp_path):
    text = (
        "import axir, axir.numpy as jnp\n"
        f"axir.config.update('axir_cache_dir', {str(tmp_path)!r})\n"
        "f = axir.jit(lambda x: jnp.linalg.svd(x @ x)[1], wait=False)\n"
        "print(f(jnp.eye(3)))"
    )
    run = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr) == (0, "[1. 1. 1.]\n", "")

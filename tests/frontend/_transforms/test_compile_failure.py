"""Programs that do not compile, or do not fit into memory."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import lax
from axir.dialect.core.config import ConfigError, config
from axir.errors import CompileError, CompileFailureWarning, OutOfMemoryError
from axir.runtime.compiler.diagnostics import CompilerEndedError
from axir.runtime.compiler.helpers import helpers


@pytest.fixture
def broken_compiler(monkeypatch, tmp_path):
    def crash(*_):
        raise CompilerEndedError("SIGSEGV", "")

    config.update("axir_cache_dir", str(tmp_path))
    config.update("axir_compiler", "iree")  # only its failure is tested
    monkeypatch.setattr(helpers, "compile", crash)


def test_a_program_that_does_not_compile_is_evaluated_if_the_option_says_so(broken_compiler):
    inner = axir.jit(jnp.sin)

    @axir.jit
    def f(x):
        return lax.fori_loop(0, 3, lambda _, y: inner(y) + y, x), {"twice": 2 * x}

    with pytest.raises(CompileError, match=r"crashed \(SIGSEGV\)"):
        f(0.5)
    config.update("axir_on_compile_failure", "evaluate")
    with pytest.warns(CompileFailureWarning) as caught:
        total, rest = f(0.5)
    (warning,) = caught
    assert "'f' is evaluated op by op in NumPy, which is slow: IREE's" in str(warning.message)
    assert "total, rest = f(0.5)" in str(warning.message)
    assert warning.filename == __file__
    expected = 0.5
    for _ in range(3):
        expected += np.sin(expected)
    np.testing.assert_allclose(total, expected, rtol=1e-6)
    assert rest["twice"] == 1.0
    assert rest["twice"].weak_type
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert f(0.0)[0] == 0.0


def test_a_program_is_evaluated_with_donation_captures_and_effects(broken_compiler):
    config.update("axir_on_compile_failure", "evaluate")
    seen = []
    table = jnp.arange(3.0)

    def f(x):
        axir.debug.callback(seen.append, x[0])
        return x + table

    x = jnp.ones(3)
    with pytest.warns(CompileFailureWarning):
        y = axir.jit(f, donate_argnums=0)(x)
    assert y.tolist() == [1.0, 2.0, 3.0]
    assert x.is_deleted()
    assert seen == [1.0]


def test_the_option_knows_its_values():
    with pytest.raises(ConfigError, match="Legal values: 'raise', 'evaluate'"):
        config.update("axir_on_compile_failure", "ignore")
    with pytest.raises(ConfigError, match="Legal values: 'auto', 'always', 'never'"):
        config.update("axir_isolate_compiler", True)


def test_a_program_that_does_not_fit_into_the_memory_is_an_error():
    with pytest.raises(OutOfMemoryError, match="needs an array for which cpu:0 has no memory") as e:
        axir.jit(lambda: jnp.zeros((10**12,)))()
    assert isinstance(e.value, MemoryError)
    assert "smaller pieces" in e.value.way_out

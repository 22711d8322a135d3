"""Programs as machine code without IREE: cached, refused, and compiled by IREE if that fails."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import lax
from axir.dialect.core.config import config
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.function_tracing import trace_function
from axir.runtime.calls.compiled_function import CompiledFunction
from axir.runtime.calls.native_executable import NativeExecutable
from axir.runtime.compiler import native_compilation
from axir.runtime.compiler.diagnostics import CompilerEndedError
from axir.runtime.compiler.helpers import HelperStartError, helpers
from axir.runtime.compiler.invocation.native import NativeCompiler, NativeUnavailableError
from axir.runtime.device.devices import default_device

pytestmark = pytest.mark.chooses_compiler
X = np.arange(6, dtype=np.float32)
LOGGER = native_compilation.__name__


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path) -> Iterator[None]:
    config.update("axir_cache_dir", str(tmp_path / "cache"))
    yield
    native_compilation._unavailable.clear()


def compiled(function, x: np.ndarray = X) -> CompiledFunction:
    traced = trace_function(
        lambda x: axir.tree.leaves(function(x)), [ShapedArray(x.shape, x.dtype)], name="program"
    )
    return CompiledFunction(traced, default_device())


def is_native(function, x: np.ndarray = X) -> bool:
    made = compiled(function, x)
    [result] = made([axir.numpy.asarray(x)])
    np.testing.assert_allclose(result.host(), np.asarray(function(x)), rtol=1e-6)
    return isinstance(made._executable, NativeExecutable)


def count_kernels(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    made: list[bytes] = []
    run = native_compilation._run

    def counted(kernels, *rest):
        made.append(kernels)
        return run(kernels, *rest)

    monkeypatch.setattr(native_compilation, "_run", counted)
    return made


def test_an_equal_program_comes_from_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    made = count_kernels(monkeypatch)
    for _ in range(3):
        assert is_native(lambda x: x * 2 + 5)
    assert len(made) == 1
    assert is_native(lambda x: x * 2 + 6)
    assert len(made) == 2


def test_what_changes_the_code_changes_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    made = count_kernels(monkeypatch)
    assert is_native(lambda x: x * 2 + 7)
    here = native_compilation._environment()
    monkeypatch.setattr(native_compilation, "_environment", lambda: f"{here} another llvmlite")
    assert is_native(lambda x: x * 2 + 7)
    assert len(made) == 2


def test_the_option_takes_iree_for_all() -> None:
    with config(axir_compiler="iree"):
        assert not is_native(lambda x: x - 1)
    for choice in ("auto", "native"):
        with config(axir_compiler=choice):
            assert is_native(lambda x: x - 1)


def test_without_optimizations_programs_are_those_of_iree() -> None:
    with config(axir_opt_level=0):
        assert not is_native(lambda x: x - 2)


def test_why_a_program_is_no_kernel_is_logged_and_remembered(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_passes = native_compilation._kernel_of
    runs: list[None] = []
    monkeypatch.setattr(
        native_compilation, "_kernel_of", lambda *given: runs.append(None) or run_passes(*given)
    )
    large = np.ones((512, 512), np.float32)
    config.update("axir_on_compile_failure", "raise")
    with caplog.at_level(logging.INFO, LOGGER):
        for _ in range(2):
            compiled(lambda x: x @ x, large)
    said = [x.getMessage() for x in caplog.records if x.name == LOGGER]
    assert len(runs) == 1
    assert said.count("program is compiled by IREE: it is 0 kernels and stablehlo.dot_general") == 2


def test_without_llvmlite_all_is_iree_and_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(native_compilation, "_environment", lambda: None)
    with caplog.at_level(logging.WARNING, LOGGER):
        assert not is_native(lambda x: x + 11)
        assert not is_native(lambda x: x + 12)
    assert [x.getMessage() for x in caplog.records] == [
        "all programs are compiled by IREE, which takes longer: llvmlite is not installed, or this "
        "machine's processor is of another kind"
    ]


def test_llvmlite_that_does_not_load_in_the_helper_is_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def unavailable(*_):
        raise NativeUnavailableError("there is no llvmlite")

    monkeypatch.setattr(helpers, "compile_kernels", unavailable)
    with caplog.at_level(logging.WARNING, LOGGER):
        assert not is_native(lambda x: x + 13)
        assert not is_native(lambda x: x + 14)
    assert [x.getMessage() for x in caplog.records] == [
        "all programs are compiled by IREE, which takes longer: there is no llvmlite"
    ]


def test_a_missing_llvmlite_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "llvmlite.binding", None)
    with pytest.raises(NativeUnavailableError, match="llvmlite cannot be loaded: .*llvmlite"):
        NativeCompiler()


@pytest.mark.parametrize(
    ("crash", "reason"),
    [
        (CompilerEndedError("SIGSEGV", ""), "the compiler of kernels ended with SIGSEGV"),
        (HelperStartError("no more"), "no helper process compiles kernels: no more"),
    ],
)
def test_a_crash_is_a_warning_and_iree_compiles(
    crash: Exception, reason: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def crashing(*_):
        raise crash

    config.update("axir_isolate_compiler", "always")
    monkeypatch.setattr(helpers, "compile_kernels", crashing)
    with caplog.at_level(logging.WARNING, LOGGER):
        assert not is_native(lambda x: x + 15)
    assert f"program is compiled by IREE, for {reason}" in caplog.text


def test_a_kernel_that_llvm_refuses_is_a_warning_and_iree_compiles(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refusing(source, releases_lock, report):
        report("expected value token")

    monkeypatch.setattr(native_compilation, "_run", refusing)
    with caplog.at_level(logging.WARNING, LOGGER):
        assert not is_native(lambda x: x + 16)
    assert "for its kernel is not compiled: expected value token" in caplog.text


@pytest.mark.parametrize("mode", ["never", "always", "auto"])
def test_a_helper_compiles_or_this_process(mode: str) -> None:
    config.update("axir_isolate_compiler", mode)
    assert is_native(lambda x: x * 4 - 1)


def test_the_folder_for_dumps_gets_the_text_of_the_kernel(tmp_path: Path) -> None:
    config.update("axir_dump_dir", str(tmp_path / "dumps"))
    assert is_native(lambda x: x * 5 - 1)
    [kernel] = (tmp_path / "dumps").glob("program-*.kernel.mlir")
    assert "stream.binding" in kernel.read_text()


FUNCTIONS = [
    jnp.exp, jnp.log, jnp.sin, jnp.tan, jnp.sqrt, jnp.tanh, jnp.arcsin, jnp.cbrt,
    lax.erf, lax.erf_inv, lax.lgamma, lax.logistic, lambda x: x * x + x, lambda x: 1 / x,
]  # fmt: skip


def special(dtype: type) -> np.ndarray:
    least = np.finfo(dtype).smallest_subnormal
    numbers = [np.nan, np.inf, -np.inf, 0, -0.0, least, -1000 * least, np.finfo(dtype).max, 1, -1]
    drawn = np.random.default_rng(0).uniform(-4, 4, 200)
    return np.asarray([*numbers, *drawn], dtype)


def test_the_same_numbers_as_those_of_iree() -> None:
    """Bit by bit, except the signs of nan, which no standard defines."""
    made: list[list] = []
    with config(jax_enable_x64=True):
        for choice in ("iree", "auto"):
            results = []
            with config(axir_compiler=choice):
                for dtype in (np.float32, np.float64):
                    x = special(dtype)
                    program = compiled(lambda x: [f(x) for f in FUNCTIONS], x)
                    assert isinstance(program._executable, NativeExecutable) == (choice == "auto")
                    results += program([jnp.asarray(x)])
            made.append(results)
    for native, other in zip(*made, strict=True):
        words = np.uint32 if native.dtype == np.float32 else np.uint64
        bits = [np.where(np.isnan(x), 0, x.view(words)) for x in (native.host(), other.host())]
        np.testing.assert_array_equal(*bits)


def test_loops_round_as_those_of_iree() -> None:
    """A product and the sum that it is part of are rounded once in a loop, wherever it runs."""

    def looped(x):
        return lax.fori_loop(0, 30, lambda _, c: c * 1.01 + c / 3, x)

    made = []
    for choice in ("iree", "auto"):
        with config(axir_compiler=choice):
            [result] = compiled(looped, X + 0.3)([jnp.asarray(X + 0.3)])
            made.append(result.host())
    np.testing.assert_array_equal(*made)


def test_a_long_transform_is_two_kernels_and_nobody_tries_to_make_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    x = np.exp(1j * np.arange(1 << 16)).astype(np.complex64)
    with caplog.at_level(logging.INFO, logger=LOGGER):
        function = compiled(jnp.fft.fft, x)
    assert "program is compiled by IREE: its kernel runs in several workgroups" in caplog.messages
    assert isinstance(function._executable, NativeExecutable)
    [result] = function([jnp.array(x)])
    np.testing.assert_allclose(result, np.fft.fft(x), atol=1e-6 * x.size)

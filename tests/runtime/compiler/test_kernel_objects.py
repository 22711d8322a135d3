"""Large kernels are compiled separately, once for all programs, and two at once."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir.runtime.compiler import kernel_objects, native_compilation
from axir.runtime.compiler.diagnostics import CompilerEndedError

Job = Callable[[], tuple[bytes, ...] | None]


def test_kernels_of_another_program_are_not_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_objects, "_LARGE_BYTES", 1)
    texts: list[bytes] = []
    run = native_compilation._run

    def recorded(text: bytes, *rest: object) -> object:
        texts.append(text)
        return run(text, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(native_compilation, "_run", recorded)
    x = np.random.default_rng(0).normal(size=(256, 256)).astype(np.float32)
    with axir.config(axir_compiler="native"):
        first = axir.jit(lambda x: axir.nn.softmax(x @ x.T) * 2)(x)
        before = set(texts)
        second = axir.jit(lambda x: axir.nn.softmax(x @ x.T) - jnp.sort(x))(x)
    assert len(before) >= 2
    # The program only declares the kernel of products: its code is made once for a machine.
    compiled_again = before.intersection(texts[len(before) :])
    assert all(b"private @axir_products_" in text for text in compiled_again)
    assert all(text.count(b"func.func") == 1 for text in compiled_again)
    assert len(texts) > len(before)
    np.testing.assert_allclose(first / 2 - np.sort(x), second, rtol=1e-6, atol=1e-6)


def test_a_program_of_library_kernels_has_no_code_of_its_own() -> None:
    a = np.random.default_rng(0).normal(size=(129, 130)).astype(np.float32)
    found = []
    make = native_compilation.compile_objects

    def watched(*arguments: object) -> object:
        found.append(make(*arguments))  # type: ignore[arg-type]
        return found[-1]

    with pytest.MonkeyPatch.context() as patch, axir.config(axir_compiler="native"):
        patch.setattr(native_compilation, "compile_objects", watched)
        made = axir.jit(lambda a: a @ a.T)(a)
    np.testing.assert_allclose(made, a @ a.T, atol=1e-3)
    [program] = found
    assert not program.object_files
    assert len(program.libraries) == 2


def _all_of(jobs: dict[str, Job]) -> dict[str, tuple[bytes, ...] | None]:
    return kernel_objects._run_all({name: (100_000, job) for name, job in jobs.items()})


def test_two_kernels_are_compiled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_objects, "MAX_HELPERS", 2)
    both = threading.Barrier(2, timeout=20)

    def job() -> tuple[bytes, ...]:
        both.wait()
        return (threading.current_thread().name.encode(),)

    with axir.config(axir_isolate_compiler="auto"):
        made = _all_of({"a": job, "b": job})
    assert sorted(made) == ["a", "b"]
    assert made["a"] != made["b"]


def test_a_compiler_that_ends_is_said_by_whichever_thread_it_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kernel_objects, "MAX_HELPERS", 2)
    both = threading.Barrier(2, timeout=20)

    def good() -> tuple[bytes, ...]:
        both.wait()
        return (b"",)

    def bad() -> tuple[bytes, ...]:
        both.wait()
        raise CompilerEndedError("SIGSEGV", "")

    with axir.config(axir_isolate_compiler="auto"):
        for jobs in ({"a": good, "b": bad}, {"a": bad, "b": good}):
            with pytest.raises(CompilerEndedError):
                _all_of(jobs)

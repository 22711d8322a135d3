"""The library of transforms: programs call it, IREE gets kernels instead, and bits are the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.stablehlo_runner import build

import axir
import axir.numpy as jnp
from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.config import config
from axir.passes.framework.pipeline import run_passes
from axir.passes.legalize.fft.library import symbol_of, transform_library
from axir.passes.legalize.fft.rows import transform_of
from axir.runtime.compiler import native_compilation, transform_code
from axir.runtime.compiler.invocation import kept_code

pytestmark = pytest.mark.chooses_compiler
RNG = np.random.default_rng(3)


def draw(*shape: int, dtype: Any = np.complex64) -> np.ndarray:
    return (RNG.normal(size=shape) + 1j * RNG.normal(size=shape)).astype(dtype)


# Many radices; columns of pairs, with a last vector that reaches back; many rows; two kernels.
SIGNALS = draw(7 * 13 * 12), draw(3, 45, 33), draw(40, 11 * 20), draw(1 << 16)


def there(x: Any) -> Any:
    return jnp.fft.fft(x, axis=min(x.ndim - 1, 1))


def back(x: Any) -> Any:
    return jnp.fft.ifft(x, axis=min(x.ndim - 1, 1))


def on_parts(x: Any) -> Any:
    return jnp.fft.ifft2(jnp.fft.fft2(x * 2) * 1j) + 1


@pytest.mark.parametrize("is_wide", [False, True], ids=["single", "double"])
def test_bits_are_those_of_kernels_of_a_length(is_wide: bool) -> None:
    with axir.enable_x64(is_wide):
        signals = [x.astype(np.complex128 if is_wide else np.complex64) for x in SIGNALS]
        grid = signals[0].reshape(26, 42).repeat(4, 0)

        def program(grid: Any, *signals: Any) -> Any:
            return [(there, back)[n % 2](x) for n, x in enumerate(signals)], on_parts(grid)

        found = []
        for compiler in ("native", "iree"):
            with axir.config(axir_compiler=compiler):
                found.append(axir.tree_util.tree_leaves(axir.jit(program)(grid, *signals)))
        for ours, theirs in zip(*found, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        expected = np.fft.ifft2(np.fft.fft2(grid * 2) * 1j) + 1
        bound = 32 * np.finfo(grid.dtype).eps * np.abs(expected).max()
        assert np.abs(np.asarray(found[0][-1]) - expected).max() <= bound


def test_infinite_numbers_are_those_of_kernels_of_a_length() -> None:
    x = draw(1024)
    x[[3, 700]] = np.inf, complex(0, -np.inf)
    found = []
    for compiler in ("native", "iree"):
        with axir.config(axir_compiler=compiler):
            found.append(np.asarray(axir.jit(jnp.fft.fft)(x)))
    np.testing.assert_array_equal(*found)


def test_a_transform_is_a_call_until_iree_compiles_it() -> None:
    z = np.zeros(1 << 16, np.complex64)
    module = build({"f": ((z,), lambda z: hlo.fft(z, "FFT", (1 << 16,)))})
    run_passes(module, "expand-fft")
    text = str(module)
    assert text.count("flow.dispatch @axir_transform_f32_16") == 2
    assert "scf.for" not in text
    run_passes(module, "write-transforms")
    text = str(module)
    assert "axir" not in text
    assert text.count("flow.dispatch @fft_") == 2


def test_long_butterflies_have_kernels_of_their_length() -> None:
    z = np.zeros(17 * 16 * 16, np.complex64)
    module = build({"f": ((z,), lambda z: hlo.fft(z, "FFT", z.type.shape))})
    run_passes(module, "expand-fft")
    assert "axir_transform" not in str(module)
    assert "flow.dispatch @fft_" in str(module)


def test_transforms_as_text() -> None:
    for text in (
        "columns 16 0.5 1 0 2 64 32",
        "turned-rows 8 1.0 0 0 1 8 8",
        "rows 8 1.0 2 1 3 8 9",
    ):
        transform = transform_of(text)
        assert transform_of(str(transform)) == transform


# Machine code ------------------------------------------------------------------------------------


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Nothing is compiled yet."""
    config.update("axir_cache_dir", str(tmp_path / "cache"))
    folder = tmp_path / "__pycache__"
    monkeypatch.setattr(kept_code.importlib.util, "cache_from_source", lambda _: f"{folder}/x.pyc")
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    monkeypatch.setattr(transform_code, "_made", {})
    return folder


def test_the_library_is_compiled_once_for_a_machine(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[bytes] = []
    run = native_compilation._run_library

    def counted(text: bytes, report: Callable[[str], None]) -> bytes | None:
        compiled.append(text)
        return run(text, report)

    monkeypatch.setattr(native_compilation, "_run_library", counted)
    name = symbol_of("f32", 16)
    with axir.config(axir_compiler="native"):
        for length in (1024, 1280):
            x = draw(length)
            np.testing.assert_allclose(axir.jit(jnp.fft.fft)(x), np.fft.fft(x), atol=1e-3)
        monkeypatch.setattr(transform_code, "_made", {})  # as in another process
        axir.jit(jnp.fft.ifft)(draw(2048))
    assert compiled == [transform_library(name).encode()]
    assert len(list(fresh.glob(f"{name}-*.code"))) == 1


def test_a_library_that_does_not_compile_leaves_the_program_to_iree(
    fresh: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(
        "axir.passes.legalize.fft.library.transform_library", lambda name: "define nothing"
    )
    x = draw(1536)
    with axir.config(axir_compiler="native"):
        np.testing.assert_allclose(axir.jit(jnp.fft.fft)(x), np.fft.fft(x), atol=1e-3)
    lines = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert "fft is compiled by IREE, for its kernel is not compiled: LLVM IR" in lines[0]
    assert not list(fresh.glob("axir_transform*"))

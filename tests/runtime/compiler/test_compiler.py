"""Compiling: flags, the choice of data tiling, dumps, and the errors of failures."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest
from iree.compiler import ir

from axir.dialect.core.config import config
from axir.dialect.core.errors import ParameterError
from axir.runtime import CompileError, Program, Target, compile_module, devices
from axir.runtime.compiler import architectures, binaries
from axir.runtime.compiler.analysis import wants_data_tiling
from axir.runtime.compiler.diagnostics import Diagnostic, compile_error

ADD = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
CHOLESKY = """
func.func @main(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {{
  %0 = "stablehlo.cholesky"(%x) {{lower = true}} : (tensor<3x3xf32>) -> tensor<3x3xf32> {location}
  return %0 : tensor<3x3xf32>
}}
"""


def dot(lhs: str, rhs: str, result: str) -> str:
    return f"""
    func.func @main(%x: tensor<{lhs}>, %y: tensor<{rhs}>) -> tensor<{result}> {{
      %0 = stablehlo.dot %x, %y : (tensor<{lhs}>, tensor<{rhs}>) -> tensor<{result}>
      return %0 : tensor<{result}>
    }}"""


def dot_general(lhs: str, rhs: str, result: str, numbers: str) -> str:
    return f"""
    func.func @main(%x: tensor<{lhs}>, %y: tensor<{rhs}>) -> tensor<{result}> {{
      %0 = stablehlo.dot_general %x, %y, {numbers}
        : (tensor<{lhs}>, tensor<{rhs}>) -> tensor<{result}>
      return %0 : tensor<{result}>
    }}"""


def run(text: str, *arrays: np.ndarray, target: Target | None = None) -> list[np.ndarray]:
    device = devices("cpu")[0]
    executable = Program(compile_module(text, target or Target()), device).function()
    return [buffer.to_numpy() for buffer in executable([device.put(array) for array in arrays])]


def test_text_and_bytecode_compile_alike(tmp_path):
    config.update("axir_cache_dir", str(tmp_path))
    context = ir.Context()
    bytecode_file = tmp_path / "module.mlirbc"
    with bytecode_file.open("wb") as file:
        ir.Module.parse(ADD, context).operation.write_bytecode(file)
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(run(ADD, x)[0], 2 * x)
    np.testing.assert_array_equal(run(bytecode_file.read_bytes(), x)[0], 2 * x)


@pytest.mark.parametrize("opt_level", [0, 1, 2, 3])
def test_every_level_computes_the_same(opt_level):
    text = """
    func.func @main(%x: tensor<64x96xf32>, %y: tensor<96x64xf32>) -> tensor<64xf32> {
      %0 = stablehlo.dot %x, %y : (tensor<64x96xf32>, tensor<96x64xf32>) -> tensor<64x64xf32>
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
      return %1 : tensor<64xf32>
    }"""
    rng = np.random.default_rng(opt_level)
    x, y = (rng.standard_normal(s).astype(np.float32) for s in ((64, 96), (96, 64)))
    expected = (x.astype(np.float64) @ y).sum(1)
    result = run(text, x, y, target=Target(opt_level=opt_level))[0]
    np.testing.assert_allclose(result, expected, atol=64 * 6e-8 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("cpu", "bits"),
    [
        ("generic", 128),
        ("x86-64-v2", 128),
        ("x86-64-v3", 256),
        ("znver3", 256),
        ("x86-64-v4", 512),
        ("znver5", 512),
        ("icelake-server", 512),
        ("cortex-a72", 128),
    ],
)
def test_vectors_of_a_cpu(cpu, bits):
    assert Target(cpu=cpu).vector_bits == bits


@pytest.mark.parametrize(
    ("flags", "bits"),
    [
        ("sse2 avx", 128),
        ("avx avx2 fma", 256),
        ("avx2 fma avx512f", 256),
        ("avx2 fma avx512f avx512vl avx512dq avx512bw", 512),
        ("", 128),
    ],
)
def test_vectors_of_this_cpu(monkeypatch, flags, bits):
    monkeypatch.setattr(architectures, "host_cpu_flags", lambda: frozenset(flags.split()))
    assert Target().vector_bits == bits


def test_f64_and_i64_are_never_demoted():
    for level in (0, 2):
        flags = Target(opt_level=level).flags()
        assert "--iree-input-demote-f64-to-f32=false" in flags
    text = ADD.replace("4xf32", "4xf64")
    x = np.array([1 + 2**-50, 1e300, 0.1, -0.0])
    np.testing.assert_array_equal(run(text, x)[0], 2 * x)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (dot("1024x1024xf32", "1024x1024xf32", "1024x1024xf32"), True),
        (dot("64x64xf32", "64x64xf32", "64x64xf32"), False),
        (dot("512x512xf32", "512x512xf32", "512x512xf32"), False),
        (dot("4096x4096xf32", "4096xf32", "4096xf32"), False),
        (dot("1024x1024xcomplex<f32>", "1024x1024xcomplex<f32>", "1024x1024xcomplex<f32>"), False),
        (dot("1024x1024xi32", "1024x1024xi32", "1024x1024xi32"), False),
        (
            dot_general(
                "8x1024x1024xf32",
                "8x1024x1024xf32",
                "8x1024x1024xf32",
                "batching_dims = [0] x [0], contracting_dims = [2] x [2]",
            ),
            True,
        ),
        (
            dot_general(
                "512x1024x1xf32",
                "512x1024x1xf32",
                "512x1x1xf32",
                "batching_dims = [0] x [0], contracting_dims = [1] x [1]",
            ),
            False,
        ),
        (ADD, False),
    ],
)
def test_data_tiling_is_for_large_real_matrix_products(text, expected):
    module = ir.Module.parse(text, ir.Context())
    assert wants_data_tiling(module) is expected


def test_a_large_matrix_vector_product_forbids_data_tiling():
    module = ir.Module.parse(
        """
        func.func @main(%x: tensor<1024x1024xf32>, %y: tensor<1024xf32>) -> tensor<1024xf32> {
          %0 = stablehlo.dot %x, %x
            : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
          %1 = stablehlo.dot %0, %y : (tensor<1024x1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
          return %1 : tensor<1024xf32>
        }""",
        ir.Context(),
    )
    assert not wants_data_tiling(module)


def test_the_caller_overrides_the_choice_of_data_tiling():
    tiling = "--iree-opt-data-tiling"
    assert tiling in Target().flags(wants_data_tiling=True)
    assert tiling not in Target(data_tiling=False).flags(wants_data_tiling=True)
    assert tiling in Target(data_tiling=True).flags()


@pytest.mark.parametrize("options", [{"backend": "tpu"}, {"opt_level": 4}])
def test_targets_that_do_not_exist_are_refused(options):
    with pytest.raises(ParameterError, match="There is no"):
        Target(**options)


@pytest.mark.parametrize("backend", ["vulkan", "cuda"])
def test_gpu_targets_compile_without_a_gpu(backend):
    assert len(compile_module(ADD, Target(backend=backend))) > 1000


def test_a_failure_names_the_cause_the_line_and_the_reproducer(tmp_path):
    config.update("axir_cache_dir", str(tmp_path / "cache"))
    source = tmp_path / "model.py"
    source.write_text("import numpy\n\nfactor = cholesky(covariance)\n")
    with pytest.raises(CompileError) as caught:
        compile_module(CHOLESKY.format(location=f'loc("{source}":3:10)'), Target(), "model")
    text = str(caught.value)
    assert "failed to legalize operation 'stablehlo.cholesky'" in text
    assert f"at {source}:3: factor = cholesky(covariance)" in text
    assert "Evaluate the function without jit" in text
    assert "%" not in text
    assert len(text.splitlines()) <= 5
    assert "stablehlo.cholesky" in "".join(caught.value.diagnostics)
    saved = list((tmp_path / "cache" / "failures").iterdir())
    assert sorted(file.suffix for file in saved) == [".mlir", ".txt"]
    for file in saved:
        content = file.read_text()
        assert ("stablehlo.cholesky" if file.suffix == ".mlir" else "iree-compile ") in content


def test_a_module_that_does_not_parse_names_its_line():
    with pytest.raises(CompileError, match="'stablehlo.additon' is unknown") as caught:
        compile_module(ADD.replace("stablehlo.add", "stablehlo.additon"), Target())
    assert "line 3 of the module" in str(caught.value)


def test_the_dump_folder_receives_what_reproduces_a_failure(tmp_path):
    config.update("axir_dump_dir", str(tmp_path))
    with pytest.raises(CompileError, match="cholesky"):
        compile_module(CHOLESKY.format(location=""), Target(), "model")
    (module,) = tmp_path.glob("failed-model-*.mlir")
    (command_file,) = tmp_path.glob("failed-model-*.command.txt")
    assert module.name in command_file.read_text()


def test_the_dump_folder_receives_every_module_and_a_command_that_works(tmp_path):
    config.update("axir_dump_dir", str(tmp_path))
    compile_module(ADD, Target(), "double")
    (module,) = tmp_path.glob("double-*.mlir")
    assert module.read_text() == ADD
    program, *arguments = module.with_suffix(".command.txt").read_text().split()
    assert program == "iree-compile"
    entry_point = [sys.executable, "-m", "iree.compiler.tools.scripts.iree_compile"]
    subprocess.run([*entry_point, *arguments], cwd=tmp_path, check=True)
    assert module.with_suffix(".vmfb").stat().st_size > 1000


def test_a_program_that_fails_to_compile_optimized_is_compiled_plainly():
    complex_dot = dot("16x16xcomplex<f32>", "16x16xcomplex<f32>", "16x16xcomplex<f32>")
    rng = np.random.default_rng(0)
    parts = rng.standard_normal((2, 16, 16)).astype(np.float32)
    x = (parts[0] + 1j * parts[1]).astype(np.complex64)
    # IREE does not compile complex products with data tiling.
    result = run(complex_dot, x, x, target=Target(data_tiling=True))[0]
    np.testing.assert_allclose(result, x @ x, atol=1e-5)


def test_the_bundled_linker_serves_where_the_system_has_none(tmp_path, monkeypatch):
    config.update("axir_cache_dir", str(tmp_path))
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "ld" else which(name))
    binaries.linker_flags.cache_clear()
    try:
        text = ADD.replace("stablehlo.add %x, %x", "stablehlo.sine %x").replace("f32", "f64")
        x = np.array([0.1, -2.0, 30.0, 1e5])
        np.testing.assert_allclose(run(text, x)[0], np.sin(x), rtol=2.3e-16)
        assert len(list(tmp_path.glob("linker-*.sh"))) == 1
    finally:
        binaries.linker_flags.cache_clear()


def test_threads_compile_side_by_side(tmp_path):
    config.update("axir_cache_dir", str(tmp_path))
    results: dict[int, np.ndarray] = {}

    def work(size: int) -> None:
        results[size] = run(ADD.replace("4xf32", f"{size}xf32"), np.ones(size, np.float32))[0]

    threads = [threading.Thread(target=work, args=(size,)) for size in (3, 5, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {size: result.tolist() for size, result in results.items()} == {
        size: [2.0] * size for size in (3, 5, 7)
    }


def test_diagnostics_without_a_location_or_a_reproducer():
    diagnostic = Diagnostic.parse("the linker is missing")
    assert (diagnostic.file, diagnostic.summary) == (None, "the linker is missing")
    text = str(compile_error([diagnostic], None))
    assert "set axir_dump_dir" in text
    assert "it gave no reason" in str(compile_error([], None))


def test_long_diagnostics_are_cut():
    diagnostic = Diagnostic.parse('"a.py":1:2: ' + "word " * 100)
    assert diagnostic.file == "a.py"
    assert len(diagnostic.summary) <= 201

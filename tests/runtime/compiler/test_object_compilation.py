"""Object files of kernels, and the programs that call them, in a helper and in this process."""

from __future__ import annotations

import pytest

from axir.dialect.core.config import config
from axir.dialect.text.parsing import parse_module
from axir.runtime import CompileError, Target
from axir.runtime.compiler.compilation import compile_object
from axir.runtime.compiler.function_compilation import take_result_storage

TEXT = """
func.func @first(%x: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %0 = stablehlo.dot %x, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = stablehlo.tanh %x : tensor<64x64xf32>
  return %0, %1 : tensor<64x64xf32>, tensor<64x64xf32>
}
"""


@pytest.mark.parametrize("mode", ["never", "always"])
def test_kernels_are_in_the_object_file_and_what_calls_them_in_the_text(mode, tmp_path):
    config.update("axir_cache_dir", str(tmp_path))
    config.update("axir_isolate_compiler", mode)
    module = parse_module(TEXT.encode(), "test")
    program, kernels = compile_object(module, Target(linkage="object"), "some_prefix")
    assert kernels.startswith(b"\x7fELF")
    assert b"some_prefix_linked_library_query\0" in kernels
    assert b".debug" not in kernels  # nor paths of the machine that wrote it
    assert "util.func public @first" in program
    assert "stream.cmd.dispatch @some_prefix" in program
    assert "llvm." not in program  # no code of kernels
    again = compile_object(module, Target(linkage="object"), "some_prefix")
    assert again == (program, kernels)
    assert compile_object(module, Target(linkage="object"), "another_one")[0] != program


def test_results_have_arguments_for_their_memory(tmp_path):
    module = parse_module(TEXT.encode(), "test")
    take_result_storage(module, {"first": {1}})
    (function,) = module.body.operations
    assert str(function.attributes["function_type"]).count("tensor<64x64xf32>") == 4
    assert str(function.attributes["arg_attrs"]) == "[{}, {iree.abi.output = 0 : index}]"


def test_a_module_that_does_not_compile_is_an_error(tmp_path):
    config.update("axir_cache_dir", str(tmp_path))
    text = "func.func @f(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {\n" + (
        "  %0 = stablehlo.cholesky %x : tensor<4x4xf32>\n  return %0 : tensor<4x4xf32>\n}"
    )
    with pytest.raises(CompileError, match="stablehlo.cholesky"):
        compile_object(parse_module(text.encode(), "test"), Target(linkage="object"), "broken")

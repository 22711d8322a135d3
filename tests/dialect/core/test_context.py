"""The MLIR context, and the modules with classes of operations."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from iree.compiler import ir
from iree.compiler._mlir_libs import _mlir

from axir.dialect.core import dialect_modules
from axir.dialect.core.context import context, internal_folders


def test_tests_and_examples_of_a_clone_are_a_users_whatever_its_name(tmp_path: Path) -> None:
    clone = tmp_path / "axir"
    (clone / "frontend").mkdir(parents=True)
    folders = internal_folders(clone)
    assert f"{clone}/frontend/lax.py".startswith(folders)
    assert f"{clone}/dialect/core/errors.py".startswith(folders)
    assert not f"{clone}/examples/digits.py".startswith(folders)


def test_all_files_of_an_installed_package_are_its_own(tmp_path: Path) -> None:
    folders = internal_folders(tmp_path / "axir")
    assert f"{tmp_path}/axir/numpy/__init__.py".startswith(folders)
    assert not f"{tmp_path}/axir_tools.py".startswith(folders)


MODULE = """
func.func @main(%x: f32) -> f32 {
  %0 = arith.negf %x : f32
  %1 = "axir_test.unknown"(%0) : (f32) -> f32
  return %1 : f32
}
"""


def test_operations_are_wrapped_without_the_classes_of_their_dialects():
    assert _mlir.globals.dialect_search_modules[0] == dialect_modules.__name__
    for name in ("vm", "stream", "arith", "stablehlo"):
        empty = import_module(f"{dialect_modules.__name__}.{name}")
        assert not [key for key in vars(empty) if not key.startswith("__")]
    module = ir.Module.parse(MODULE, context())
    (function,) = module.body.operations
    names = [op.operation.name for op in function.regions[0].blocks[0].operations]
    assert names == ["arith.negf", "axir_test.unknown", "func.return"]


def test_who_imports_a_module_of_the_wheel_has_its_classes():
    arith = import_module("iree.compiler.dialects.arith")
    module = ir.Module.parse(MODULE, context())
    (function,) = module.body.operations
    negation = function.regions[0].blocks[0].operations[0]
    assert isinstance(negation, arith.NegFOp)

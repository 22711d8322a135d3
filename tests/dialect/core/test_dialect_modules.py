"""Empty modules in place of the wheel's modules with unused classes."""

from __future__ import annotations

from importlib import import_module

from iree.compiler import ir
from iree.compiler._mlir_libs import _mlir

from axir.dialect.core import dialect_modules
from axir.dialect.core.context import context

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

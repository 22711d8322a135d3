"""Empty modules in place of the modules with dialects' operation classes, which axir does not use.

The bindings of MLIR look for such a module whenever they first wrap an operation or an attribute of
a dialect: `iree.compiler.dialects.vm` takes 25 ms to import, `stream` 10, `flow` 5. For a missing
module they search the disk each time: 100 us instead of 0.1. An import of one of the wheel's
modules still returns it, with its classes (`bindings_of`).
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

from iree.compiler._mlir_libs import _mlir

_WITHOUT_CLASSES = ("jaxpr", "stablehlo", "chlo", "mhlo", "vhlo")
# The wheel's dialects that occur in axir's modules, at any stage of compiling.
_NOT_NEEDED = (
    "affine",
    "arith",
    "cf",
    "complex",
    "flow",
    "hal",
    "iree_codegen",
    "iree_tensor_ext",
    "linalg",
    "llvm",
    "math",
    "memref",
    "scf",
    "shape",
    "stream",
    "tensor",
    "util",
    "vector",
    "vm",
)


def offer() -> None:
    """Lets the bindings find the empty modules before the wheel's modules."""
    for name in (*_WITHOUT_CLASSES, *_NOT_NEEDED):
        full_name = f"{__name__}.{name}"
        sys.modules[full_name] = ModuleType(full_name, "Empty: see the module above.")
    _mlir.globals.dialect_search_modules = [__name__, *_mlir.globals.dialect_search_modules]


def bindings_of(dialect: str) -> ModuleType | None:
    """Returns the module with the classes of a dialect's operations; None if absent."""
    try:
        return importlib.import_module(f"iree.compiler.dialects.{dialect}")
    except ModuleNotFoundError:
        return None

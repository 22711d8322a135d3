"""Analyzes a module before it is compiled: its identity, and the flags that suit it.

Elsewhere: compiling it (`compilation.py`), rewriting it (`axir.passes`).
"""

from __future__ import annotations

import math
import re
import threading
from functools import cache

from iree.compiler import ir

from axir.runtime.device.process_state import call_in_forked_child

from .invocation.invoker import BYTECODE_MAGIC
from .target import Target

# A matrix product this large gains from data tiling; the packing of a smaller one costs as much.
_TILED_EXTENT = 128
_TILED_PRODUCTS = 1 << 24
# Matrices of fewer elements (2 MB of f32) stay in a core's cache in any order: a training step of
# an MLP 784-512-512-10 takes 20% longer on two cores with data tiling.
_TILED_MATRIX = 1 << 19
# A matrix-vector product of this size or more loses more to packing its matrix than all other
# products gain.
_LARGE_MATRIX = 1 << 16

_analysis_lock = threading.Lock()


def _renew_lock() -> None:
    global _analysis_lock
    _analysis_lock = threading.Lock()


call_in_forked_child(_renew_lock)


@cache
def _analysis_context() -> ir.Context:
    # A context separate from the process-wide one, so that parsed modules leave nothing behind.
    context = ir.Context()
    context.allow_unregistered_dialects = True
    context.enable_multithreading(False)
    return context


def analyze(source: ir.Module | bytes, target: Target) -> tuple[bytes, bool]:
    """Returns the module's text without source locations, and whether data tiling pays."""
    may_tile = target.backend == "cpu" and target.opt_level >= 2 and target.data_tiling is None
    if isinstance(source, ir.Module):
        return _analyze_module(source, may_tile)
    is_located = source.startswith(BYTECODE_MAGIC) or b"loc(" in source
    if not is_located and not (may_tile and b"stablehlo.dot" in source):
        return source, False
    with _analysis_lock:
        context = _analysis_context()
        with context.transient_scope():
            return _analyze_parsed(source, context, may_tile)


def _analyze_parsed(source: bytes, context: ir.Context, may_tile: bool) -> tuple[bytes, bool]:
    try:
        module = ir.Module.parse(source, context)
    except ir.MLIRError:
        return source, False  # the compiler reports it, with its location
    return _analyze_module(module, may_tile)


def _analyze_module(module: ir.Module, may_tile: bool) -> tuple[bytes, bool]:
    is_tiled = may_tile and wants_data_tiling(module)
    text = module.operation.get_asm(enable_debug_info=False, assume_verified=True)
    return text.encode(), is_tiled


def wants_data_tiling(module: ir.Module) -> bool:
    """Tells whether the module's matrix products gain from data tiling on a CPU.

    True if a real floating-point product has at least 2^24 multiplications, a matrix of 2^19
    elements and no short extent, and the module has no large matrix-vector product and no complex
    product (which does not compile with data tiling).
    """
    products: list[tuple[ir.Type, int, int, int, int]] = []

    def collect(operation: ir.Operation) -> ir.WalkResult:
        if operation.name in ("stablehlo.dot_general", "stablehlo.dot"):
            products.append(_product_extents(operation))
        return ir.WalkResult.ADVANCE

    module.operation.walk(collect)
    gains = False
    for element_type, batch, rows, columns, contracted in products:
        if isinstance(element_type, ir.ComplexType):
            return False
        if min(rows, columns) == 1 and max(rows, columns) * contracted * batch > _LARGE_MATRIX:
            return False
        is_wide = min(rows, columns, contracted) >= _TILED_EXTENT
        largest = max(rows * columns, rows * contracted, columns * contracted)
        is_large = batch * rows * columns * contracted >= _TILED_PRODUCTS
        is_large &= largest >= _TILED_MATRIX
        gains |= is_wide and is_large and isinstance(element_type, ir.FloatType)
    return gains


def _product_extents(operation: ir.Operation) -> tuple[ir.Type, int, int, int, int]:
    """Returns the left element type and the extents: batch, rows, columns, contracted."""
    lhs, rhs = (ir.RankedTensorType(operand.type) for operand in operation.operands)
    numbers: dict[str, list[int]] = {
        "lhs_batching": [],
        "lhs_contracting": [],
        "rhs_batching": [],
        "rhs_contracting": [],
    }
    if operation.name == "stablehlo.dot":
        numbers |= {"lhs_contracting": [lhs.rank - 1], "rhs_contracting": [0]}
    else:
        text = str(operation.attributes["dot_dimension_numbers"])
        for name in numbers:
            match = re.search(rf"{name}_dimensions = \[([\d, ]*)\]", text)
            numbers[name] = [int(n) for n in match[1].split(",") if n.strip()] if match else []
    batch = math.prod(lhs.shape[axis] for axis in numbers["lhs_batching"])
    contracted = math.prod(lhs.shape[axis] for axis in numbers["lhs_contracting"])
    rows = math.prod(lhs.shape) // max(1, batch * contracted)
    columns = math.prod(rhs.shape) // max(1, batch * contracted)
    return lhs.element_type, batch, rows, columns, contracted

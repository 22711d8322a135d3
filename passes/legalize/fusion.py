"""Which operations IREE fuses into one dispatch, by kind.

Here: sets of names that several passes use, and the question whether an operation sums up.
Elsewhere: the operations that IREE computes element by element (`rewriting.py`), and the results
that share storage with an operand (`buffers/storage.py`).
"""

from __future__ import annotations

from iree.compiler import ir


def _stablehlo(names: str) -> frozenset[str]:
    return frozenset(f"stablehlo.{name}" for name in names.split())


VIEWS = _stablehlo("broadcast_in_dim reshape transpose")
"""Operations that IREE moves through elementwise operations, or folds into their readers."""
SLICES = _stablehlo("slice dynamic_slice")
"""Operations that readers read in place, with an offset and strides."""
MOVES = _stablehlo("concatenate gather pad reverse scatter slice")
"""Operations that IREE fuses with the conversions that compute their operands."""
REDUCTIONS = _stablehlo("dot_general reduce")
"""Operations that IREE fuses with the elementwise operations that read their results."""
WINDOWED = _stablehlo("convolution reduce_window")
"""Reductions of windows, which IREE fuses likewise."""
CALL = "func.call"
"""Calls, which may hold any operation, because IREE inlines the called functions."""


def sums_up(operation: ir.Operation) -> bool:
    """Tells whether an operation is a reduction, a product, or a loop with a reduction."""
    if operation.name == "linalg.generic":
        return "reduction" in str(operation.attributes["iterator_types"])
    return operation.name in REDUCTIONS

"""Gives conversions of floats to integers a value for every number, so that nan stays nan.

LLVM leaves open what a conversion makes of nan or of a number that no integer holds: it is poison,
and so is what is computed of it. IREE's exponential converts its exponent, and multiplies by the
power of two that it makes of that. Where LLVM knew the operand, as in `exp(x * nan)`, the whole
function was poison, and the result whatever lay in a register, 0 as a rule. A frozen result is some
integer, and the product with nan is nan again. Machines give some integer anyway, so it costs no
instruction. Elsewhere: what StableHLO says of conversions (`axir.passes.legalize.numbers`); when
the compiler stops for this (`invoker.py`).
"""

from __future__ import annotations

from iree.compiler import ir

_CONVERSIONS = frozenset(("llvm.fptosi", "llvm.fptoui"))


def freeze_conversions(module: ir.Operation) -> None:
    """Freezes what is converted to integers in a module of the phase `executable-targets`."""
    found: list[ir.Operation] = []

    def collect(operation: ir.Operation) -> ir.WalkResult:
        if operation.name in _CONVERSIONS:
            found.append(operation)
        return ir.WalkResult.ADVANCE

    module.walk(collect)
    for conversion in found:
        _freeze(conversion)


def _freeze(conversion: ir.Operation) -> None:
    (result,) = conversion.results
    with ir.InsertionPoint.after(conversion), conversion.location:
        frozen = ir.Operation.create("llvm.freeze", [result.type], [result])
    result.replace_all_uses_except(frozen.results[0], frozen)

"""Gives conversions of floats to integers a value for every number, so that nan stays nan.

LLVM leaves the result of converting nan, or a number that no integer holds, undefined: it is
poison, and so is every value computed from it. IREE's exponential converts its exponent to an
integer, and multiplies by that power of two. Where LLVM knew the operand, as in `exp(x * nan)`, the
whole function was poison, and the result was the content of some register, usually 0. A frozen
result is some integer, and the product with nan is nan again. Processors give some integer anyway,
so freezing costs no instruction. Elsewhere: StableHLO's rules for conversions
(`axir.passes.legalize.numbers`); when the compiler stops for this (`invoker.py`).
"""

from __future__ import annotations

from iree.compiler import ir

_CONVERSIONS = frozenset(("llvm.fptosi", "llvm.fptoui"))


def freeze_conversions(module: ir.Operation) -> None:
    """Freezes conversions to integers in a module of the phase `executable-targets`."""
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

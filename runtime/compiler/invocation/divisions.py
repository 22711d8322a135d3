"""Divides vectors of integers in floating point, for which processors have vector instructions.

Processors divide single integers only, and LLVM splits a vector into its elements for that: 1.9 ns
an element, and 0.5 ns in this way (AMD EPYC with AVX-512). A quotient that is not an integer
differs from the next integer by one part of the divisor or more, which is 2**-32 of its size where
the dividend has 32 bits. Rounding to f64 changes it by 2**-53 of its size, so it does not reach
that integer.

IREE's LLVM does the same; llvmlite's LLVM is older. Elsewhere: division by zero, and overflow,
which kernels exclude (`axir.passes.fuse.elementwise`).
"""

from __future__ import annotations

from iree.compiler import ir

_DIVISIONS = {f"llvm.{sign}{kind}": sign for sign in "su" for kind in ("div", "rem")}
_MOST_BITS = 32


def divide_vectors(module: ir.Operation) -> None:
    """Rewrites divisions and remainders in a module of the dialect `llvm`, in place."""
    found: list[ir.Operation] = []

    def collect(operation: ir.Operation) -> ir.WalkResult:
        if operation.name in _DIVISIONS and _is_narrow_vector(operation.results[0].type):
            found.append(operation)
        return ir.WalkResult.ADVANCE

    module.walk(collect)
    for division in found:
        with ir.InsertionPoint(division), division.location:
            result = _divided(division)
        division.results[0].replace_all_uses_with(result)
        division.erase()


def _is_narrow_vector(kind: ir.Type) -> bool:
    if not isinstance(kind, ir.VectorType):
        return False
    return isinstance(kind.element_type, ir.IntegerType) and kind.element_type.width <= _MOST_BITS


def _divided(division: ir.Operation) -> ir.Value:
    kind = division.results[0].type
    sign = _DIVISIONS[division.name]
    dividend, divisor = division.operands
    wide = ir.VectorType.get(kind.shape, ir.F64Type.get())
    doubles = [_made(f"llvm.{sign}itofp", wide, x) for x in (dividend, divisor)]
    quotient = _made(f"llvm.fpto{sign}i", kind, _made("llvm.fdiv", wide, *doubles))
    if division.name.endswith("div"):
        return quotient
    return _made("llvm.sub", kind, dividend, _made("llvm.mul", kind, quotient, divisor))


def _made(name: str, kind: ir.Type, *operands: ir.Value) -> ir.Value:
    return ir.Operation.create(name, results=[kind], operands=list(operands)).results[0]

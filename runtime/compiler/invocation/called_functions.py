"""Keeps LLVM from inlining the functions that kernels call.

A kernel that needs a formula of a hundred operations hundreds of times calls a function instead
(`dialect/builders/kernels/functions.py`). LLVM's inliner considers such a function small, and the
code of hundreds of inlined calls keeps the later passes busy for seconds. Elsewhere: when the
compiler stops for this (`invoker.py`).
"""

from __future__ import annotations

from iree.compiler import ir

# As in `dialect/builders/kernels/functions.py`, which a helper process does not load.
FUNCTION_MARK = "_function_"


def keep_functions(module: ir.Operation) -> int:
    """Forbids LLVM to inline the functions of kernels, in the phase `executable-targets`.

    Returns:
        The number of functions marked.
    """
    functions: list[ir.Operation] = []

    def collect(operation: ir.Operation) -> ir.WalkResult:
        if operation.name != "llvm.func":
            return ir.WalkResult.ADVANCE
        if FUNCTION_MARK in ir.StringAttr(operation.attributes["sym_name"]).value:
            functions.append(operation)
        return ir.WalkResult.SKIP

    module.walk(collect, ir.WalkOrder.PRE_ORDER)
    for function in functions:
        context = function.context
        function.attributes["passthrough"] = ir.Attribute.parse('["noinline"]', context)
        function.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<internal>", context)
    return len(functions)

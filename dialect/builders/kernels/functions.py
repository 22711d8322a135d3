"""Functions of a kernel: code on numbers that is built once and called in many places.

If a kernel contains a formula of a hundred operations hundreds of times, the compiler takes
minutes. Elsewhere: the choice between calling and inlining a formula
(`passes/fuse/elementwise.py`), and the protection of the calls from LLVM's inlining
(`runtime/compiler/invocation/kernel_code.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir

from axir.dialect.builders.kernels.building import state
from axir.dialect.builders.scalars import Scalar, constant, integer, operation
from axir.dialect.core.annotations import Returning
from axir.dialect.core.state import Change

from .building import Kernel

FUNCTION_MARK = "_function_"
"""What the names of such functions hold, between that of the kernel and a number."""
# Tells IREE that a function is not an import, because its runtime would look up imports.
_LINKED = "hal.import.static"


def call(name: str, body: Returning[Scalar], operands: Sequence[Scalar]) -> Scalar:
    """Calls a function of the kernel that is being built; the first call builds the function.

    Args:
        name: Distinguishes functions with operands of the same types.
        body: Builds the result of the function from its arguments: numbers or vectors of them.
        operands: The arguments.
    """
    kernel = state.kernel
    assert kernel is not None, "a function belongs to a kernel"
    key = (name, *(x.type for x in operands))
    if key not in kernel.functions:
        kernel.functions[key] = _built(kernel, body, [x.type for x in operands])
    symbol, result = kernel.functions[key]
    return operation("func.call", operands, result, {"callee": symbol})


def call_outside(name: str, numbers: Sequence[Scalar | int]) -> None:
    """Calls an external function that is linked to the kernel, and returns nothing.

    Args:
        name: The function.
        numbers: The arguments: indices, and addresses of memory (`Memory.address`), as integers of
            64 bits.
    """
    kernel = state.kernel
    assert kernel is not None, "a function is called in a kernel"
    word = integer(64)
    block = kernel.entry.owner.operation.parent.regions[0].blocks[0]
    if all(_name_of(x.operation) != name for x in block):
        with ir.InsertionPoint.at_block_begin(block), ir.Location.unknown():
            declare_outside(name, [word] * len(numbers))
    words = [
        constant(x, word) if isinstance(x, int) else operation("arith.index_cast", (x,), word)
        for x in numbers
    ]
    ir.Operation.create(
        "func.call",
        operands=[x.value for x in words],
        attributes={"callee": ir.FlatSymbolRefAttr.get(name)},
    )


def declare_outside(name: str, types: Sequence[ir.Type]) -> None:
    """Declares an external function that is linked to the kernel, and returns nothing."""
    signature = ir.FunctionType.get(list(types), [])
    ir.Operation.create(
        "func.func",
        attributes={
            "sym_name": ir.StringAttr.get(name),
            "sym_visibility": ir.StringAttr.get("private"),
            "function_type": ir.TypeAttr.get(signature),
            _LINKED: ir.UnitAttr.get(),
        },
        regions=1,
    )


def _name_of(function: ir.Operation) -> str:
    return ir.StringAttr(function.attributes["sym_name"]).value


def _built(
    kernel: Kernel, body: Returning[Scalar], types: list[ir.Type]
) -> tuple[ir.Attribute, ir.Type]:
    """Puts a function behind the kernel's; returns its name, and the type of its result."""
    owner = kernel.entry.owner
    name = ir.StringAttr(owner.attributes["sym_name"]).value
    symbol = f"{name}{FUNCTION_MARK}{len(kernel.functions)}"
    with ir.InsertionPoint(owner.operation.parent.regions[0].blocks[0]), ir.Location.unknown():
        # The signature is known after the body.
        function = ir.Operation.create(
            "func.func",
            attributes={
                "sym_name": ir.StringAttr.get(symbol),
                "sym_visibility": ir.StringAttr.get("private"),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, [])),
                "no_inline": ir.UnitAttr.get(),
            },
            regions=1,
        )
    block = function.regions[0].blocks.append(*types)
    with ir.InsertionPoint(block), ir.Location.unknown(), Change(kernel=Kernel(block)):
        result = body(*map(Scalar, block.arguments))
        ir.Operation.create("func.return", operands=[result.value])
    signature = ir.FunctionType.get(types, [result.type])
    function.attributes["function_type"] = ir.TypeAttr.get(signature)
    return ir.FlatSymbolRefAttr.get(symbol), result.type

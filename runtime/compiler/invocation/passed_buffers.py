"""Keeps memory that a block was handed and that its value elsewhere still reads.

The fact (IREE 3.13): it frees an array in the block that is handed it by a branch, behind the last
use of the block's argument. Where the array has been passed on only on some ways into the block,
as past an optional step of a computation, it lives on under its first name, and what reads it by
that name later finds freed memory: "transient buffer has not been committed" on threads, whatever
is there by then on GPUs. (The driver of the calling thread frees with the last reference.)

So such a call becomes a barrier, which waits for the same and tells the same. The memory is freed
with its last reference, as all is that IREE does not free itself. Elsewhere: running the compiler
(`invoker.py`).
"""

from __future__ import annotations

from iree.compiler import ir

_FREE = "hal.device.queue.dealloca"
_BARRIER = "hal.device.queue.barrier"


def keep_passed_buffers(module: ir.Operation) -> int:
    """Rewrites what frees arguments of blocks in a VM module, in place.

    Returns:
        How many calls there were.
    """
    calls: list[ir.Operation] = []
    imports: dict[str, ir.Operation] = {}

    def collect(operation: ir.Operation) -> ir.WalkResult:
        if operation.name == "vm.import":
            imports[ir.StringAttr(operation.attributes["sym_name"]).value] = operation
        elif operation.name == "vm.call" and _frees_argument(operation):
            calls.append(operation)
        return ir.WalkResult.ADVANCE

    module.walk(collect)
    if calls and _BARRIER not in imports:
        _import_barrier(imports[_FREE])
    for call in calls:
        _wait_instead(call)
    return len(calls)


def _frees_argument(call: ir.Operation) -> bool:
    if ir.FlatSymbolRefAttr(call.attributes["callee"]).value != _FREE:
        return False
    return isinstance(call.operands[4], ir.BlockArgument)


def _import_barrier(free: ir.Operation) -> None:
    """Declares the barrier, which takes what freeing takes but for the buffer."""
    with ir.InsertionPoint(free), free.location:
        kinds = list(ir.FunctionType(ir.TypeAttr(free.attributes["function_type"]).value).inputs)
        names = list(ir.ArrayAttr(free.attributes["arg_attrs"]))
        ir.Operation.create(
            "vm.import",
            attributes={
                "arg_attrs": ir.ArrayAttr.get([*names[:4], names[5]]),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get([*kinds[:4], kinds[5]], [])),
                "sym_name": ir.StringAttr.get(_BARRIER),
                "sym_visibility": ir.StringAttr.get("private"),
            },
            regions=1,
        )


def _wait_instead(call: ir.Operation) -> None:
    with ir.InsertionPoint(call), call.location:
        flags = ir.Operation.create("vm.const.i64.zero", [call.operands[5].type]).result
        ir.Operation.create(
            "vm.call",
            operands=[*list(call.operands)[:4], flags],
            attributes={"callee": ir.FlatSymbolRefAttr.get(_BARRIER)},
        )
    call.erase()

"""Arrays that are passed to programs and blocks: kept while they are read, and not checked.

The fact (IREE 3.13): if a branch passes an array to a block, IREE frees it in that block, after the
last use of the block's argument. If the array is passed only on some ways into the block, as past
an optional step of a computation, it is still live under its first name. A later read by that name
finds freed memory: "transient buffer has not been committed" on threads, arbitrary contents on
GPUs. (On the calling thread, the driver frees memory only with the last reference.)

So `keep_passed_buffers` replaces the call that frees by a barrier. It waits for the same fences and
signals the same fences. The memory is freed with its last reference, like all memory that IREE does
not free explicitly.

IREE's functions also look at the type, the length and the kind of memory of each argument, 0.15 us
each: a fifth of the time of a short call. `remove_argument_checks` removes these checks from
programs that are called with arguments of known types.

Elsewhere: the callers that need no checks (`runtime/calls/compiled_function.py`), running the
compiler (`invoker.py`).
"""

from __future__ import annotations

from iree.compiler import ir

from .compiler_library import operations_named

_FREE = "hal.device.queue.dealloca"
_BARRIER = "hal.device.queue.barrier"


def keep_passed_buffers(module: ir.Operation) -> int:
    """Replaces the calls that free arguments of blocks in a VM module, in place.

    Returns:
        The number of calls replaced.
    """
    found = operations_named(module, ("vm.call", "vm.import"))
    calls = [x for x in found if x.name == "vm.call" and _frees_argument(x)]
    imports = {
        ir.StringAttr(x.attributes["sym_name"]).value: x for x in found if x.name == "vm.import"
    }
    if calls and _BARRIER not in imports:
        _import_barrier(imports[_FREE])
    for call in calls:
        _wait_instead(call)
    return len(calls)


def _frees_argument(call: ir.Operation) -> bool:
    return _callee(call) == _FREE and isinstance(call.operands[4], ir.BlockArgument)


def _callee(call: ir.Operation) -> str:
    return ir.FlatSymbolRefAttr(call.attributes["callee"]).value


def _import_barrier(free: ir.Operation) -> None:
    """Declares the barrier; it takes the arguments of the call that frees, except the buffer."""
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


_CALLS = frozenset(("vm.call", "vm.call.variadic"))
_CHECKS = frozenset(("hal.buffer_view.assert", "hal.buffer.assert"))


def remove_argument_checks(module: ir.Operation) -> int:
    """Erases the calls of a VM module that check buffers, in place.

    Returns:
        How many there were.
    """
    checks = [x for x in operations_named(module, _CALLS) if _callee(x) in _CHECKS]
    for operation in checks:
        operation.erase()
    return len(checks)

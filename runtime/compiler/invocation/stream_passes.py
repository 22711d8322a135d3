"""Runs the passes of IREE's phase `stream`, and stops between them for a proof.

They are IREE's own, in its order: `schedule` cuts a program into parts and orders them, where
arrays are values still; `allocate` gives it memory; `finish` packs the operands of dispatches.
IREE's phase does the same and does not stop. A test compares the two, because a new version may
have other passes.

`give_memory` takes a module through the phase, and proves the resulting accesses to memory.
Elsewhere: the proof (`proof/`), when the compiler stops (`invoker.py`), and the reaction to a wrong
program (`axir.runtime.compiler.compilation`).
"""

from __future__ import annotations

from collections.abc import Callable

from iree.compiler import ir
from iree.compiler.passmanager import PassManager

from .other_names import copy_what_others_name, has_other_names
from .own_copies import give_copies, give_own_fills, has_read_what_changes, read_originals
from .proof import UnprovableError, violations

STREAM_PHASE = "stream"
_HOST = frozenset(("util.func", "util.initializer"))
_MOST_ROUNDS = 10
_ROUND, _CHANGED = "iree.fixedpoint.iteration", "iree.fixedpoint.modified"


def _in_functions(*passes: str) -> str:
    listed = ",".join(passes)
    return ",".join(f"{kind}({listed})" for kind in ("func.func", "util.func", "util.initializer"))


_CLEAN = (
    _in_functions(
        "canonicalize",
        "cse",
        "iree-util-optimize-int-arithmetic",
        "iree-util-simplify-global-accesses",
        "iree-util-apply-patterns",
    ),
    "iree-util-fold-globals",
    "iree-util-fuse-globals",
    "iree-util-ipo",
)
_BEGIN = ("iree-util-verify-initialization-order", "iree-stream-tensor-transformation-pipeline")
_SCHEDULE = (*_BEGIN, "iree-stream-async-transformation-pipeline")
# The same passes in two parts. Between them IREE has copied each array that is changed in place,
# and has not yet removed the superfluous copies. `_ELIDE_COPIES` removes them, unless each in-place
# operation is to keep its copy. Copies that it removes wrongly are put back after it.
_BEGIN_COPIES = (
    *_BEGIN,
    "iree-stream-specialize-encodings",
    _in_functions("iree-stream-encode-host-tensors"),
    "stream.executable(iree-stream-encode-device-tensors)",
    "iree-stream-materialize-encodings",
    _in_functions("iree-stream-layout-slices"),
    *_CLEAN,
    "iree-stream-verify-lowering-to-async-resources",
    _in_functions("iree-stream-materialize-copy-on-write"),
)
_ELIDE_COPIES = (
    "iree-stream-elide-async-copies",
    _in_functions("canonicalize", "iree-stream-emplace-allocations"),
)
_SCHEDULE_COPIES = (
    "iree-stream-refine-usage",
    _in_functions("canonicalize"),
    "iree-stream-verify-async-access-ranges",
    "iree-stream-place-transfer-executions",
    _in_functions("iree-stream-schedule-execution", "iree-stream-schedule-concurrency"),
    "iree-stream-sync-initializers",
    "iree-stream-propagate-timepoints",
    "iree-stream-materialize-builtins",
    *_CLEAN,
    "iree-stream-verify-lowering-to-async",
)
_ALLOCATE = (
    "iree-stream-cmd-transformation-pipeline",
    *_CLEAN,
    _in_functions("iree-stream-reuse-allocations", "convert-scf-to-cf"),
)
_ELIDE = (*_CLEAN, "iree-stream-elide-timepoints")
_FINISH = (
    "iree-stream-fuse-dispatch-bindings",
    "iree-stream-annotate-dispatch-arguments",
    "iree-stream-annotate-dispatch-assumptions",
    "iree-stream-pack-dispatch-operands",
    *_CLEAN,
    "iree-stream-fold-uniform-operands",
    *_CLEAN,
    "symbol-dce",
)


def schedule(module: ir.Operation, verifies: bool, keeps_copies: bool = False) -> None:
    """Takes a module of the phase `flow` to where it is scheduled and arrays are values, in place.

    Args:
        module: The module.
        verifies: Whether to verify all operations after each pass.
        keeps_copies: Whether each operation that works in place works on a copy, and each part
            has separate fills.
    """
    if keeps_copies:
        _run(module, _BEGIN_COPIES, verifies)
        give_copies(module)
        give_own_fills(module)
        _run(module, _SCHEDULE_COPIES, verifies)
        return
    reads_what_changes = has_read_what_changes(module)
    if not reads_what_changes and not has_other_names(module):
        _run(module, _SCHEDULE, verifies)
        return
    _run(module, _BEGIN_COPIES, verifies)
    if reads_what_changes:
        read_originals(module)
    _run(module, _ELIDE_COPIES, verifies)
    copy_what_others_name(module)
    _run(module, _SCHEDULE_COPIES, verifies)


def allocate(module: ir.Operation, verifies: bool) -> None:
    """Takes a scheduled module to the point where it has memory, in place."""
    _run(module, _ALLOCATE, verifies)
    index = ir.IndexType.get(module.context)
    attributes = module.attributes
    for count in range(_MOST_ROUNDS):  # passes leave a mark if they have changed something
        attributes[_ROUND] = ir.IntegerAttr.get(index, count)
        _run(module, _ELIDE, verifies)
        if _CHANGED not in attributes:
            break
        del attributes[_CHANGED]
    del attributes[_ROUND]


def finish(module: ir.Operation, verifies: bool) -> None:
    """Takes a module with memory to the end of the phase `stream`, in place."""
    _run(module, _FINISH, verifies)


def host_text(module: ir.Operation, has_places: bool = False) -> list[str]:
    """Returns the functions and initializers of a module in MLIR's generic form.

    Args:
        module: The module.
        has_places: Whether the text says where operations come from.
    """
    found: list[ir.Operation] = []

    def collect(operation: ir.Operation) -> ir.WalkResult:
        if operation.name == "builtin.module":
            return ir.WalkResult.ADVANCE
        if operation.name in _HOST:
            found.append(operation)
        return ir.WalkResult.SKIP

    module.walk(collect, ir.WalkOrder.PRE_ORDER)
    return [
        operation.get_asm(
            print_generic_op_form=True,
            use_local_scope=True,
            assume_verified=True,
            enable_debug_info=has_places,
        )
        for operation in found
    ]


def _run(module: ir.Operation, passes: tuple[str, ...], verifies: bool) -> None:
    manager = PassManager.parse(f"builtin.module({','.join(passes)})", context=module.context)
    manager.enable_verifier(verifies)
    manager.run(module)


# Prefix of a message that is not an error: nothing could be proven about a program.
UNPROVEN = "not proven: "
_MOST_SHOWN = 3


class WrongMemoryError(Exception):
    """A program would read memory that does not hold the values that the program means."""


def give_memory(
    module: ir.Operation, verifies: bool, keeps_copies: bool, report: Callable[[str], None]
) -> None:
    """Takes a module from the phase `flow` to the end of the phase `stream`, in place.

    Args:
        module: The module.
        verifies: Whether to verify all operations after each pass.
        keeps_copies: Whether each operation that works in place works on a copy.
        report: Called with the reason if a program cannot be proven.

    Raises:
        WrongMemoryError: if a read may find something else than the program means.
    """
    schedule(module, verifies, keeps_copies)
    meant = host_text(module)
    allocate(module, verifies)
    try:
        found = violations(meant, host_text(module))
        if found:
            found = violations(meant, host_text(module, has_places=True))
    except UnprovableError as error:
        report(f"{UNPROVEN}{error}")
    else:
        if found:
            more = [f"and {len(found) - _MOST_SHOWN} more"] if len(found) > _MOST_SHOWN else []
            raise WrongMemoryError("; ".join([*map(str, found[:_MOST_SHOWN]), *more]))
    finish(module, verifies)

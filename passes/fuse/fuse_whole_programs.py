"""`fuse-whole-programs`: programs become one kernel each, which runs without IREE."""

from __future__ import annotations

import logging
from typing import ClassVar

from iree.compiler import ir

from axir.passes.framework.base import Pass
from axir.passes.legalize.regions import LOOP, captured_by, operations_of

from .factors import transpose_factors
from .fuse_small_programs import fuse_program, pays, updates_large
from .inlining import erase_unused
from .region_kernel import code_and_fitness

_LOGGER = logging.getLogger(__name__)
_MOST_BINDINGS = 10_000
_STEPS = "func.return stablehlo.constant".split()


class FuseWholePrograms(Pass):
    """Makes one kernel of each function of little work, for all kinds of operations.

    The fact: IREE compiles a program of one addition for 100 ms, and takes a microsecond or two to
    queue it. A kernel of the whole program needs neither: see `runtime/native/`.

    1. Take the functions that are not called. Each operation must have a rule, and the work must be
       small enough for one thread.
    2. Build the kernel as `fuse-small-programs` does, with up to a thousand arrays. It is called
       `program`, or `elementwise` where IREE would fuse all operations into a kernel itself: there
       products are rounded before they are added (`invocation/roundings.py`). A program with loops
       is never `elementwise`, because loops are axir's kernels with IREE, too.

    Before::

        %0 = stablehlo.multiply %x, %y
        return %0

    After::

        %0 = flow.dispatch @elementwise_0::@elementwise_0(%x, %y)
        return %0

    Precondition: as for `fuse-small-programs`.
    """

    name: ClassVar[str] = "fuse-whole-programs"

    def run(self, module: ir.Module) -> None:
        """Rewrites the functions of the module."""
        code, fitness = code_and_fitness(module)
        for function in list(code.functions.values()):
            if "sym_visibility" in function.attributes:
                continue
            [operations] = operations_of(function) if len(function.regions[0].blocks) else [[]]
            if all(x.name in _STEPS for x in operations):
                continue
            operations = _with_factors_in_order(function, operations)
            reason = fitness.of_whole_program(operations, _MOST_BINDINGS)
            if updates_large(operations):
                reason = "it changes parts of a large array"
            if reason is None:
                computes_once = pays(operations) or any(x.name == LOOP for x in operations)
                name = "program" if computes_once else "elementwise"
                fuse_program(function, operations, code, name, _MOST_BINDINGS)
            else:
                _LOGGER.info("the program at %s is no kernel: %s", function.location, reason)
        erase_unused(module)


def _with_factors_in_order(
    function: ir.Operation, operations: list[ir.Operation]
) -> list[ir.Operation]:
    """Returns the operations after transposing outer matrices to the order of a loop's products.

    `fuse-loops` does the same for IREE, so that sums have the same order in both cases.
    """
    loops = [operation for operation in operations if operation.name == LOOP]
    for loop in loops:
        transpose_factors(loop, set(captured_by(loop)))
    return operations_of(function)[0] if loops else operations

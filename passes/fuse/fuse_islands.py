"""`fuse-islands`: the operations between the kernels of a program become kernels, too.

Here: the pass, and the kernel that updates a part of an array in place.
Elsewhere: the islands (`islands.py`).
"""

from __future__ import annotations

import logging
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.kernels import Memory, dispatch
from axir.passes.framework.base import Pass
from axir.passes.legalize.regions import LOOP, operations_of, operations_within
from axir.passes.legalize.rewriting import find_operations, replace

from .elementwise import Code, is_uniform
from .emitter import Emitter, uniform
from .fitness import Fitness
from .islands import (
    blocks_of,
    fuse_island,
    is_float_sum,
    is_step,
    islands_of,
    without_aliases_at_the_end,
)
from .region_kernel import RULES, code_and_fitness, value_of
from .updates import places_of

_LOGGER = logging.getLogger(__name__)
_MOST_BINDINGS = 1000
_UPDATE = "stablehlo.dynamic_update_slice"
# Copying a smaller array takes as long as starting another kernel.
_LARGE_BYTES = 4096
_FILLED_BYTES = 64


class FuseIslands(Pass):
    """Makes kernels of the operations between kernels, so that a program consists only of kernels.

    The fact: after `tune-for-cpu` most of a program consists of kernels. The rest is elementwise:
    IREE compiles it, and processes all kernels while it does. Without IREE a program is ready in a
    fraction of the time (`runtime/native/`), and computes the same numbers.

    1. Replace fills with hidden numbers by constants, also in called functions: without IREE,
       numbers need not be hidden (`renew-fills`).
    2. Take public functions of one block. Each operation must be a kernel, call a host function, or
       have a rule, also in loops and branches. None may sum floats outside of a kernel, because
       IREE would sum in another order.
    3. In loops and branches, compute carried or returned arrays of one number instead of storing
       them as constants, and update large arrays in place.
    4. Group the operations of each block between two kernels, calls, loops or branches. An
       operation that only reinterprets an array does not join a group if the array comes from
       outside the group, or if it is at the end of the function. A branch of little work without
       kernels is part of a group.
    5. Build a kernel of each group.

    Before::

        %0 = flow.dispatch @matrix_product_0::@matrix_product_0(%x, %w)
        %1 = stablehlo.add %0, %b
        %2 = stablehlo.tanh %1
        return %2

    After::

        %0 = flow.dispatch @matrix_product_0::@matrix_product_0(%x, %w)
        %1 = flow.dispatch @elementwise_0::@elementwise_0(%0, %b)
        return %1

    Precondition: `legalize-for-iree{part=regions}` and `tune-for-cpu` have run.
    """

    name: ClassVar[str] = "fuse-islands"

    def run(self, module: ir.Module) -> None:
        """Rewrites the functions of the module."""
        code, fitness = code_and_fitness(module)
        for function in code.functions.values():
            _show_fills(function)
        for function in list(code.functions.values()):
            if "sym_visibility" in function.attributes or not len(function.regions[0].blocks):
                continue
            reason = _reason_against(function, fitness)
            if reason is not None:
                _LOGGER.info("the program at %s is not kernels only: %s", function.location, reason)
                continue
            for operations in blocks_of(operations_of(function)[0], fitness):
                *_, last = operations
                _fill_carried(operations)
                _update_in_place(operations, code)
                for island in islands_of(_block_of(last), fitness):
                    if last.name == "func.return":
                        island = without_aliases_at_the_end(island)
                    fuse_island(island, code, "elementwise", _MOST_BINDINGS)


def _block_of(last: ir.Operation) -> list[ir.Operation]:
    """Returns the operations of the block that an operation ends."""
    return next(x for x in operations_of(last.parent) if x and x[-1] == last)


def _update_in_place(operations: list[ir.Operation], code: Code) -> None:
    """Makes kernels that update parts of large arrays in iterations of loops or in branches."""
    if operations[-1].name == "func.return":
        return
    for operation in operations:
        if operation.name == _UPDATE and hlo.bytes_of(operation.results[0]) >= _LARGE_BYTES:
            if hlo.size_of(operation.operands[1]):
                with ir.InsertionPoint(operation), operation.location:
                    replace(operation, update_in_place(operation, code))


def _fill_carried(operations: list[ir.Operation]) -> None:
    """Computes arrays of one number that are initial values of loops, or final values of loops and
    branches: as constants, all their elements would be part of the program.
    """
    ends = [operations[-1]] if operations[-1].name != "func.return" else []
    for operation in (*(x for x in operations if x.name == LOOP), *ends):
        for number, x in enumerate(operation.operands):
            if is_uniform(x) and hlo.bytes_of(x) >= _FILLED_BYTES:
                with ir.InsertionPoint(operation), operation.location:
                    operation.operands[number] = _filled(x)


def _filled(x: ir.Value) -> ir.Value:
    number = ir.DenseElementsAttr(x.owner.attributes["value"]).get_splat_value()
    kind = ir.RankedTensorType.get([], x.type.element_type)
    value = ir.DenseElementsAttr.get_splat(kind, number)
    made = ir.Operation.create("stablehlo.constant", results=[kind], attributes={"value": value})
    return hlo.broadcast_in_dim(made.result, x.type.shape, [])


def _show_fills(function: ir.Operation) -> None:
    """Replaces arrays that are filled with a number hidden from IREE by constants."""
    for splat in find_operations(function, ("flow.tensor.splat",)):
        hidden = splat.operands[0].owner
        is_hidden = hidden.name == "util.optimization_barrier"
        known = hidden.operands[0].owner.operation if is_hidden else hidden
        if known.name != "arith.constant":
            continue
        kind = splat.results[0].type
        with ir.InsertionPoint(splat), splat.location:
            number = known.attributes["value"].value
            replace(splat, hlo.full(number, kind.shape, kind.element_type))
        for made in (hidden, known) if is_hidden else (known,):
            if not any(True for _ in made.results[0].uses):
                made.erase()


def _reason_against(function: ir.Operation, fitness: Fitness) -> str | None:
    if len(function.regions[0].blocks) > 1:
        return "it has blocks"
    sums = [x for x in operations_within(function) if is_float_sum(x)]
    if sums:
        return f"{sums[0].name} adds up in an order of its own"
    for operations in blocks_of(operations_of(function)[0], fitness):
        reason = fitness.of_operations([x for x in operations if not is_step(x, fitness)])
        if reason is not None:
            return reason
    return None


def update_in_place(created: ir.Operation, code: Code) -> ir.Value:
    """Puts a kernel in front of a `dynamic_update_slice`; the kernel writes only the part.

    The runtime copies the array first if the old array has later readers.

    Args:
        created: The operation; neither its array nor the written part may be empty.
        code: The symbols of the module.

    Returns:
        The array.
    """
    x, update, *starts = created.operands
    given = [x, update, *(start for start in starts if not is_uniform(start))]

    def kernel(target: Memory, *memories: Memory) -> None:
        emitter = Emitter(RULES, code)
        part, *numbers = map(value_of, memories)
        known = iter(numbers)
        values = [uniform(y.owner.operation) if is_uniform(y) else next(known) for y in starts]
        emitter.fill(target, part, places_of(created, values))

    [made] = dispatch(kernel, given, [x.type], in_place={0: 0}, name="part")
    return made

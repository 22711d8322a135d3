"""Programs and sums of small arrays that become kernels.

Here: `fuse-small-programs`, `fuse-whole-programs`, which makes programs that run without IREE, and
`fuse-small-sums`.
Elsewhere: the operations between kernels (`fuse_islands.py`), loops (`fuse_loops.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.kernels import Memory
from axir.dialect.builders.kernels.packing import MOST_BINDINGS
from axir.passes.framework.base import Pass
from axir.passes.legalize.buffers.protect_inputs import is_given_away
from axir.passes.legalize.regions import LOOP, captured_by, operations_of

from .elementwise import Code, can_compute, write_out_functions
from .emitter import Emitter
from .factors import transpose_factors
from .fitness import Fitness
from .inlining import erase_unused
from .islands import (
    LARGE_BYTES,
    PARTIAL,
    Island,
    blocks_of,
    connected,
    fuse_island,
    is_float_sum,
    islands_of,
)
from .long_formulas import fuse_long
from .region_kernel import RULES, code_and_fitness, move_constants, region_kernel
from .values import Value
from .views import VIEWS

_LOGGER = logging.getLogger(__name__)
_FEWEST = 3
LONG = 24
"""So many operations take IREE longer than a kernel does, whatever they are."""


class FuseSmallPrograms(Pass):
    """Makes one kernel of each function with small arrays.

    The fact: each product, reduction or loop is a separate dispatch for IREE, which takes half a
    microsecond or more, as long as a thousand additions.

    1. Take the functions that are not called, with at least three operations. Not all operations
       may be elementwise, because IREE fuses those itself. The work must be small enough for one
       thread, and each operation must have a rule. They must not write parts of a large array: one
       thread would copy all of it.
    2. Build the kernel: its operands are the arguments, its results the returned values.

    Before::

        %0 = stablehlo.dot_general %w, %x, contracting_dims = [1] x [0]
        %1 = stablehlo.add %0, %b
        %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.maximum across dimensions = [0]
        return %2

    After::

        %0 = flow.dispatch @program_0::@program_0(%w, %x, %b)
        return %0

    Precondition: functions of numbers have been expanded; gathers and scatters are still unchanged.
    """

    name: ClassVar[str] = "fuse-small-programs"

    def run(self, module: ir.Module) -> None:
        """Rewrites the functions of the module."""
        write_out_functions(module)
        code = Code(module)
        fitness = Fitness(code, frozenset(RULES))
        for function in list(code.functions.values()):
            if "sym_visibility" in function.attributes:
                continue
            [operations] = operations_of(function) if len(function.regions[0].blocks) else [[]]
            if not pays(operations) or updates_large(operations):
                continue
            reason = fitness.of_program(operations)
            if reason is None:
                fuse_program(function, operations, code)
            elif not fuse_long(operations, code):
                _LOGGER.info("the program at %s is no kernel: %s", function.location, reason)
        erase_unused(module)


def pays(operations: list[ir.Operation]) -> bool:
    """Tells whether IREE would make several dispatches of operations, or one that takes longer."""
    working = [x for x in operations if x.name not in VIEWS and x.name not in _PLACES]
    if len(working) >= LONG:
        return True
    return len(working) >= _FEWEST and not all(can_compute(x) for x in working)


def updates_large(operations: list[ir.Operation]) -> bool:
    """Tells whether parts of a large array are changed.

    IREE does that in place if the caller donates the array; else several threads copy it.
    """
    changed = [x.operands[0] for x in operations if x.name in PARTIAL]
    sizes = [hlo.bytes_of(x) for x in changed]
    limits = [LARGE_BYTES if is_given_away(x) else _COPIED_BYTES for x in changed]
    return any(size >= limit for size, limit in zip(sizes, limits, strict=True))


# One thread copies these faster than two do.
_COPIED_BYTES = 1 << 19
_PLACES = frozenset("stablehlo.constant stablehlo.reshape func.return tensor.empty".split())


def fuse_program(
    function: ir.Operation,
    operations: list[ir.Operation],
    code: Code,
    name: str = "program",
    most_bindings: int = MOST_BINDINGS,
) -> None:
    """Makes one kernel of all operations of a function.

    Args:
        function: The function, which will call the kernel.
        operations: Its operations.
        code: The symbols of the module.
        name: The name of the kernel.
        most_bindings: As for `dispatch`.
    """
    constants = move_constants(function, operations)
    operations = [x for x in operations_of(function)[0] if x not in constants]
    last = operations[-1]
    # Unused arguments may have a type that kernels do not support.
    used = [x for x in function.regions[0].blocks[0].arguments if any(True for _ in x.uses)]
    outside = [*used, *(x.results[0] for x in constants)]
    uniform = {x.results[0] for x in operations if x.name == "stablehlo.constant"}
    known = {*outside, *uniform}
    returned = [x for x in dict.fromkeys(last.operands) if x not in known]
    results = {number: x.type for number, x in enumerate(returned)}

    def build(emitter: Emitter, places: Mapping[int, Memory]) -> dict[int, Value]:
        emitter.targets = {x: places[n] for n, x in enumerate(returned) if n in places}
        ends = dict(zip(last.operands, emitter.block(operations, ()), strict=True))
        return {number: ends[x] for number, x in enumerate(returned)}

    with ir.InsertionPoint(last), function.location:
        made = region_kernel(name, code, outside, results, build, most_bindings)
    replaced = {x: made[number] for number, x in enumerate(returned)}
    for number, x in enumerate(last.operands):
        last.operands[number] = replaced.get(x, x)
    for operation in reversed(operations[:-1]):
        if not any(True for result in operation.results for _ in result.uses):
            operation.erase()


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


# The work of one thread in about 10 microseconds, the time in which others would start.
_MOST_WORK = 1 << 17


class FuseSmallSums(Pass):
    """Makes a kernel of each group of operations between kernels that sums few numbers.

    The fact: IREE makes two or more dispatches of a sum and the operations around it, and compiles
    each for 30 ms. One thread sums few numbers before other threads have started. And the sum of a
    kernel is the same number with IREE and without it (`fuse-islands`).

    1. Take the groups of operations between two kernels, also in loops and branches, and cut each
       group into connected parts.
    2. Cut parts with too much work for one thread into pieces, in the order of the program.
    3. Build a kernel of each part or piece that has sums of floats.

    Before::

        %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1]
        %2 = stablehlo.log %1

    After::

        %2 = flow.dispatch @program_0::@program_0(%0)

    Precondition: the other passes that make kernels have run.
    """

    name: ClassVar[str] = "fuse-small-sums"

    def run(self, module: ir.Module) -> None:
        """Rewrites the functions of the module."""
        code, fitness = code_and_fitness(module)
        for function in list(code.functions.values()):
            if "sym_visibility" in function.attributes or len(function.regions[0].blocks) != 1:
                continue
            for operations in blocks_of(operations_of(function)[0], fitness):
                _fuse_sums(operations, code, fitness)


def _fuse_sums(operations: list[ir.Operation], code: Code, fitness: Fitness) -> None:
    is_in_loop = operations[-1].name != "func.return"
    for island in islands_of(operations, fitness, is_for_both=is_in_loop):
        for part in filter(_has_sum, connected(island)):
            is_small = fitness.of_small(part, _MOST_WORK) is None
            for piece in [part] if is_small else _pieces(part, fitness):
                fuse_island(piece, code, "program")


def _has_sum(part: Island) -> bool:
    return any(map(is_float_sum, part))


def _pieces(part: Island, fitness: Fitness) -> list[Island]:
    """Cuts operations that depend on each other into small adjacent pieces with sums."""
    pieces: list[Island] = [[]]
    done = 0
    for operation in part:
        work = fitness.work_of(operation)
        if work is None or done + work > _MOST_WORK:
            pieces.append([])
            done = 0
        if work is not None and work <= _MOST_WORK:
            pieces[-1].append(operation)
            done += work
    return list(filter(_has_sum, pieces))

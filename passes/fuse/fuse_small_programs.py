"""`fuse-small-programs`: programs of small arrays become one kernel."""

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
from axir.passes.legalize.regions import operations_of

from .code import Code, write_out_functions
from .elementwise import can_compute
from .emitter import Emitter
from .fitness import Fitness
from .inlining import erase_unused
from .islands import LARGE_BYTES, PARTIAL
from .long_formulas import fuse_long
from .region_kernel import RULES, move_constants, region_kernel
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

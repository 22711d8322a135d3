"""`fuse-islands`: what lies between the kernels of a program becomes kernels, too."""

from __future__ import annotations

import dataclasses
import logging
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.base import Pass
from axir.passes.legalize.host_functions import host_function
from axir.passes.legalize.regions import operations_of, operations_within
from axir.passes.legalize.rewriting import find_operations, replace

from .code import Code, write_out_functions
from .fitness import Fitness
from .islands import KERNEL, fuse_island, is_float_sum, islands_of, without_aliases_at_the_end
from .region_kernel import RULES

_LOGGER = logging.getLogger(__name__)
_MOST_BINDINGS = 1000


@dataclasses.dataclass(frozen=True)
class FuseIslands(Pass):
    """Makes kernels of what is left of a program beside its kernels, so that it is kernels only.

    The fact: after `tune-for-cpu` most of a program are kernels. What is left is elementwise: IREE
    compiles that, and looks at all kernels while it does. Without it a program is ready several
    times as early (`runtime/native/`), and computes the same numbers.

    1. Fill arrays by constants: numbers that are hidden from IREE (`renew-fills`) need not be.
    2. Take public functions of one block, all of whose operations are kernels, call functions of
       the host, or have a rule, and none of which adds up floats outside of a kernel: IREE does
       that in an order of its own.
    3. Group the operations between two kernels or calls. What only reads an array as another one,
       of those before or of the group itself, stays.
    4. Build a kernel of each group.

    Before::

        %0 = flow.dispatch @matrix_product_0::@matrix_product_0(%x, %w)
        %1 = stablehlo.add %0, %b
        %2 = stablehlo.tanh %1
        return %2

    After::

        %0 = flow.dispatch @matrix_product_0::@matrix_product_0(%x, %w)
        %1 = flow.dispatch @elementwise_0::@elementwise_0(%0, %b)
        return %1

    Precondition: `legalize-for-iree` and `tune-for-cpu` have run.
    """

    name: ClassVar[str] = "fuse-islands"

    def run(self, module: ir.Module) -> None:
        """Rewrites the functions of the module."""
        write_out_functions(module)
        code = Code(module)
        for function in list(code.functions.values()):
            if "sym_visibility" in function.attributes or not len(function.regions[0].blocks):
                continue
            _show_fills(function)
            reason = _reason_against(function, code)
            if reason is not None:
                _LOGGER.info("the program at %s is not kernels only: %s", function.location, reason)
                continue
            for island in islands_of(operations_of(function)[0]):
                computed = without_aliases_at_the_end(island)
                fuse_island(computed, code, "elementwise", _MOST_BINDINGS)


def _show_fills(function: ir.Operation) -> None:
    """Makes constants of arrays that are filled with a number which is hidden from IREE."""
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


def _reason_against(function: ir.Operation, code: Code) -> str | None:
    if len(function.regions[0].blocks) > 1:
        return "it has branches"
    [operations] = operations_of(function)
    sums = [x for x in operations_within(function) if is_float_sum(x)]
    if sums:
        return f"{sums[0].name} adds up in an order of its own"
    fitness = Fitness(code, frozenset(RULES), has_windows=True)
    return fitness.of_operations(
        [x for x in operations if x.name != KERNEL and host_function(x) is None]
    )

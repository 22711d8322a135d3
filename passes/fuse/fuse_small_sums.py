"""`fuse-small-sums`: small sums between kernels become kernels, with the operations around them."""

from __future__ import annotations

from typing import ClassVar

from iree.compiler import ir

from axir.passes.framework.base import Pass
from axir.passes.legalize.regions import operations_of

from .code import Code
from .fitness import Fitness
from .islands import Island, blocks_of, connected, fuse_island, is_float_sum, islands_of
from .region_kernel import code_and_fitness

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

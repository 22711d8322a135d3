"""`fuse-sums`: the remaining sums become kernels of several workgroups."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders.kernels import Memory
from axir.dialect.builders.scalars import Scalar
from axir.passes.framework.base import Pass
from axir.passes.fuse.elementwise import Code
from axir.passes.fuse.emitter import Emitter
from axir.passes.fuse.islands import is_float_sum
from axir.passes.fuse.reductions import is_by_vectors, sums_of
from axir.passes.fuse.region_kernel import code_and_fitness, region_kernel
from axir.passes.fuse.values import Stored, Value
from axir.passes.legalize.regions import is_run_by_itself
from axir.passes.legalize.rewriting import find_operations

from .producers import BROADCAST, is_cheap, outside_of, with_producers, workgroups_for
from .shared_sums import is_narrow, share_of, share_of_narrow, with_merged_axes

_REDUCE = "stablehlo.reduce"


class FuseSums(Pass):
    """Makes a kernel of each reduction of floats by one operation, with its producers.

    The fact: IREE sums in another order, compiles a dispatch for 30 ms, and combines vectors of a
    row one after the other, so that each waits for the previous one. The sums of a kernel are the
    same numbers with IREE and without it (`fuse-islands`).

    1. Take the reductions that `fuse-rows`, `fuse-long-sums` and `fuse-small-sums` leave.
    2. Add the elementwise operations that only the reduction reads: they are computed once.
    3. Write a kernel that divides the result among workgroups (`shared_sums.py`). Their number
       depends only on the size, so results do not depend on how many run at a time.

    Before::

        %1 = stablehlo.multiply %x, %x : tensor<64x156250xf32>
        %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [1]

    After::

        %2 = flow.dispatch @sum_0::@sum_0(%x) : (tensor<64x156250xf32>) -> tensor<64xf32>

    Precondition: the other passes that make kernels have run.
    """

    name: ClassVar[str] = "fuse-sums"

    def run(self, module: ir.Module) -> None:
        """Rewrites the reductions of functions."""
        code, fitness = code_and_fitness(module)
        for created in find_operations(module.operation, (_REDUCE,)):
            if not is_run_by_itself(created) or not is_float_sum(created):
                continue
            if not is_by_vectors(created):
                continue
            part = with_producers(created, _is_view)
            if fitness.of_operations(part) is None:
                _fuse(part, code)


def _is_view(made: ir.Operation) -> bool:
    """Tells whether an operation is an iota, or a broadcast of a value that is cheap to compute."""
    return made.name != BROADCAST or is_cheap(made.operands[0])


def _fuse(part: list[ir.Operation], code: Code) -> None:
    created = part[-1]
    result = created.results[0]
    workgroups = workgroups_for(part, math.prod(result.type.shape))

    def build(
        emitter: Emitter, places: Mapping[int, Memory], workgroup: Scalar
    ) -> dict[int, Value]:
        sums = sums_of(created, emitter.block(part, ()))
        assert sums is not None
        merged = with_merged_axes(sums)
        memory = places[0].reshaped(merged.kept)
        share = share_of_narrow if is_narrow(merged) else share_of
        share(merged, memory, workgroup, workgroups)
        return {0: Stored(places[0], is_own=True)}

    with ir.InsertionPoint(created), created.location:
        made = region_kernel(
            "sum", code, outside_of(part), {0: result.type}, build, workgroups=workgroups
        )
    result.replace_all_uses_with(made[0])
    for operation in reversed(part):
        operation.erase()

"""`fuse-long-sums`: long reductions to few numbers, by kernels of several workgroups."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.kernels import Memory
from axir.dialect.builders.scalars import Scalar
from axir.passes.framework.base import Pass
from axir.passes.fuse.elementwise import Code
from axir.passes.fuse.emitter import Emitter
from axir.passes.fuse.reductions import is_by_vectors, sums_of
from axir.passes.fuse.region_kernel import code_and_fitness, region_kernel
from axir.passes.fuse.values import Stored, Value
from axir.passes.legalize.regions import is_run_by_itself
from axir.passes.legalize.rewriting import find_operations
from axir.passes.legalize.windows.position_select_and_scatter import copied_body

from .long_sums import Plan, plan_of, reader_of, write_parts
from .producers import BROADCAST, is_cheap, outside_of, with_producers, workgroups_for

_REDUCE = "stablehlo.reduce"


@dataclasses.dataclass(frozen=True)
class FuseLongSums(Pass):
    """Makes a kernel of each long reduction to few numbers, or of few columns.

    The facts: IREE computes one element of the result after the other, each on one core. For an
    array with few columns it reads a few neighbours at a time. The sums of a kernel are the same
    numbers with IREE and without it (`fuse-islands`).

    1. Take reductions by one operation of adjacent dimensions, of at least `elements` elements,
       with fewer than 16 columns, and so long that each of 32 parts is long.
    2. Add the elementwise operations that only the reduction reads, as long as their elements are
       contiguous, or are one number for each column.
    3. Write a kernel that divides the parts among workgroups (`long_sums.py`). Their number depends
       only on the size, so results do not depend on how many run at a time.
    4. Reduce the results of the parts.

    Before::

        %1 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [0]
            : (tensor<1000003x3xf32>, tensor<f32>) -> tensor<3xf32>

    After::

        %1 = flow.dispatch @sum_parts_0::@sum_parts_0(%x) : … -> tensor<1x33x96xf32>
        %2 = stablehlo.reshape %1 : (tensor<1x33x96xf32>) -> tensor<1x1056x3xf32>
        %3 = stablehlo.reduce(%2 init: %c) applies stablehlo.add across dimensions = [1]

    Precondition: `fuse-rows` has run.
    """

    name: ClassVar[str] = "fuse-long-sums"
    elements: int = 1 << 15

    def run(self, module: ir.Module) -> None:
        """Rewrites the reductions of functions."""
        code, fitness = code_and_fitness(module)
        for created in find_operations(module.operation, (_REDUCE,)):
            x = created.operands[0].type
            if not is_run_by_itself(created) or math.prod(x.shape) < self.elements:
                continue
            if not is_by_vectors(created):
                continue
            plan = plan_of(x.shape, created.attributes["dimensions"], x.element_type)
            if plan is None:
                continue
            part = with_producers(created, functools.partial(_is_of_columns, plan.period))
            if fitness.of_operations(part) is None:
                _fuse(part, plan, code)


def _is_of_columns(period: int, made: ir.Operation) -> bool:
    """Tells whether an operation broadcasts one number, or one for each column, to all rows."""
    if made.name != BROADCAST:
        return False
    [x] = made.operands
    rank, lead = made.results[0].type.rank, made.results[0].type.rank - x.type.rank
    size = hlo.size_of(x)
    is_last = list(made.attributes["broadcast_dimensions"]) == list(range(lead, rank))
    is_whole = is_last and list(made.results[0].type.shape[lead:]) == list(x.type.shape)
    return is_cheap(x) and (size == 1 or (is_whole and period % size == 0))


def _fuse(part: list[ir.Operation], plan: Plan, code: Code) -> None:
    created = part[-1]
    x, init = created.operands
    kind = hlo.tensor_type(plan.shape, x.type.element_type)
    workgroups = workgroups_for(part, plan.outer * plan.parts)

    def build(
        emitter: Emitter, places: Mapping[int, Memory], workgroup: Scalar
    ) -> dict[int, Value]:
        sums = sums_of(created, emitter.block(part, ()))
        read = None if sums is None else reader_of(sums.x, plan)
        assert sums is not None
        assert read is not None
        write_parts(sums, plan, read, places[0], workgroup, workgroups)
        return {0: Stored(places[0], is_own=True)}

    with ir.InsertionPoint(created), created.location:
        outside = outside_of(part)
        made = region_kernel("sum_parts", code, outside, {0: kind}, build, workgroups=workgroups)
        rows = math.prod(plan.shape[1:]) // plan.period
        columns = () if plan.period == 1 else (plan.period,)
        blocks = hlo.reshape(made[0], (plan.outer, rows, *columns))
        [whole] = hlo.reduce([blocks], [init], [1], copied_body(created.regions[0]))
        result = hlo.reshape(whole, created.results[0].type.shape)
    created.results[0].replace_all_uses_with(result)
    for operation in reversed(part):
        operation.erase()

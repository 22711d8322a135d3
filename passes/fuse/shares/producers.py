"""Operations that only a reduction reads, which its kernel can compute as it reads.

Elsewhere: kernels of reductions (`fuse_sums.py`, `fuse_long_sums.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from iree.compiler import ir

from axir.passes.fuse.elementwise import DEAR, can_compute, cost_of, is_uniform
from axir.passes.fuse.emitter import LONGEST

_MOST_ARRAYS = 24
MOST_WORKGROUPS = 8
# The work of one thread in about 10 microseconds, the time in which others would start.
WORK_OF_WORKGROUP = 1 << 17

RESHAPE = "stablehlo.reshape"
BROADCAST = "stablehlo.broadcast_in_dim"


def with_producers(
    created: ir.Operation, accepts: Callable[[ir.Operation], bool]
) -> list[ir.Operation]:
    """Returns a reduction of one array, and before it the operations that only it needs.

    Each element of these operations is computed once, where the reduction reads it. None of them
    needs memory: only arithmetic on whole arrays is read in another shape.

    Args:
        created: The reduction.
        accepts: Tells whether an operation that makes or copies elements, an iota or a broadcast,
            may be among them.

    Returns:
        The operations in their order, the reduction last.
    """
    found = [created]
    arrays = set(created.operands)
    waiting = [(created.operands[0], False)]
    while waiting:
        x, is_reshaped = waiting.pop()
        if not _is_made_for(x, found):
            continue
        owner = x.owner.operation
        is_view = owner.name in (BROADCAST, "stablehlo.iota")
        may_belong = not is_reshaped and accepts(owner) if is_view else _is_on_elements(owner)
        reads = {y for y in owner.operands if not is_uniform(y)}
        if owner in found or not may_belong or len(arrays | reads) > _MOST_ARRAYS:
            continue
        if len(found) >= LONGEST:
            break
        arrays |= reads
        found.append(owner)
        is_behind = is_reshaped or owner.name == RESHAPE
        waiting.extend((y, is_behind) for y in owner.operands)
    place = {view.operation: number for number, view in enumerate(created.block.operations)}
    return sorted(found, key=place.__getitem__)


def _is_made_for(x: ir.Value, readers: Sequence[ir.Operation]) -> bool:
    """Tells whether an array of the same block has one reader, among these operations."""
    if isinstance(x, ir.BlockArgument) or is_uniform(x):
        return False
    users = {use.owner.operation for use in x.uses}
    return len(users) == 1 and users <= set(readers) and x.owner.operation.block == readers[0].block


def _is_on_elements(owner: ir.Operation) -> bool:
    return owner.name == RESHAPE or can_compute(owner)


def is_cheap(x: ir.Value) -> bool:
    """Tells whether a broadcast value is one number, or is cheap to recompute for each copy."""
    is_number = math.prod(x.type.shape) == 1
    return is_number or isinstance(x, ir.BlockArgument) or cost_of(x.owner.name) < DEAR


def outside_of(part: Sequence[ir.Operation]) -> list[ir.Value]:
    """Returns the values that operations read and none of them makes."""
    made = {x for operation in part for x in operation.results}
    read = dict.fromkeys(x for operation in part for x in operation.operands)
    return [x for x in read if x not in made]


def workgroups_for(part: Sequence[ir.Operation], most: int) -> int:
    """Returns how many workgroups a reduction and its producers are divided among."""
    *producers, last = part
    work = math.prod(last.operands[0].type.shape)
    work += sum(cost_of(x.name) * math.prod(x.results[0].type.shape) for x in producers)
    return max(1, min(MOST_WORKGROUPS, most, work // WORK_OF_WORKGROUP))

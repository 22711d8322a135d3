"""Counters of loops: integers that advance by a known step to a known end, or to an extent.

Elsewhere: loops with counters as `scan` (`loops.py`), indices that depend on them
(`loop_places.py`).
"""

from __future__ import annotations

import dataclasses

from iree.compiler import ir

from axir.dialect.core.annotations import Extent
from axir.dialect.core.symbolic_dims import is_symbolic_dim, operation, symbolic_dim_bounds
from axir.passes.raising.dimensions.attributes import word

from .table import RaisingContext

_TURNED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE", "NE": "NE"}


@dataclasses.dataclass(frozen=True)
class Counter:
    """The counter of a loop: `length` iterations, from `start` by `step`, in a carried value."""

    place: int
    start: int
    step: int
    length: Extent

    @property
    def may_not_run(self) -> bool:
        """Whether the length is an extent that may be zero."""
        return is_symbolic_dim(self.length) and symbolic_dim_bounds(self.length)[0] < 1


def varying_places(loop: ir.Operation) -> list[int]:
    """Returns the carried values of a loop that an iteration may change."""
    block = loop.regions[1].blocks[0]
    results = list(block.operations)[-1].operands
    return [
        place
        for place, (argument, result) in enumerate(zip(block.arguments, results, strict=True))
        if argument != result
    ]


def counter_of(context: RaisingContext, loop: ir.Operation) -> Counter | None:
    """Returns the counter that determines how often a loop runs; None for other loops."""
    condition, body = (region.blocks[0] for region in loop.regions)
    truth = list(condition.operations)[-1].operands[0]
    if isinstance(truth, ir.BlockArgument) or truth.owner.name != "stablehlo.compare":
        return None
    lhs, rhs = truth.owner.operands
    direction = word(truth.owner.attributes["comparison_direction"])
    varying = {condition.arguments[place]: place for place in varying_places(loop)}
    if rhs in varying:
        lhs, rhs, direction = rhs, lhs, _TURNED.get(direction, direction)
    place = varying.get(lhs)
    if place is None:
        return None
    limit = _extent(context, _initial(rhs, loop, condition))
    start = _number(context, loop.operands[place])
    step = _step_of(context, loop, body, place)
    if limit is None or start is None or not step:
        return None
    of_extent = is_symbolic_dim(limit)
    length = (_open_length if of_extent else _length)(direction, start, limit, step)
    return None if length is None else Counter(place, start, step, length)


def _initial(value: ir.Value, loop: ir.Operation, block: ir.Block) -> ir.Value | None:
    """Returns the value before the loop, of a value that no iteration changes; else None."""
    if value not in list(block.arguments):
        return value
    place = list(block.arguments).index(value)
    return None if place in varying_places(loop) else loop.operands[place]


def _number(context: RaisingContext, value: ir.Value | None) -> int | None:
    """Returns a known integer."""
    found = None if value is None else context.constant(value)
    if found is None or found.shape or found.dtype.kind not in "iu":
        return None
    return int(found)


def _extent(context: RaisingContext, value: ir.Value | None) -> Extent | None:
    """Returns a known integer, or an extent."""
    number = _number(context, value)
    found = None if number is not None or value is None else context.extents(value)
    if found is None or found.shape or not is_symbolic_dim(found.item()):
        return number
    extent: Extent = found.item()
    return extent


def _step_of(context: RaisingContext, loop: ir.Operation, body: ir.Block, place: int) -> int | None:
    result, argument = list(body.operations)[-1].operands[place], body.arguments[place]
    if isinstance(result, ir.BlockArgument):
        return None
    owner = result.owner
    if owner.name not in ("stablehlo.add", "stablehlo.subtract"):
        return None
    lhs, rhs = owner.operands
    if owner.name == "stablehlo.add" and rhs == argument:
        lhs, rhs = rhs, lhs
    if lhs != argument:
        return None
    step = _number(context, _initial(rhs, loop, body))
    return -step if step is not None and owner.name == "stablehlo.subtract" else step


def _length(direction: str, start: int, limit: int, step: int) -> int | None:
    """Returns the number of iterations; None if the counter would overflow first."""
    if direction == "NE":
        distance = limit - start
        return distance // step if distance % step == 0 and distance // step >= 0 else None
    if direction in ("LE", "GE"):
        limit += 1 if direction == "LE" else -1
    if direction in ("LT", "LE"):
        return None if step < 0 and start < limit else max(0, -((start - limit) // step))
    if direction in ("GT", "GE"):
        return None if step > 0 and start > limit else max(0, -((start - limit) // step))
    return None


def _open_length(direction: str, start: int, limit: Extent, step: int) -> Extent | None:
    """Returns the number of iterations up to an extent."""
    if direction not in ("LT", "LE") or step < 0:
        return None
    distance = limit - start + (1 if direction == "LE" else 0)
    length = operation("floordiv", distance + step - 1, step)
    return length if symbolic_dim_bounds(length)[0] >= 0 else operation("max", length, 0)

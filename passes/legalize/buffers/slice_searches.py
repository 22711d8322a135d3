"""The searches of `separate-dispatches` for slices that a reader must not read in place.

Here: slices before scatters, updates, gathers and sorts, and widened elements before slices.
Elsewhere: the form of a search, and the other searches (`dispatch_searches.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.regions import CALL, SLICES, VIEWS
from axir.passes.legalize.rewriting import (
    ELEMENTWISE,
    constant_behind,
    defining_operation,
    stored_alone,
)

from .dispatch_searches import WIDEST, Cut, Operations, element_bits
from .storage import folded_sources


def slices_before_scatters(operations: Operations) -> Iterator[Cut]:
    """Yields the slices that a scatter updates."""
    for scatter in operations.of(("stablehlo.scatter",)):
        for place in range((len(scatter.operands) - 1) // 2):
            maker = defining_operation(scatter.operands[place])
            if maker is not None and maker.name == "stablehlo.slice":
                yield Cut(scatter.operands[place], scatter, place, stored_alone)


def slices_before_updates(operations: Operations) -> Iterator[Cut]:
    """Yields updates that are slices of the updated array, or of an array with its storage."""
    for operation in operations.of(("stablehlo.dynamic_update_slice",)):
        array, update = operation.operands[0], operation.operands[1]
        if not _sliced_arrays(update).isdisjoint(_closure(array)):
            yield Cut(update, operation, 1)


def _sliced_arrays(value: ir.Value) -> set[ir.Value]:
    """Returns the arrays that a value is a slice of, through views and other slices."""
    views = VIEWS - {"stablehlo.broadcast_in_dim"} | {"stablehlo.convert", "stablehlo.reverse"}
    pending, found = [value], set[ir.Value]()
    while pending:
        for viewed in _closure(pending.pop(), views):
            maker = defining_operation(viewed)
            if maker is not None and maker.name in SLICES and maker.operands[0] not in found:
                found |= _closure(maker.operands[0])
                pending.append(maker.operands[0])
    return found


def _closure(value: ir.Value, views: frozenset[str] = frozenset()) -> set[ir.Value]:
    """Returns a value and the values that it may be a view of; `views` are always followed."""
    pending, found = [value], set[ir.Value]()
    while pending:
        value = pending.pop()
        if value not in found:
            found.add(value)
            pending += folded_sources(value)
            maker = defining_operation(value)
            if maker is not None and maker.name in views:
                pending.append(maker.operands[0])
    return found


def widening_before_slices(operations: Operations) -> Iterator[Cut]:
    """Yields sliced or reshaped and sliced arrays that are computed from narrower elements.

    Scalars and constants do not count.
    """
    narrowest: dict[ir.Value, int] = {}
    for operation in operations.of(ELEMENTWISE | SLICES):
        read = operation.operands
        if operation.name in SLICES:
            array = _before_reshapes(read[0])
            if narrowest.get(array, WIDEST) < element_bits(array):
                yield Cut(array)
                del narrowest[array]
                array = _before_reshapes(operation.operands[0])
                narrowest[array] = WIDEST
            read = [array]
        least = min((narrowest.get(x, _bits_read(x)) for x in read), default=WIDEST)
        narrowest.update((result, least) for result in operation.results)


def _before_reshapes(array: ir.Value) -> ir.Value:
    """Returns the array that reshapes turned into this one, or this one."""
    while (maker := defining_operation(array)) is not None and maker.name == "stablehlo.reshape":
        array = maker.operands[0]
    return array


def _bits_read(array: ir.Value) -> int:
    """Returns the width of an input array's elements; scalars and constants count as the widest."""
    if hlo.size_of(array) == 1 or constant_behind(array) is not None:
        return WIDEST
    return element_bits(array)


def slices_before_gathers(operations: Operations) -> Iterator[Cut]:
    """Yields operands of gathers and reversals that are views of strided slices.

    Also yields operands that elementwise operations compute from strided slices of narrower
    numbers. The indices of a gather are such operands, too. The stride is the last dimension's;
    dimensions of extent 1 do not count.
    """
    known: dict[int, set[ir.Value]] = {}
    for reader in operations.of(("stablehlo.gather", "stablehlo.reverse")):
        for place, operand in enumerate(reader.operands):
            if _is_slice(operand, 2) or _widens_steps(operand, known):
                yield Cut(operand, reader, place)


def slices_before_sorts(operations: Operations) -> Iterator[Cut]:
    """Yields operands of sorts and calls that are views of slices.

    Calls count because IREE inlines the called functions. Slices of the whole array do not count,
    because they fold to their operand: a barrier there undoes `protect-inputs`.
    """
    for reader in operations.of(("stablehlo.sort", CALL)):
        for place, operand in enumerate(reader.operands):
            if _is_slice(operand, 1):
                yield Cut(operand, reader, place, stored_alone)


_SLICED_VIEWS = (VIEWS - {"stablehlo.broadcast_in_dim"}) | SLICES | {
    "stablehlo.convert",
    "stablehlo.bitcast_convert",
}  # fmt: skip


def _is_slice(value: ir.Value, least_stride: int) -> bool:
    """Tells whether a value is a view of a slice with at least this innermost stride."""
    while (maker := defining_operation(value)) is not None:
        if maker.name not in _SLICED_VIEWS:
            return False
        if _takes_part(maker) and _innermost_stride(maker) >= least_stride:
            return True
        value = maker.operands[0]
    return False


def _widens_steps(value: ir.Value, known: dict[int, set[ir.Value]]) -> bool:
    """Tells whether a value is computed element by element from a strided slice of narrower type.

    Args:
        value: The value.
        known: Values that are not so computed, by the width of the reader's numbers; more are
            added.
    """
    bits = element_bits(value)
    plain = known.setdefault(bits, set())
    pending, seen = [value], set[ir.Value]()
    while pending:
        value = pending.pop()
        maker = defining_operation(value)
        if value in seen or value in plain or maker is None:
            continue
        seen.add(value)
        if not _is_by_element(maker):
            continue
        has_gaps = _takes_part(maker) and _innermost_stride(maker) > 1
        if has_gaps and element_bits(value) < bits:
            return True
        pending += [maker.operands[0]] if maker.name in SLICES else maker.operands
    plain |= seen
    return False


def _is_by_element(operation: ir.Operation) -> bool:
    """Tells whether each element of a result is computed from one element of each operand."""
    if operation.name == "stablehlo.reduce":  # by no dimension, or one of extent 1
        sizes = [hlo.size_of(operation.operands[0])]
        return sizes == [hlo.size_of(x) for x in operation.results]
    return operation.name in _SLICED_VIEWS or operation.name in ELEMENTWISE


def _takes_part(operation: ir.Operation) -> bool:
    return operation.name in SLICES and operation.results[0].type != operation.operands[0].type


def _innermost_stride(operation: ir.Operation) -> int:
    """Returns the distance in memory of neighbours along a slice's last dimension of several."""
    shape = hlo.shape_of(operation.operands[0])
    extents = hlo.shape_of(operation.results[0])
    long = [axis for axis, extent in enumerate(extents) if extent > 1]
    if not long:
        return 1
    has_steps = "strides" in operation.attributes
    step = list(operation.attributes["strides"])[long[-1]] if has_steps else 1
    return step * math.prod(shape[long[-1] + 1 :])

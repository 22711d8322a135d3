"""The searches of `separate-dispatches`: pairs of operations that one dispatch computes wrongly.

Here: the form of a search and of its results, and the searches for reductions, widened elements and
pads.
Elsewhere: the searches for slices (`slice_searches.py`), the rows, with the fact that each search
answers (`dispatch_rows.py`), and the pass, which puts the barriers (`separate_dispatches.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple, TypeAlias

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.regions import CALL, MOVES, REDUCTIONS, VIEWS, WINDOWED, sums_up
from axir.passes.legalize.rewriting import (
    ELEMENTWISE,
    defining_operation,
    operations_in_order,
    values_behind,
)

from .storage import folded_sources

_SEARCHED = 64
"""The number of values after which a search assumes the worst."""
WIDEST = 1 << 16
"""A width above the width of all elements."""


def barrier(value: ir.Value) -> ir.Value:
    """Returns a value behind an optimization barrier."""
    return hlo.optimization_barrier(value)[0]


class Cut(NamedTuple):
    """A value that readers read from memory.

    Attributes:
        value: The value.
        reader: The operation that reads it from memory; None stands for all readers.
        place: The number of the operand, if there is one reader.
        keep: Builds the value that is read instead.
    """

    value: ir.Value
    reader: ir.Operation | None = None
    place: int = 0
    keep: Callable[[ir.Value], ir.Value] = barrier


class Operations:
    """Operations of a module in program order, found by one walk."""

    def __init__(self, root: ir.Operation, names: Collection[str]) -> None:
        self._found = [(x.name, x) for x in operations_in_order(root, names)]
        self.names = frozenset(name for name, _ in self._found)

    def of(self, names: Collection[str]) -> list[ir.Operation]:
        """Returns the operations of these names."""
        return [operation for name, operation in self._found if name in names]

    def erase(self, operation: ir.Operation) -> None:
        """Erases an operation of the module."""
        self._found = [(name, x) for name, x in self._found if x != operation]
        operation.erase()


Search: TypeAlias = Callable[[Operations], Iterator[Cut]]
"""Yields the cuts in a module. The pass makes each cut before the search goes on."""


def positions_beside_reductions(operations: Operations) -> Iterator[Cut]:
    """Yields positions that share a group of fused values with a reduction or a call.

    A group holds the operands and results of elementwise operations, views, reductions, products
    and calls. Constants join no groups.
    """
    together = _Together()
    for operation in operations.of(ELEMENTWISE | REDUCTIONS | {CALL}):
        together.join(operation, operation.name in REDUCTIONS or operation.name == CALL)
    for operation in operations.of(("stablehlo.iota",)):
        result = operation.results[0]
        extent = result.type.shape[operation.attributes["iota_dimension"].value]
        if extent > 1 and together.has_reduction(result):
            yield Cut(result, keep=_broadcast_positions)


def _broadcast_positions(value: ir.Value) -> ir.Value:
    """Returns positions along one axis from memory, broadcast to the shape of an `iota`."""
    shape = tuple(value.type.shape)
    axis = value.owner.attributes["iota_dimension"].value
    positions = barrier(hlo.iota((shape[axis],), 0, hlo.element_type_of(value)))
    return hlo.broadcast_in_dim(positions, shape, (axis,))


class _Together:
    """Sets of values that one dispatch may compute; some of them have a reduction."""

    def __init__(self) -> None:
        self._parents: dict[ir.Value, ir.Value] = {}
        self._reduced: set[ir.Value] = set()

    def join(self, operation: ir.Operation, is_reduction: bool) -> None:
        """Joins the sets of the operands and results of an operation."""
        values = [
            value
            for value in (*operation.operands, *operation.results)
            if (maker := defining_operation(value)) is None or maker.name != "stablehlo.constant"
        ]
        roots = {self._root(value) for value in values}
        if not roots:
            return
        root = roots.pop()
        self._parents.update(dict.fromkeys(roots, root))
        if is_reduction or not self._reduced.isdisjoint(roots):
            self._reduced.add(root)

    def has_reduction(self, value: ir.Value) -> bool:
        """Tells whether a value is in one set with a reduction."""
        return self._root(value) in self._reduced

    def _root(self, value: ir.Value) -> ir.Value:
        root, passed = value, []
        while (parent := self._parents.get(root)) is not None:
            passed.append(root)
            root = parent
        self._parents.update(dict.fromkeys(passed, root))
        return root


def reductions_before_broadcasts(operations: Operations) -> Iterator[Cut]:
    """Yields operands that are computed from a reduction and broadcast along a leading axis.

    The operand lacks an axis that precedes one of the operand's axes; axes of extent 1 do not
    count. Elementwise operations compute it from a reduction, a product or a call, or it is an
    argument of a called function.
    """
    for operation in operations.of(("stablehlo.broadcast_in_dim",)):
        if _is_along_earlier_axes(operation) and _is_of_reduction(operation.operands[0]):
            yield Cut(operation.operands[0], operation)


def _is_along_earlier_axes(operation: ir.Operation) -> bool:
    """Tells whether a broadcast adds an axis before one of its operand's axes."""
    shape = operation.operands[0].type.shape
    placed = list(operation.attributes["broadcast_dimensions"])
    kept = [place for place, extent in zip(placed, shape, strict=True) if extent != 1]
    wide = [axis for axis, extent in enumerate(operation.results[0].type.shape) if extent != 1]
    return kept != wide[: len(kept)]


def _is_of_reduction(value: ir.Value) -> bool:
    """Tells whether one dispatch may compute a value and a reduction before it."""
    pending, seen = [value], {value}
    while pending:
        current = pending.pop()
        maker = defining_operation(current)
        if maker is None:
            if _is_of_called_function(current):
                return True
        elif maker.name in REDUCTIONS or maker.name == CALL or len(seen) > _SEARCHED:
            return True
        elif maker.name in ELEMENTWISE:
            fresh = [x for x in maker.operands if x not in seen]
            seen.update(fresh)
            pending += fresh
    return False


def _is_of_called_function(value: ir.Value) -> bool:
    """Tells whether an argument of a block belongs to a function that is called."""
    function = value.owner.owner.operation
    return function.name == "func.func" and "sym_visibility" in function.attributes


def several_results(operations: Operations) -> Iterator[Cut]:
    """Yields the results, of rank 2 or more, of loops that have several results."""
    for operation in operations.of(("stablehlo.reduce", "linalg.generic")):
        results = list(operation.results)
        if len(results) > 1 and len(hlo.shape_of(results[0])) > 1:
            yield from (Cut(result) for result in results if any(True for _ in result.uses))


def widening_before_reductions(operations: Operations) -> Iterator[Cut]:
    """Yields shared values that are computed from narrower arrays and then reduced.

    1. Equal conversions of an array become one, as in IREE.
    2. A shared value has several users, or one user that is not elementwise uses it twice.
    3. Elementwise operations compute the value from arrays. Only the arrays of the highest rank
       count, without axes of one element, as in IREE.
    """
    yield from _equal_conversions(operations)
    elementwise = operations.of(ELEMENTWISE)
    reduced = _reduced(elementwise)
    read: dict[ir.Value, _Read] = {}
    for operation in elementwise:
        leading = min((read.get(x, _read(x)) for x in operation.operands), default=_NOTHING)
        for result in operation.results:
            is_wider = leading != _NOTHING and leading[1] < _real_bits(result) < WIDEST
            if is_wider and result in reduced and _is_shared(result):
                read[result] = _read(result)
                yield Cut(result)
            else:
                read[result] = leading


_Read = tuple[int, int]
"""The negative of the highest rank of the arrays that are read, and the bits of their elements."""
_NOTHING: _Read = (1, 0)


def _equal_conversions(operations: Operations) -> Iterator[Cut]:
    """Yields the conversions that an earlier operation in the same block already computes."""
    made: dict[tuple[ir.Value, ir.Type], ir.Operation] = {}
    for operation in operations.of(("stablehlo.convert",)):
        result = operation.results[0]
        first = made.setdefault((operation.operands[0], result.type), operation)
        if first != operation and first.block == operation.block:
            yield Cut(result, keep=functools.partial(_instead, first.results[0]))


def _instead(other: ir.Value, _: ir.Value) -> ir.Value:
    return other


def _read(value: ir.Value) -> _Read:
    """Returns the rank (negated) and the element width with which an array in memory counts."""
    owner = defining_operation(value)
    if owner is not None and owner.name == "stablehlo.iota":
        return _NOTHING
    return -sum(extent != 1 for extent in hlo.shape_of(value)), _real_bits(value)


def _reduced(operations: list[ir.Operation]) -> set[ir.Value]:
    """Returns the results from which elementwise operations lead to reductions."""
    reduced: set[ir.Value] = set()
    for operation in reversed(operations):
        for result in operation.results:
            users = [use.owner.operation for use in result.uses]
            if any(_is_reduction(x) or not reduced.isdisjoint(x.results) for x in users):
                reduced.add(result)
    return reduced


def _is_reduction(operation: ir.Operation) -> bool:
    return sums_up(operation) or operation.name in WINDOWED or operation.name == CALL


def _is_shared(value: ir.Value) -> bool:
    """Tells whether a value is used by several operations, or twice by one that takes arrays."""
    users = [use.owner.operation for use in value.uses]
    return len(set(users)) > 1 or (len(users) > 1 and _is_reduction(users[0]))


def widening_before_moves(operations: Operations) -> Iterator[Cut]:
    """Yields widened floats that an operation moves, directly or through views."""
    for operation in operations.of(("stablehlo.convert",)):
        (operand,), (result,) = operation.operands, operation.results
        kinds = hlo.element_type_of(operand), hlo.element_type_of(result)
        is_wider = all(isinstance(kind, ir.FloatType) for kind in kinds) and (
            kinds[0].width < kinds[1].width
        )
        if is_wider and _is_moved(result):
            yield Cut(result)


def _is_moved(value: ir.Value) -> bool:
    """Tells whether an operation that moves elements reads an array, or a view of it does."""
    users = [use.owner.operation for use in value.uses]
    return any(
        user.name in MOVES or (user.name in VIEWS and _is_moved(user.results[0])) for user in users
    )


def dilations_beside_pads(operations: Operations) -> Iterator[Cut]:
    """Yields the results of pads between elements, and their operands if these are padded, too."""
    for operation in operations.of(("stablehlo.pad",)):
        if any(ir.DenseI64ArrayAttr(operation.attributes["interior_padding"])):
            if _is_padded(operation.operands[0]):
                yield Cut(operation.operands[0], operation)
            yield Cut(operation.results[0])


def _is_padded(value: ir.Value) -> bool:
    """Tells whether a value is a pad or may be folded to one."""
    behind = values_behind(value, lambda x, _: folded_sources(x))
    return any(operation.name == "stablehlo.pad" for _, operation in behind)


def element_bits(value: ir.Value) -> int:
    """Returns the width of an array's elements."""
    kind = hlo.element_type_of(value)
    return 2 * kind.element_type.width if isinstance(kind, ir.ComplexType) else kind.width


def _real_bits(value: ir.Value) -> int:
    """Returns the width of elements; complex ones, which IREE ignores, count as the widest."""
    return WIDEST if hlo.is_complex(value) else element_bits(value)

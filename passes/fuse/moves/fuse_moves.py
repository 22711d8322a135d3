"""`fuse-moves`: large arrays that are reordered or concatenated, by kernels.

A kernel's operations are read at positions, so that equal positions count once. A position is a
tuple, one entry for each dimension: a number, or something that is equal for equal indices.
Elsewhere: the code of the kernels, which computes each element once (`kernel.py`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable, Iterator, Sequence, Set
from typing import ClassVar

from iree.compiler import ir

from axir.passes.framework.base import Pass
from axir.passes.fuse.elementwise import (
    CHEAP,
    Code,
    can_compute,
    cost_of,
    formula_of,
    is_uniform,
    reducer_of,
    write_out_functions,
)
from axir.passes.fuse.views import VIEWS
from axir.passes.legalize.attributes import dimension_numbers
from axir.passes.legalize.regions import operations_of
from axir.passes.legalize.rewriting import values_behind

from .kernel import Move, run

Position = tuple[Hashable, ...]


def places_of(operation: ir.Operation) -> Position:
    """Returns the position of an arbitrary element of a result."""
    return tuple((operation, d) for d in range(operation.results[0].type.rank))


def read_at(
    user: ir.Operation,
    operation: ir.Operation,
    positions: Set[Position],
    known: dict[Position, int],
) -> Iterator[Position]:
    """Yields the positions at which an operation is read for elements of another one's result.

    Args:
        user: The other operation.
        operation: The operation that it reads.
        positions: The positions of the elements.
        known: Numbers of positions, from which other positions are made; grows.
    """
    for number, operand in enumerate(user.operands):
        if operand.owner == operation:
            for position in positions:
                yield _place(user, number, position, known)


def _place(
    user: ir.Operation, number: int, position: Position, known: dict[Position, int]
) -> Position:
    name = user.name.removeprefix("stablehlo.")
    shape = list(user.operands[number].type.shape)
    if can_compute(user):
        if len(shape) > 1 and shape[-1] == 1:
            # Such arrays may be computed in another shape, again for each reader.
            return tuple((user, number, p) for p in position)
        return position if len(shape) == len(position) else ()
    if name == "reshape":
        extents = user.results[0].type.shape
        rest = iter([p for p, extent in zip(position, extents, strict=True) if extent != 1])
        return tuple(0 if extent == 1 else next(rest) for extent in shape)
    if name == "broadcast_in_dim":
        dims = list(ir.DenseI64ArrayAttr(user.attributes["broadcast_dimensions"]))
        return tuple(0 if n == 1 else position[d] for d, n in zip(dims, shape, strict=True))
    if name == "transpose":
        order = list(ir.DenseI64ArrayAttr(user.attributes["permutation"]))
        return tuple(position[order.index(axis)] for axis in range(len(order)))
    if name == "gather" and number == 1:
        return _of_indices(user, position, len(shape))
    own = known.setdefault(position, len(known))
    return tuple((user, number, own, d) for d in range(len(shape)))


def _of_indices(gather: ir.Operation, position: Position, rank: int) -> Position:
    """Returns the position at which an index vector is read, with all its components."""
    numbers = dimension_numbers(gather.attributes["dimension_numbers"])
    window = numbers["offset_dims"]
    batch: list[Hashable] = [p for d, p in enumerate(position) if d not in window]
    if numbers["index_vector_dim"][0] < rank:
        batch.insert(numbers["index_vector_dim"][0], "all")
    return tuple(batch)


_MOST_ARRAYS = 24
_MOST_OPERATIONS = 250
_MOST_CELLS = 16
_MOST_POSITIONS = 24
_SHORT = 4
# A move of a smaller share of the elements does not justify a kernel: keys of random numbers are
# concatenated from two words.
_PART = 8
# Operations with separate kernels; any other reader would become part of the move's kernel.
_TAKERS = frozenset(
    f"stablehlo.{name}"
    for name in "dot_general convolution reduce reduce_window select_and_scatter sort".split()
)


@dataclasses.dataclass(frozen=True)
class FuseMoves(Pass):
    """Makes kernels of moves of elements in large arrays, with elementwise operations around them.

    The facts: processor time relative to JAX, measured in single runs on a busy machine, with
    IREE's code and with the kernels: 9.3 and 0.9 for `take_along_axis` of 1000x1000, 3.1 and 1.0
    for transpositions of odd extents, 2.5 and 1.0 for a border, 2.2 and 0.7 for strided slices, 3.8
    and 0.75 for a triangle of 1000x1000.

    1. Take results of at least `elements` elements without a reader that has a separate kernel,
       such as a product or a reduction.
    2. Add the operations they are computed from: elementwise ones, moves, and reductions along an
       axis as short as an index vector. Operations with other readers are added if they are cheap.
       Concatenations and pads are added where the result is cut at their ends, or where each piece
       has one element along its axis.
    3. Write a kernel if a move that is slow in IREE is among them, or a comparison of positions, as
       for triangles. The kernel writes the result cell by cell; all elements of a cell are read
       from the same pieces. Where rows become columns, it moves squares of vectors. Cells are
       divided among workgroups.

    Before::

        %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<9x5000xf32>) -> tensor<5000x9xf32>
        %1 = stablehlo.add %0, %y : tensor<5000x9xf32>

    After::

        %1 = flow.dispatch @move_0::@move_0(%x, %y)

    Precondition: functions of numbers have been expanded; gathers are still unchanged.
    """

    name: ClassVar[str] = "fuse-moves"
    elements: int = 1 << 15

    def run(self, module: ir.Module) -> None:
        """Rewrites the functions of the module."""
        write_out_functions(module)
        for function in Code(module).functions.values():
            self._visit(function)

    def _visit(self, parent: ir.Operation) -> None:
        for operations in operations_of(parent):
            self._fuse(operations)
        for operations in operations_of(parent):
            for operation in operations:
                if operation.name in ("stablehlo.while", "stablehlo.if", "stablehlo.case"):
                    self._visit(operation)

    def _fuse(self, operations: list[ir.Operation]) -> None:
        block = _Block(operations)
        found: list[tuple[ir.Operation, ir.Value]] = []
        for operation in reversed(operations):
            if operation not in block.dead and self._is_result(operation, block):
                move = block.move(operation, self.elements // _PART)
                if move is not None:
                    with ir.InsertionPoint(operation), operation.location:
                        found.append((operation, run(move)))
                    block.bury(move.members)
        # Operations are hashed by their operands, so operands change last.
        dead = [operation for operation in reversed(operations) if operation in block.dead]
        for operation, result in found:
            operation.results[0].replace_all_uses_with(result)
        for operation in dead:
            operation.erase()

    def _is_result(self, operation: ir.Operation, block: _Block) -> bool:
        if not _is_lazy(operation) or is_uniform(operation.results[0]):
            return False
        users = block.users(operation)
        kind = operation.results[0].type
        is_large = kind.rank > 0 and math.prod(kind.shape) >= self.elements
        return is_large and bool(users) and not any(x.name in _TAKERS for x in users)


class _Block:
    """A block in which some operations become kernels.

    Args:
        operations: The operations in it.

    Attributes:
        dead: The operations without users.
    """

    def __init__(self, operations: list[ir.Operation]):
        self._order = {operation: number for number, operation in enumerate(operations)}
        self.dead: set[ir.Operation] = set()
        # Operations that need no kernel, because IREE is fast at them; they are searched only once.
        self._plain: set[ir.Operation] = set()

    def users(self, operation: ir.Operation) -> set[ir.Operation]:
        """Returns the operations that use the results of one."""
        found = {use.owner.operation for x in operation.results for use in x.uses}
        return found - self.dead

    def bury(self, members: Sequence[ir.Operation]) -> None:
        """Records which operations have no users once a kernel replaces the last of them."""
        self.dead.add(members[-1])
        for operation in reversed(members):
            if not self.users(operation):
                self.dead.add(operation)

    def move(self, root: ir.Operation, elements: int) -> Move | None:
        """Returns the kernel of a result; None if it needs no slow move of so many elements."""
        if root in self._plain:
            return None
        members = self._members(root)
        inside = sorted(members, key=self._order.__getitem__)
        if not any(_is_slow(x) and math.prod(x.results[0].type.shape) >= elements for x in inside):
            self._plain |= members
            return None
        found = Move(root.results[0], inside, self._aligned(root, members))
        return found if _fits(found) else None

    def _members(self, root: ir.Operation) -> set[ir.Operation]:
        """Returns the operations that become part of the kernel of a result."""
        members = {root}
        positions = {root: {places_of(root)}}  # where it is read for an element of the result
        known: dict[Position, int] = {}
        pending = self._sources(root)
        while pending and len(members) < _MOST_OPERATIONS:
            operation = max(pending, key=self._order.__getitem__)
            pending.discard(operation)
            if not _is_lazy(operation):
                continue
            users = self.users(operation)
            if not (users <= members or _is_cheap(operation)):
                continue
            positions[operation] = {
                place
                for user in users & members
                for place in read_at(user, operation, positions[user], known)
            }
            if len(positions[operation]) > _MOST_POSITIONS:
                continue
            if operation.name in _PIECES and not self._can_cut(operation, root, members):
                continue
            members.add(operation)
            pending |= self._sources(operation) - members
        return members

    def _sources(self, operation: ir.Operation) -> set[ir.Operation]:
        owners = (x.owner for x in operation.operands if not isinstance(x, ir.BlockArgument))
        return {x.operation for x in owners if x.operation in self._order}

    def _can_cut(
        self, operation: ir.Operation, root: ir.Operation, members: set[ir.Operation]
    ) -> bool:
        """Tells whether the piece of each element is known where it is read."""
        if operation in self._aligned(root, members | {operation}):
            return True
        if operation.name == "stablehlo.pad" or len(operation.operands) > _SHORT:
            return False
        axis = ir.IntegerAttr(operation.attributes["dimension"]).value
        return all(x.type.shape[axis] == 1 for x in operation.operands)

    def _aligned(self, root: ir.Operation, members: set[ir.Operation]) -> frozenset[ir.Operation]:
        """Returns the members that are only read at the position of the result."""
        found = {root}
        for operation in sorted(members - {root}, key=self._order.__getitem__, reverse=True):
            users = self.users(operation) & members
            if all(x in found and can_compute(x) for x in users):
                found.add(operation)
        return frozenset(found)


def _is_lazy(operation: ir.Operation) -> bool:
    """Tells whether elements of the result can be computed where they are read."""
    name = operation.name
    if len(operation.results) != 1 or not all(
        map(_is_plain, (*operation.operands, *operation.results))
    ):
        return False
    if name == "stablehlo.constant":
        return is_uniform(operation.results[0])
    if name == "stablehlo.reshape":
        shapes = [list(x.type.shape) for x in (operation.operands[0], operation.results[0])]
        one, other = ([n for n in shape if n != 1] for shape in shapes)
        return one == other
    if name == "stablehlo.reduce":
        return _is_short(operation)
    if name == "stablehlo.pad":
        return not any(ir.DenseI64ArrayAttr(operation.attributes["interior_padding"]))
    return name in VIEWS or name == "stablehlo.concatenate" or can_compute(operation)


def _is_short(reduce: ir.Operation) -> bool:
    axes = list(ir.DenseI64ArrayAttr(reduce.attributes["dimensions"]))
    if len(axes) != 1 or len(reduce.operands) != 2 or not is_uniform(reduce.operands[1]):
        return False
    is_one = reducer_of(reduce) is not None
    is_known = is_one and formula_of(operations_of(reduce)[0][0]) is not None
    return is_known and reduce.operands[0].type.shape[axes[0]] <= _SHORT


def _is_plain(x: ir.Value) -> bool:
    kind = x.type
    if not isinstance(kind, ir.RankedTensorType) or not kind.has_static_shape or 0 in kind.shape:
        return False
    element = kind.element_type
    if isinstance(element, ir.IntegerType):
        return element.width in (1, 8, 16, 32, 64)
    return isinstance(element, (ir.F16Type, ir.BF16Type, ir.F32Type, ir.F64Type))


_PIECES = ("stablehlo.concatenate", "stablehlo.pad")


def _is_cheap(operation: ir.Operation) -> bool:
    return not can_compute(operation) or cost_of(operation.name) <= CHEAP


_COUNTING = frozenset(
    f"stablehlo.{name}" for name in "add subtract broadcast_in_dim convert reshape".split()
)


def _is_slow(operation: ir.Operation) -> bool:
    """Tells whether IREE is slow at a move."""
    name = operation.name.removeprefix("stablehlo.")
    if name == "slice":
        return any(n != 1 for n in ir.DenseI64ArrayAttr(operation.attributes["strides"]))
    if name == "transpose":
        order = list(ir.DenseI64ArrayAttr(operation.attributes["permutation"]))
        shape = operation.operands[0].type.shape
        moved = [axis for axis in order if shape[axis] != 1]
        return moved != sorted(moved)
    if name == "compare":
        return any(map(_counts, operation.operands))
    return name in ("gather", "pad", "concatenate", "reverse")


def _counts(x: ir.Value) -> bool:
    """Tells whether an array holds positions, which IREE computes number by number for a mask."""
    behind = values_behind(x, lambda _, made: made.operands if made.name in _COUNTING else ())
    return any(made.name == "stablehlo.iota" for _, made in behind)


def _fits(move: Move) -> bool:
    is_small = len(move.outside()) < _MOST_ARRAYS and len(move.cells()) <= _MOST_CELLS
    return is_small and any(not is_uniform(x) for x in move.outside())

"""The positions at which a kernel's operations are read, so that equal positions count once.

A position is a tuple, one entry for each dimension: a number, or something that is equal for equal
indices. Elsewhere: that elements are computed once (`kernel.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Set

from iree.compiler import ir

from axir.passes.fuse.elementwise import can_compute
from axir.passes.legalize.dimension_numbers import dimension_numbers

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

"""Operations that write parts of arrays: in place if the old array has no other reader."""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir

from axir.dialect.builders.kernels import branch, shuffle
from axir.dialect.builders.scalars import Scalar, constant, index, integer, operation
from axir.passes.legalize.attributes import dimension_numbers

from .elementwise import combine
from .emitter import Emitter, Rule, lanes_for
from .rearranged import picked
from .values import Index, Indices, Mapped, Stored, Value, clamped, plus, reads, times
from .views import index_at, start_indices


def _dynamic_update_slice(
    emitter: Emitter, created: ir.Operation, operands: list[Value]
) -> Sequence[Value]:
    x, update, *starts = operands
    places = places_of(created, starts)
    if x.size == 1:
        return [update]
    if x.holders > 1:
        update = emitter.force(created.operands[1])
    target = emitter.writable(x)
    emitter.fill(target.memory, update, places)
    return [target]


def places_of(created: ir.Operation, starts: list[Value]) -> Indices:
    """Returns the position of the first element of a `dynamic_update_slice`."""
    x, update = (operand.type.shape for operand in list(created.operands)[:2])
    return tuple(
        clamped(start, extent - part)
        for start, extent, part in zip(start_indices(created, 2, starts), x, update, strict=True)
    )


def _concatenate(emitter: Emitter, created: ir.Operation, operands: list[Value]) -> Sequence[Value]:
    shape = list(created.results[0].type.shape)
    axis = ir.IntegerAttr(created.attributes["dimension"]).value
    result = emitter.place_of(created.results[0])
    is_of_pairs = axis == len(shape) - 1 > 0 and [x.shape[axis] for x in operands] == [1, 1]
    if is_of_pairs and result.element.width >= 8:
        _interleave(emitter, result, [picked(x, axis, 0) for x in operands])
        return [result]
    start = 0
    for x in operands:
        offset: Indices = tuple(start if d == axis else 0 for d in range(len(shape)))
        emitter.fill(result.memory, x, offset)
        start += x.shape[axis]
    return [result]


def _interleave(emitter: Emitter, target: Stored, halves: Sequence[Value]) -> None:
    """Writes pairs in vectors; each of two arrays has one number of a pair."""
    *outer, count, _ = target.shape
    rows = target.memory.reshaped((*outer, 2 * count))

    def write(position: Indices, lanes: int | None) -> None:
        first, second = (x.at(position, lanes) for x in halves)
        if lanes is None:
            for number, x in enumerate((first, second)):
                place = (*position, number)
                target.memory[place] = x
        else:
            order = [lane + half for lane in range(lanes) for half in (0, lanes)]
            rows.write((*position[:-1], times(position[-1], 2)), shuffle(first, second, order))

    may_repeat = not any(reads(x, target.memory) for x in halves)
    emitter.each(target.shape[:-1], write, lanes_for(target.element), may_repeat)


def _pad(emitter: Emitter, created: ir.Operation, operands: list[Value]) -> Sequence[Value]:
    low, interior = (
        list(ir.DenseI64ArrayAttr(created.attributes[name]))
        for name in ("edge_padding_low", "interior_padding")
    )
    x, filler = operands
    return [padded(emitter, x, filler, low, interior, list(created.results[0].type.shape))]


def padded(
    emitter: Emitter,
    x: Value,
    filler: Value,
    low: Sequence[int],
    interior: Sequence[int],
    shape: Sequence[int],
) -> Stored:
    """Returns an array in memory, with another number around it and between its elements.

    Args:
        emitter: Builds the code.
        x: The array.
        filler: The number.
        low: The padding before the first element, by axis; negative padding cuts elements off.
        interior: The padding between two elements, by axis.
        shape: Of the result.
    """
    result = emitter.allocate(shape, x.element)
    emitter.fill(result.memory, Mapped(shape, x.element, lambda number: number, (filler,), 0))
    emitter.release(filler)
    # Negative padding removes elements.
    firsts = [max(0, -(start // (gap + 1))) for start, gap in zip(low, interior, strict=True)]
    ends = [
        min(extent, (length - 1 - start) // (gap + 1) + 1)
        for extent, length, start, gap in zip(x.shape, shape, low, interior, strict=True)
    ]
    kept = [max(0, end - first) for first, end in zip(firsts, ends, strict=True)]

    def write(position: Indices) -> None:
        source = tuple(map(plus, position, firsts))
        place = tuple(
            plus(times(p, gap + 1), start)
            for p, gap, start in zip(source, interior, low, strict=True)
        )
        result.memory[place] = x.at(source, None)

    if x.shape == tuple(kept) and not any(interior):
        emitter.fill(result.memory, x, tuple(low))
    elif all(kept):
        emitter.nest(kept, write)
    return result


def _scatter(emitter: Emitter, created: ir.Operation, operands: list[Value]) -> Sequence[Value]:
    x, indices, updates = operands
    if x.holders > 1:
        indices, updates = map(emitter.force, list(created.operands)[1:])
    # An array may be scattered into itself: its old elements are read while it changes.
    target = emitter.copied(x) if x in (indices, updates) else emitter.writable(x)
    windows = _Windows(created, target.shape, indices, updates)

    def one(batch: Indices) -> None:
        starts = windows.starts(batch)
        is_inside = windows.is_inside(starts)

        def write(place: Indices, lanes: int | None) -> None:
            where = windows.target(batch, starts, place)
            update = updates.at(windows.source(batch, place), lanes)
            old = target.memory[where] if lanes is None else target.memory.read(where, lanes)
            [new] = combine(created, [old, update])
            if lanes is None:
                target.memory[where] = new
            else:
                target.memory.write(where, new)

        def inside() -> None:
            if windows.has_rows:
                emitter.each(windows.window_shape, write, lanes_for(x.element), may_repeat=False)
            else:
                emitter.nest(windows.window_shape, lambda place: write(place, None))

        branch(is_inside, inside, lambda: None)

    emitter.nest(windows.batch_shape, one)
    return [target]


class _Windows:
    """The positions of a scatter's windows in its updates and in its operand."""

    def __init__(
        self, created: ir.Operation, shape: tuple[int, ...], indices: Value, updates: Value
    ):
        self.numbers = dimension_numbers(created.attributes["scatter_dimension_numbers"])
        self.shape, self.indices = shape, indices
        self.vector_dim = self.numbers["index_vector_dim"][0]
        self.is_unsigned = created.operands[1].type.element_type.is_unsigned
        rank = len(updates.shape)
        self.window_dims = self.numbers["update_window_dims"]
        self.batch_dims = [d for d in range(rank) if d not in self.window_dims]
        dropped = {*self.numbers["inserted_window_dims"], *self.numbers["input_batching_dims"]}
        self.kept = [d for d in range(len(shape)) if d not in dropped]
        self.window_shape = [updates.shape[d] for d in self.window_dims]
        self.batch_shape = [updates.shape[d] for d in self.batch_dims]
        sizes = [1] * len(shape)
        for d, extent in zip(self.kept, self.window_shape, strict=True):
            sizes[d] = extent
        self.sizes = sizes
        self.has_rows = (
            bool(self.window_dims)
            and self.window_dims[-1] == rank - 1
            and self.kept[-1] == len(shape) - 1
        )

    def starts(self, batch: Indices) -> dict[int, Scalar]:
        """Returns the start of a window, by dimensions of the operand."""
        found = {}
        for entry, dim in enumerate(self.numbers["scatter_dims_to_operand_dims"]):
            at = list(batch)
            if self.vector_dim < len(self.indices.shape):
                at.insert(self.vector_dim, entry)
            found[dim] = index_at(self.indices, tuple(at), is_unsigned=self.is_unsigned)
        return found

    def is_inside(self, starts: dict[int, Scalar]) -> Scalar:
        """Tells whether the whole window is inside the operand."""
        truth = constant(1, integer(1))
        for dim, start in starts.items():
            # Unsigned: negative numbers are too large.
            predicate = ir.IntegerAttr.get(integer(64), 7)
            bound = index(self.shape[dim] - self.sizes[dim])
            fits = operation("arith.cmpi", (start, bound), integer(1), {"predicate": predicate})
            truth = truth & fits
        return truth

    def target(self, batch: Indices, starts: dict[int, Scalar], window: Indices) -> Indices:
        found: list[Index] = [0] * len(self.shape)
        for dim, start in starts.items():
            found[dim] = start
        batching = (
            self.numbers["input_batching_dims"],
            self.numbers["scatter_indices_batching_dims"],
        )
        for dim, source in zip(*batching, strict=True):
            found[dim] = batch[source - (source > self.vector_dim)]
        for dim, place in zip(self.kept, window, strict=True):
            found[dim] = plus(found[dim], place)
        return tuple(found)

    def source(self, batch: Indices, window: Indices) -> Indices:
        """Returns the position of an update."""
        found: list[Index] = [0] * (len(batch) + len(window))
        dims = (*self.batch_dims, *self.window_dims)
        for dim, place in zip(dims, (*batch, *window), strict=True):
            found[dim] = place
        return tuple(found)


RULES: dict[str, Rule] = {
    "stablehlo.concatenate": _concatenate,
    "stablehlo.dynamic_update_slice": _dynamic_update_slice,
    "stablehlo.pad": _pad,
    "stablehlo.scatter": _scatter,
}

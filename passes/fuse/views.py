"""Parts and other orders of arrays, which cost nothing until they are read.

What does not live here: operations that write (`updates.py`), and those that read an element many
times (`reductions.py`, `products.py`).
"""

from __future__ import annotations

from collections.abc import Callable

from iree.compiler import ir

from axir.dialect.builders.scalars import (
    Scalar,
    broadcast,
    index,
    integer,
    operation,
    signless,
)
from axir.passes.legalize.dimension_numbers import dimension_numbers

from .values import (
    Computed,
    Index,
    Indices,
    Mapped,
    Number,
    Stored,
    Value,
    clamped,
    elements_apart,
    lanes_of,
    plus,
    times,
)

View = Callable[[ir.Operation, list[Value]], Value]


def _array(created: ir.Operation, attribute: str) -> list[int]:
    return list(ir.DenseI64ArrayAttr(created.attributes[attribute]))


def _result(created: ir.Operation) -> tuple[list[int], ir.Type]:
    kind = created.results[0].type
    return list(kind.shape), signless(kind.element_type)


def _broadcast_in_dim(created: ir.Operation, operands: list[Value]) -> Value:
    [x] = operands
    shape, element = _result(created)
    dims = _array(created, "broadcast_dimensions")
    if isinstance(x, Number):
        return Mapped(shape, element, lambda number: number, (x,), 0)
    keeps_last = bool(dims) and dims[-1] == len(shape) - 1 and x.shape[-1] == shape[-1]

    def read(position: Indices, lanes: int | None) -> Scalar:
        place = tuple(
            position[d] if extent != 1 else 0 for d, extent in zip(dims, x.shape, strict=True)
        )
        return x.at(place, lanes) if keeps_last else broadcast(x.at(place, None), lanes)

    return Computed(shape, element, read, (x,))


def _transpose(created: ir.Operation, operands: list[Value]) -> Value:
    [x] = operands
    shape, element = _result(created)
    order = _array(created, "permutation")
    keeps_last = not order or order[-1] == len(order) - 1

    def place(position: Indices) -> Indices:
        found: list[Index] = [0] * len(order)
        for axis, source in enumerate(order):
            found[source] = position[axis]
        return tuple(found)

    def read(position: Indices, lanes: int | None) -> Scalar:
        if lanes is None or keeps_last:
            return x.at(place(position), lanes)
        return elements_apart(x, [place(p) for p in lanes_of(position, lanes)])

    return Computed(shape, element, read, (x,))


def _slice(created: ir.Operation, operands: list[Value]) -> Value:
    [x] = operands
    shape, element = _result(created)
    starts, strides = _array(created, "start_indices"), _array(created, "strides")
    return _strided(x, shape, element, starts, strides)


def _reverse(created: ir.Operation, operands: list[Value]) -> Value:
    [x] = operands
    shape, element = _result(created)
    dims = _array(created, "dimensions")
    starts = [extent - 1 if d in dims else 0 for d, extent in enumerate(shape)]
    strides = [-1 if d in dims else 1 for d in range(len(shape))]
    return _strided(x, shape, element, starts, strides)


def _strided(
    x: Value, shape: list[int], element: ir.Type, starts: list[int], strides: list[int]
) -> Value:
    def place(position: Indices) -> Indices:
        return tuple(
            plus(times(p, stride), start)
            for p, start, stride in zip(position, starts, strides, strict=True)
        )

    def read(position: Indices, lanes: int | None) -> Scalar:
        if lanes is None or strides[-1] == 1:
            return x.at(place(position), lanes)
        return elements_apart(x, [place(p) for p in lanes_of(position, lanes)])

    return Computed(shape, element, read, (x,))


def index_at(x: Value, position: Indices, *, is_unsigned: bool) -> Scalar:
    """Reads an integer as an index."""
    name = "arith.index_castui" if is_unsigned else "arith.index_cast"
    return operation(name, (x.at(position, None),), ir.IndexType.get())


def start_indices(created: ir.Operation, first: int, starts: list[Value]) -> list[Scalar]:
    """Returns the start indices of a dynamic slice or update, its operands from `first` on."""
    return [
        index_at(start, (), is_unsigned=operand.type.element_type.is_unsigned)
        for start, operand in zip(starts, list(created.operands)[first:], strict=True)
    ]


def _dynamic_slice(created: ir.Operation, operands: list[Value]) -> Value:
    x, *starts = operands
    shape, element = _result(created)
    places = [
        clamped(start, extent - part)
        for start, extent, part in zip(
            start_indices(created, 1, starts), x.shape, shape, strict=True
        )
    ]

    def read(position: Indices, lanes: int | None) -> Scalar:
        return x.at(tuple(map(plus, position, places)), lanes)

    return Computed(shape, element, read, (x,))


def _iota(created: ir.Operation, operands: list[Value]) -> Value:
    shape, element = _result(created)
    axis = ir.IntegerAttr(created.attributes["iota_dimension"]).value

    def read(position: Indices, lanes: int | None) -> Scalar:
        number = index(position[axis])
        if lanes is not None:
            number = broadcast(number, lanes)
            if axis == len(shape) - 1:
                number = number + operation("vector.step", (), number.type)
        if isinstance(element, ir.FloatType):
            whole = operation("arith.index_cast", (number,), number.like(integer(64)))
            return operation("arith.sitofp", (whole,), number.like(element))
        return operation("arith.index_cast", (number,), number.like(element))

    return Computed(shape, element, read, cost=1)


def _gather(created: ir.Operation, operands: list[Value]) -> Value:
    x, indices = operands
    shape, element = _result(created)
    numbers = dimension_numbers(created.attributes["dimension_numbers"])
    sizes = _array(created, "slice_sizes")
    vector_dim = numbers["index_vector_dim"][0]
    offset_dims = numbers["offset_dims"]
    batch_dims = [d for d in range(len(shape)) if d not in offset_dims]
    dropped = {*numbers["collapsed_slice_dims"], *numbers["operand_batching_dims"]}
    window_dims = [d for d in range(len(sizes)) if d not in dropped]
    is_unsigned = created.operands[1].type.element_type.is_unsigned
    keeps_last = (
        bool(offset_dims)
        and offset_dims[-1] == len(shape) - 1
        and window_dims[-1] == len(sizes) - 1
    )

    def place(position: Indices) -> Indices:
        batch = [position[d] for d in batch_dims]
        found: list[Index] = [0] * len(sizes)
        for entry, dim in enumerate(numbers["start_index_map"]):
            at = list(batch)
            if vector_dim < len(indices.shape):
                at.insert(vector_dim, entry)
            start = index_at(indices, tuple(at), is_unsigned=is_unsigned)
            found[dim] = clamped(start, x.shape[dim] - sizes[dim])
        for dim, source in zip(
            numbers["operand_batching_dims"], numbers["start_indices_batching_dims"], strict=True
        ):
            found[dim] = batch[source - (source > vector_dim)]
        for dim, window in zip(offset_dims, window_dims, strict=True):
            found[window] = plus(found[window], position[dim])
        return tuple(found)

    def read(position: Indices, lanes: int | None) -> Scalar:
        if lanes is None or keeps_last:
            return x.at(place(position), lanes)
        return elements_apart(x, [place(p) for p in lanes_of(position, lanes)])

    return Computed(shape, element, read, (x, indices), cost=0 if keeps_last else 4)


VIEWS: dict[str, View] = {
    "stablehlo.broadcast_in_dim": _broadcast_in_dim,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.gather": _gather,
    "stablehlo.iota": _iota,
    "stablehlo.reverse": _reverse,
    "stablehlo.slice": _slice,
    "stablehlo.transpose": _transpose,
}
"""What operations that only move elements become."""


def reshaped(x: Value, shape: list[int]) -> Value | None:
    """Returns an array with the same elements in another shape; None if it must be stored first."""
    if isinstance(x, Stored):
        return Stored(x.memory.reshaped(shape), is_own=False, sources=(x,))
    if [n for n in x.shape if n != 1] != [n for n in shape if n != 1]:
        return None
    # Axes of extent 1 come and go.
    if x.shape and shape and (x.shape[-1] == 1) != (shape[-1] == 1):
        keeps_last = False
    else:
        keeps_last = True

    def place(position: Indices) -> Indices:
        rest = iter(p for p, extent in zip(position, shape, strict=True) if extent != 1)
        return tuple(0 if extent == 1 else next(rest) for extent in x.shape)

    def read(position: Indices, lanes: int | None) -> Scalar:
        if lanes is None or keeps_last:
            return x.at(place(position), lanes)
        return elements_apart(x, [place(p) for p in lanes_of(position, lanes)])

    return Computed(shape, x.element, read, (x,))

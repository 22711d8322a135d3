"""Parts and reorderings of arrays, which cost nothing until they are read.

Elsewhere: operations that write (`updates.py`), and operations that read an element many times
(`reductions.py`, `products.py`).
"""

from __future__ import annotations

from collections.abc import Callable

from iree.compiler import ir

from axir.dialect.builders.kernels import lanes as lane_numbers
from axir.dialect.builders.scalars import (
    Scalar,
    broadcast,
    index,
    integer,
    operation,
    signless,
)

from .gathers import gather, index_at
from .rearranged import Half, Reshaped, Spread, Transposed
from .values import (
    Computed,
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

_LARGEST_OF_32_BITS = (1 << 31) - 1

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
    return Spread(x, shape, element, dims)


def _transpose(created: ir.Operation, operands: list[Value]) -> Value:
    [x] = operands
    shape, element = _result(created)
    return Transposed(x, shape, element, _array(created, "permutation"))


def _slice(created: ir.Operation, operands: list[Value]) -> Value:
    [x] = operands
    shape, element = _result(created)
    starts, strides = _array(created, "start_indices"), _array(created, "strides")
    is_half = len(shape) > 1 and [*x.shape[:-1], 1] == shape and x.shape[-1] == 2
    if is_half and isinstance(x, Stored):
        return Half(x, starts[-1])
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

    # Counted in the width of the elements: vectors of indices are twice as wide.
    is_float = isinstance(element, ir.FloatType)
    counted = integer(64 if shape[axis] > _LARGEST_OF_32_BITS else 32) if is_float else element

    def read(position: Indices, lanes: int | None) -> Scalar:
        number = operation("arith.index_cast", (index(position[axis]),), counted)
        if lanes is not None:
            number = broadcast(number, lanes)
            if axis == len(shape) - 1:
                steps = lane_numbers(lanes)
                number = number + operation("arith.index_cast", (steps,), number.type)
        if is_float:
            return operation("arith.sitofp", (number,), number.like(element))
        return number

    return Computed(shape, element, read, cost=1)


VIEWS: dict[str, View] = {
    "stablehlo.broadcast_in_dim": _broadcast_in_dim,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.gather": gather,
    "stablehlo.iota": _iota,
    "stablehlo.reverse": _reverse,
    "stablehlo.slice": _slice,
    "stablehlo.transpose": _transpose,
}
"""What operations that only move elements become."""


def reshaped(x: Value, shape: list[int]) -> Value | None:
    """Returns an array with the same elements in another shape; None if it must be stored first."""
    return _reshaped(x, shape) if _may_be_reshaped(x, shape) else None


def _may_be_reshaped(x: Value, shape: list[int]) -> bool:
    if isinstance(x, (Stored, Number)) or _differ_in_ones(x, shape):
        return True
    return isinstance(x, Mapped) and all(_may_be_reshaped(y, shape) for y in x.sources)


def _reshaped(x: Value, shape: list[int]) -> Value:
    if isinstance(x, Stored):
        return Stored(x.memory.reshaped(shape), is_own=False, sources=(x,))
    if _differ_in_ones(x, shape):
        return Reshaped(x, shape)
    if isinstance(x, Mapped):
        sources = [_reshaped(source, shape) for source in x.sources]
        return Mapped(shape, x.element, x.formula, sources, x.own_cost)
    return Mapped(shape, x.element, lambda number: number, (x,), 0)


def _differ_in_ones(x: Value, shape: list[int]) -> bool:
    return [n for n in x.shape if n != 1] == [n for n in shape if n != 1]

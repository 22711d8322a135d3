"""Products of small matrices and vectors in a kernel.

Sums run over the contracted dimension in vectors along the last dimension of the result, several at
a time, or, where only the contracted dimension is contiguous, along that one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from iree.compiler import ir

from axir.dialect.builders.kernels import any_lane, is_short, loop, loops_in_blocks, sum_of_lanes
from axir.dialect.builders.scalars import (
    Scalar,
    broadcast,
    constant,
    convert_float,
    float32,
    fused_multiply_add,
    operation,
    signless,
)
from axir.passes.legalize.attributes import dimension_numbers

from .emitter import Emitter, Rule, lanes_for, pieces
from .factors import is_read_in_strips, sum_in_strips
from .values import (
    Computed,
    Index,
    Indices,
    Mapped,
    Number,
    Stored,
    Value,
    elements_apart,
    plus,
)

_VECTORS_AT_ONCE = 4

# A tile of the result has so many rows, of so many vectors each: eight sums hide the latency of
# one, and they fit into the registers together with their operands.
_ROWS_OF_TILE = 4
_VECTORS_OF_TILE = 2


@dataclass(frozen=True)
class _Product:
    """A product: its operands, and the roles of their dimensions.

    Attributes:
        lhs: The left operand.
        rhs: The right one.
        lhs_dims: For each dimension of `lhs`, ("batch" | "sum" | "free", number).
        rhs_dims: The same for `rhs`; its free dimensions are numbered after the ones of `lhs`.
        shape: The shape of the result: batch, free of `lhs`, free of `rhs`.
        sums: The extents of the contracted dimensions.
        element: The type of the sums.
    """

    lhs: Value
    rhs: Value
    lhs_dims: tuple[tuple[str, int], ...]
    rhs_dims: tuple[tuple[str, int], ...]
    shape: tuple[int, ...]
    sums: tuple[int, ...]
    element: ir.Type

    def place(self, dims: tuple[tuple[str, int], ...], position: Indices, k: Indices) -> Indices:
        found: list[Index] = [k[n] if kind == "sum" else position[n] for kind, n in dims]
        return tuple(found)

    def factors(
        self, position: Indices, k: Indices, lanes: int | None, along: str
    ) -> tuple[Scalar, Scalar]:
        """Reads elements of both operands; lanes run along the last dimension or along the sum."""
        return (
            self._factor(self.lhs, self.lhs_dims, position, k, lanes, along),
            self._factor(self.rhs, self.rhs_dims, position, k, lanes, along),
        )

    def _factor(
        self,
        x: Value,
        dims: tuple[tuple[str, int], ...],
        position: Indices,
        k: Indices,
        lanes: int | None,
        along: str,
    ) -> Scalar:
        wanted = ("sum", len(self.sums) - 1) if along == "sum" else ("free", len(self.shape) - 1)
        place = self.place(dims, position, k)
        if lanes is None or wanted not in dims:
            return broadcast(self.widened(x.at(place, None)), lanes)
        if dims[-1] == wanted:
            return self.widened(x.at(place, lanes))
        axis = dims.index(wanted)
        places = [(*place[:axis], plus(place[axis], n), *place[axis + 1 :]) for n in range(lanes)]
        return self.widened(elements_apart(x, places))

    def widened(self, x: Scalar) -> Scalar:
        """Returns a factor in the type of the sums."""
        if x.element == self.element:
            return x
        if isinstance(self.element, ir.FloatType) and x.is_float:
            return convert_float(x, self.element)
        kinds = ("arith.uitofp", "arith.extui") if _is_truth(x) else ("arith.sitofp", "arith.extsi")
        name = kinds[0] if isinstance(self.element, ir.FloatType) else kinds[1]
        return operation(name, (x,), x.like(self.element))

    def is_contiguous(self, dims: tuple[tuple[str, int], ...], wanted: tuple[str, int]) -> bool:
        return bool(dims) and (dims[-1] == wanted or wanted not in dims)


def _dot_general(emitter: Emitter, created: ir.Operation, operands: list[Value]) -> Sequence[Value]:
    kind = created.results[0].type
    element = signless(kind.element_type)
    product = _product_of(created, [emitter.settled(x) for x in operands], element)
    if not product.sums:
        sources = product.lhs, product.rhs

        def outer(position: Indices, lanes: int | None) -> Scalar:
            x, y = product.factors(position, (), lanes, "free")
            return convert_back(x * y)

        def convert_back(x: Scalar) -> Scalar:
            return convert_float(x, element) if x.is_float else x

        return [Computed(kind.shape, element, outer, sources, 1)]
    if all(extent == 1 for extent in product.shape):
        position = (0,) * len(product.shape)
        return [Number(product.shape, _rounded(_along_sum(product, [position])[0], element))]
    result = emitter.allocate(product.shape, element)
    last = ("free", len(product.shape) - 1)
    reads_rows = product.is_contiguous(product.lhs_dims, last) and product.is_contiguous(
        product.rhs_dims, last
    )
    if reads_rows and any(
        dims and dims[-1] == last for dims in (product.lhs_dims, product.rhs_dims)
    ):
        if _is_in_strips(product):
            _by_strips(emitter, product, result)
        else:
            _by_columns(emitter, product, result)
    else:
        _by_rows(emitter, product, result)
    return [result]


def _product_of(created: ir.Operation, operands: list[Value], element: ir.Type) -> _Product:
    lhs, rhs = operands
    numbers = dimension_numbers(created.attributes["dot_dimension_numbers"])
    lhs_batch, rhs_batch = numbers["lhs_batching_dimensions"], numbers["rhs_batching_dimensions"]
    lhs_sum = numbers["lhs_contracting_dimensions"]
    rhs_sum = numbers["rhs_contracting_dimensions"]
    shape = [lhs.shape[d] for d in lhs_batch]

    def roles(x: Value, batch: Sequence[int], sums: Sequence[int]) -> tuple[tuple[str, int], ...]:
        found = []
        for d, extent in enumerate(x.shape):
            if d in batch:
                found.append(("free", batch.index(d)))
            elif d in sums:
                found.append(("sum", sums.index(d)))
            else:
                found.append(("free", len(shape)))
                shape.append(extent)
        return tuple(found)

    lhs_roles = roles(lhs, lhs_batch, lhs_sum)
    rhs_roles = roles(rhs, rhs_batch, rhs_sum)
    wide = element
    if isinstance(element, ir.FloatType) and element.width < 32:
        wide = float32()
    extents = tuple(lhs.shape[d] for d in lhs_sum)
    return _Product(lhs, rhs, lhs_roles, rhs_roles, tuple(shape), extents, wide)


def _add_product(total: Scalar, x: Scalar, y: Scalar) -> Scalar:
    return fused_multiply_add(x, y, total) if x.is_float else _sum(total, x * y)


def _sum(x: Scalar, y: Scalar) -> Scalar:
    """Returns a sum; the sum of booleans is true if one of them is."""
    return operation("arith.ori", (x, y), x.type) if _is_truth(x) else x + y


def _is_truth(x: Scalar) -> bool:
    return not x.is_float and x.element.width == 1


def _added(x: Sequence[Scalar], y: Sequence[Scalar]) -> tuple[Scalar, ...]:
    return tuple(_sum(a, b) for a, b in zip(x, y, strict=True))


def _rounded(x: Scalar, element: ir.Type) -> Scalar:
    return convert_float(x, element) if x.is_float else x


def _along_sum(product: _Product, positions: Sequence[Indices]) -> tuple[Scalar, ...]:
    """Sums some elements of the result, in vectors along the contracted dimension."""
    zero = constant(0, product.element)
    totals = (zero,) * len(positions)
    last = ("sum", len(product.sums) - 1)
    is_row = all(dims[-1] == last for dims in (product.lhs_dims, product.rhs_dims))
    widest = lanes_for(product.element) if is_row else 1
    ranges = [(0, extent, 1) for extent in product.sums[:-1]]
    for lower, upper, lanes in pieces(product.sums[-1], widest):
        step = _step(product, positions, lanes, "sum")
        places = [*ranges, (lower, upper, lanes)]
        if lanes == 1:
            if is_short(places):
                totals = loops_in_blocks(places, totals, step, _added)
            else:
                parts = loops_in_blocks(places, [zero] * len(totals), step, _added)
                totals = _added(totals, parts)
            continue
        parts = loops_in_blocks(places, [broadcast(zero, lanes)] * len(totals), step, _added)
        total = any_lane if product.element.width == 1 else sum_of_lanes
        totals = _added(totals, [total(part) for part in parts])
    return totals


def _step(
    product: _Product, positions: Sequence[Indices], lanes: int, along: str
) -> Callable[[Indices, Sequence[Scalar]], Sequence[Scalar]]:
    """Returns a function that adds the products at an index of the sum to some totals."""
    width = None if lanes == 1 else lanes

    def step(k: Indices, totals: Sequence[Scalar]) -> Sequence[Scalar]:
        return [
            _add_product(total, *product.factors(position, k, width, along))
            for position, total in zip(positions, totals, strict=True)
        ]

    return step


def _by_rows(emitter: Emitter, product: _Product, result: Stored) -> None:
    """Computes elements one by one; some neighbours, which share a factor, at a time."""
    last = product.shape[-1]

    def rows(places: Sequence[Indices]) -> None:
        side_by_side = _VECTORS_AT_ONCE if len(places) == 1 else _VECTORS_OF_TILE
        whole = last // side_by_side * side_by_side

        def block(first: Index, count: int) -> None:
            positions = [(*place, plus(first, n)) for place in places for n in range(count)]
            for position, total in zip(positions, _along_sum(product, positions), strict=True):
                result.memory[position] = _rounded(total, result.element)

        if whole:
            loop(0, whole, (), lambda j: block(j, side_by_side), stride=side_by_side)
        if last > whole:
            block(whole, last - whole)

    _each_rows(emitter, product, rows)


def _is_in_strips(product: _Product) -> bool:
    """Tells whether it is a product of a vector and a large matrix that is stored row by row."""
    columns = product.shape[-1]
    if len(product.sums) != 1 or columns != math.prod(product.shape) or product.element.width == 1:
        return False
    last, row = ("free", len(product.shape) - 1), ("sum", 0)
    sides = (product.lhs, product.lhs_dims), (product.rhs, product.rhs_dims)
    return any(
        isinstance(x, Stored)
        and dims[-2:] == (row, last)
        and last not in other
        and is_read_in_strips(product.sums[0], columns, x.element)
        for (x, dims), (_, other) in (sides, sides[::-1])
    )


def _by_strips(emitter: Emitter, product: _Product, result: Stored) -> None:
    """Sums rows of a matrix, some at a time."""
    columns, zeros = product.shape[-1], (0,) * (len(product.shape) - 1)
    is_wide = product.element == result.element
    totals = result if is_wide else emitter.allocate((columns,), product.element)
    is_rhs = product.rhs_dims[-2:] == (("sum", 0), ("free", len(product.shape) - 1))
    vector, matrix = (
        (product.lhs, product.lhs_dims),
        (product.rhs, product.rhs_dims),
    )[:: 1 if is_rhs else -1]

    def factors(first: Index, count: int) -> Callable[[Indices, int | None, Scalar], Scalar]:
        places = [plus(first, n) for n in range(count)]
        x, dims = vector
        numbers = [
            product.widened(x.at(product.place(dims, (*zeros, 0), (k,)), None)) for k in places
        ]

        def add(position: Indices, lanes: int | None, total: Scalar) -> Scalar:
            x, dims = matrix
            for k, number in zip(places, numbers, strict=True):
                row = x.at(product.place(dims, (*zeros, *position), (k,)), lanes)
                total = _add_product(total, broadcast(number, lanes), product.widened(row))
            return total

        return add

    sum_in_strips(emitter, product.sums[0], totals.memory.reshaped((columns,)), factors)
    if not is_wide:
        rounded = Mapped(
            (columns,), result.element, lambda x: _rounded(x, result.element), (totals,), 0
        )
        emitter.fill(result.memory.reshaped((columns,)), rounded)
        emitter.release(rounded, 0)


def _by_columns(emitter: Emitter, product: _Product, result: Stored) -> None:
    last = product.shape[-1]
    widest = lanes_for(product.element)
    ranges = [(0, extent, 1) for extent in product.sums]

    def rows(places: Sequence[Indices]) -> None:
        side_by_side = _VECTORS_AT_ONCE if len(places) == 1 else _VECTORS_OF_TILE
        for start, end, lanes in pieces(last, widest):
            width = None if lanes == 1 else lanes
            group = side_by_side * lanes
            whole = start + (end - start) // group * group if width else start
            if whole > start:
                block(places, start, whole, lanes, side_by_side)
            if end > whole:
                block(places, whole, end, lanes, 1)

    def block(places: Sequence[Indices], start: int, end: int, lanes: int, count: int) -> None:
        def columns(j: Index) -> None:
            _columns(product, result, ranges, (places, j, lanes, count))

        if end - start == lanes * count:
            columns(start)
        else:
            loop(start, end, (), columns, stride=lanes * count)

    _each_rows(emitter, product, rows)


def _each_rows(
    emitter: Emitter, product: _Product, body: Callable[[Sequence[Indices]], None]
) -> None:
    """Runs `body` for rows of the result: for several at a time where they share a factor.

    Elements of that factor are then read once for all of them.
    """
    *outer, count = product.shape[:-1] or (1,)
    at_once = _ROWS_OF_TILE if count >= _ROWS_OF_TILE and _rows_share_factor(product) else 1
    whole = count // at_once * at_once

    def rows(place: Indices) -> None:
        def some(first: Index, number: int) -> None:
            if len(product.shape) == 1:
                body([()])
            else:
                body([(*place, plus(first, n)) for n in range(number)])

        if whole == at_once:
            some(0, at_once)
        else:
            loop(0, whole, (), lambda i: some(i, at_once), stride=at_once)
        if count > whole:
            some(whole, count - whole)

    emitter.nest(outer, rows)


def _rows_share_factor(product: _Product) -> bool:
    """Tells whether one factor has the rows of the result, and the other one its columns."""
    row, column = (("free", len(product.shape) - n) for n in (2, 1))
    sides = product.lhs_dims, product.rhs_dims
    return any(
        row in one and column not in one and row not in other for one, other in (sides, sides[::-1])
    )


def _columns(
    product: _Product,
    result: Stored,
    ranges: Sequence[tuple[int, int, int]],
    where: tuple[Sequence[Indices], Index, int, int],
) -> None:
    """Computes some adjacent vectors, in one row of the result or in several."""
    places, j, lanes, count = where
    width = None if lanes == 1 else lanes
    positions = [(*place, plus(j, n * lanes)) for place in places for n in range(count)]
    zeros = [broadcast(constant(0, product.element), width)] * len(positions)
    totals = loops_in_blocks(ranges, zeros, _step(product, positions, lanes, "free"), _added)
    for position, total in zip(positions, totals, strict=True):
        rounded = _rounded(total, result.element)
        if width is None:
            result.memory[position] = rounded
        else:
            result.memory.write(position, rounded)


RULES: dict[str, Rule] = {"stablehlo.dot_general": _dot_general}

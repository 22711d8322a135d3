"""Large factors of products: transposed outside of loops, and read row by row.

A product of a vector and a large matrix reads several rows side by side, from the first element to
the last, and the sums of columns are kept in memory. With sums in registers, a few columns of one
row after the other would be read. For a matrix of 2000x2000 that took 0.4 to 1.3 ms, and rows side
by side took 0.3 to 0.4.

Elsewhere: products without such a matrix (`products.py`).
"""

from __future__ import annotations

from collections.abc import Callable

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.kernels import Memory, is_short, loop
from axir.dialect.builders.scalars import Scalar, broadcast, constant
from axir.passes.legalize.attributes import DimensionNumbers, dimension_numbers
from axir.passes.legalize.regions import operations_within
from axir.passes.legalize.rewriting import replace

from .emitter import Emitter, lanes_for
from .values import Index, Indices, plus

# From so many terms on, sums along rows of both factors take no longer than sums along columns:
# 1.2 times as long for 256 terms, 0.8 for 512 and 1024. A transposition takes as long as 5 passes.
_LONG = 512


def transpose_factors(loop: ir.Operation, outside: set[ir.Value]) -> None:
    """Transposes outer matrices that products in a loop read by columns, so that they read rows.

    A product runs over its result in vectors, which are rows of the operand that has the last
    dimension; the matrix of `matrix @ vector` must be transposed for that, once, in front of the
    loop. A matrix with long rows is not transposed: then the vectors run along the sum.
    """
    for created in list(operations_within(loop)):
        if created.name == "stablehlo.dot_general":
            _transpose_factor(created, outside, loop)


def _transpose_factor(created: ir.Operation, outside: set[ir.Value], loop: ir.Operation) -> None:
    numbers = dimension_numbers(created.attributes["dot_dimension_numbers"])
    for number, side in ((1, "rhs"), (0, "lhs")):
        factor = created.operands[number]
        batch = list(numbers[f"{side}_batching_dimensions"])
        sums = list(numbers[f"{side}_contracting_dimensions"])
        free = [d for d in range(factor.type.rank) if d not in batch + sums]
        if not free:
            continue
        if _has_long_rows(created, numbers):
            return
        if factor in outside and free[-1] != factor.type.rank - 1:
            with ir.InsertionPoint(loop):
                rows = hlo.transpose(factor, [*batch, *sums, *free])
            with ir.InsertionPoint(created):
                _replace_factor(created, number, rows, len(batch), len(sums))
        return


def _has_long_rows(created: ir.Operation, numbers: DimensionNumbers) -> bool:
    """Tells whether both factors are contiguous along the last sum, and it has enough terms."""
    for operand, side in zip(created.operands, ("lhs", "rhs"), strict=True):
        sums = list(numbers[f"{side}_contracting_dimensions"])
        last = operand.type.rank - 1
        if sums[-1:] != [last] or operand.type.shape[last] < _LONG:
            return False
    return True


def _replace_factor(
    created: ir.Operation, number: int, rows: ir.Value, batch: int, sums: int
) -> None:
    numbers = dimension_numbers(created.attributes["dot_dimension_numbers"])
    side = ("lhs", "rhs")[number]
    lists = {name: list(numbers[name]) for name in _LISTS}
    lists[f"{side}_batching_dimensions"] = list(range(batch))
    lists[f"{side}_contracting_dimensions"] = list(range(batch, batch + sums))
    attributes = {name: created.attributes[name] for name in created.attributes}
    attributes["dot_dimension_numbers"] = hlo.attribute(
        f"#stablehlo.dot<{', '.join(f'{name} = {dims}' for name, dims in lists.items())}>"
    )
    operands = list(created.operands)
    operands[number] = rows
    kinds = [created.results[0].type]
    made = hlo.build("dot_general", created.name, operands, kinds, attributes)
    replace(created, made.result)


_LISTS = [
    f"{side}_{kind}_dimensions" for kind in ("batching", "contracting") for side in ("lhs", "rhs")
]


# The number of rows side by side, and of rows after which a new sum begins, so that errors stay
# small.
_ROWS = 8
_BLOCK = 64
_LARGE = 1 << 20

Add = Callable[[Index, int], Callable[[Indices, int | None, Scalar], Scalar]]
"""Takes a row and how many follow, and returns what adds their products to a sum of columns."""


def is_read_in_strips(rows: int, columns: int, element: ir.Type) -> bool:
    """Tells whether a matrix is larger than the cache of a core, and its sums need few blocks."""
    size = rows * columns * hlo.element_bytes(element)
    return size >= _LARGE and rows <= _BLOCK * _BLOCK


def sum_in_strips(emitter: Emitter, rows: int, totals: Memory, add: Add) -> None:
    """Writes the sums of columns of products to memory.

    Args:
        emitter: Builds the kernel.
        rows: The number of rows.
        totals: The memory of the sums, a row.
        add: Adds the products of some rows.
    """
    strips = _Strips(emitter, add)
    strips.clear(totals)
    if is_short([(0, rows, 1)]):
        strips.block(0, rows, totals)
        return
    partial = emitter.allocate(totals.shape, totals.element).memory
    whole = rows // _BLOCK * _BLOCK
    loop(0, whole, (), lambda k: strips.part(k, _BLOCK, partial, totals), stride=_BLOCK)
    if rows > whole:
        strips.part(whole, rows - whole, partial, totals)


class _Strips:
    """Builds loops over rows, a strip of them at a time, and over all columns in them."""

    def __init__(self, emitter: Emitter, add: Add):
        self._emitter, self._add = emitter, add

    def clear(self, target: Memory) -> None:
        """Writes zeros."""
        self._each(target, lambda _, lanes: broadcast(constant(0, target.element), lanes))

    def part(self, first: Index, count: int, partial: Memory, totals: Memory) -> None:
        """Sums a block of rows separately, and adds the sum to the totals."""
        self.clear(partial)
        self.block(first, count, partial)
        self._each(totals, lambda p, lanes: _read(totals, p, lanes) + _read(partial, p, lanes))

    def block(self, first: Index, count: int, target: Memory) -> None:
        """Sums a block of rows."""
        whole = count // _ROWS * _ROWS
        if whole:
            end = plus(first, whole)
            loop(first, end, (), lambda k: self._strip(k, _ROWS, target), stride=_ROWS)
        if count > whole:
            self._strip(plus(first, whole), count - whole, target)

    def _strip(self, first: Index, count: int, target: Memory) -> None:
        add = self._add(first, count)
        self._each(target, lambda p, lanes: add(p, lanes, _read(target, p, lanes)))

    def _each(self, target: Memory, element: Callable[[Indices, int | None], Scalar]) -> None:
        def write(position: Indices, lanes: int | None) -> None:
            if lanes is None:
                target[position] = element(position, lanes)
            else:
                target.write(position, element(position, lanes))

        self._emitter.each(target.shape, write, lanes_for(target.element), may_repeat=False)


def _read(memory: Memory, position: Indices, lanes: int | None) -> Scalar:
    return memory[position] if lanes is None else memory.read(position, lanes)

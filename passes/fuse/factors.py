"""Transposing matrices from outside a loop to the order in which its products read them."""

from __future__ import annotations

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.dimension_numbers import DimensionNumbers, dimension_numbers
from axir.passes.legalize.regions import operations_within
from axir.passes.legalize.rewriting import replace

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

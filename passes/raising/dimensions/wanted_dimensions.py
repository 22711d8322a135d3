"""Requirements of operations on open dimensions: that they are equal, or that one fits in another.

A requirement holds in all calls, because the program would otherwise be invalid. Elsewhere: the
facts learned from it (`open_dimensions.py`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from iree.compiler import ir

from axir.dialect.core.annotations import Extent, HostArray
from axir.dialect.core.array import Array
from axir.dialect.core.symbolic.terms import Product
from axir.dialect.core.symbolic_dims import (
    SymbolicDim,
    is_same,
    is_symbolic_dim,
    names_of,
    of_terms,
    symbolic_dim_bounds,
    terms_of,
)
from axir.dialect.program.rules import Value

from .attributes import dimension_numbers, flag, integer, integers
from .open_dimensions import SameDimension

Shapes: TypeAlias = Sequence[Sequence[Extent]]
Pairs: TypeAlias = Iterator[tuple[Extent, Extent]]
Bounds: TypeAlias = Sequence[Sequence[Extent | None]]
BoundPairs: TypeAlias = Iterator[tuple[Extent | None, Extent | None]]

# Generated names, which are replaced in preference to given ones.
_NUMBERED = re.compile(r".*_\d+")


def check_dimensions(
    op: ir.Operation, values: Sequence[Value], extents: Callable[[ir.Value], HostArray | None]
) -> None:
    """Raises `SameDimension` if an operation shows a new fact about open dimensions.

    The operands must have equal extents along some dimensions, or the program would be invalid.

    Args:
        op: The operation.
        values: The raised operands.
        extents: Returns the extents that an operand holds, if they are known.
    """
    shapes = _shapes(op, values)
    if not shapes:
        return
    pairs: Pairs = iter(())
    if op.name in _PAIRS:
        pairs = _PAIRS[op.name](op, [shape for shape in shapes if shape])
    elif op.name in _MADE:
        made = extents(op.operands[1])
        if made is not None and None not in made.tolist():
            pairs = _MADE[op.name](op, [shapes[0], made.tolist()])
    for one, other in pairs:
        if not is_same(one, other):
            found = _solved(one, other)
            if found is not None:
                raise SameDimension(*found)
            if not is_symbolic_dim(one) and not is_symbolic_dim(other):
                return  # numbers that differ: the operation's own rule raises


def wanted_bounds(
    op: ir.Operation, values: Sequence[Value], extents: Callable[[ir.Value], HostArray | None]
) -> Iterator[str]:
    """Yields the constraints that make an operation valid: parts fit into the whole."""
    shapes = _shapes(op, values)
    if not shapes:
        return
    pairs: BoundPairs | Pairs = iter(())
    if op.name in _PARTS:
        pairs = _PARTS[op.name](op, shapes)
    elif op.name in _BOUNDED:
        pairs = _BOUNDED[op.name](op, shapes[0], [_known(extents(v)) for v in op.operands])
    for part, whole in pairs:
        if part is None or whole is None:
            continue
        low, high = symbolic_dim_bounds(whole - part)
        if low < 0 <= high:
            yield f"{part} <= {whole}"


def _shapes(op: ir.Operation, values: Sequence[Value]) -> Shapes:
    """Returns the shapes of the operands; an empty list if all extents are known."""
    arrays = [x for x in values if isinstance(x, Array)]
    return [x.type.shape for x in arrays] if any(x.type.is_open for x in arrays) else []


def _solved(one: Extent, other: Extent) -> tuple[str, Extent] | None:
    """Solves the equation of two extents for a name, a generated one if possible.

    The name must occur only once in the equation, with a factor that divides all other terms.
    """
    difference = _without_common_names(one - other)
    found: dict[str, Extent] = {}
    for product, factor in terms_of(difference).items():
        if len(product) != 1 or not isinstance(product[0], str):
            continue
        rest = SymbolicDim(product[0]) * factor - difference
        terms = terms_of(rest)
        if product[0] not in set(names_of(rest)) and not any(n % factor for n in terms.values()):
            found[product[0]] = of_terms({p: n // factor for p, n in terms.items()}, None)
    if not found:
        return None
    others = set(names_of(other))
    name = max(found, key=lambda n: (_is_numbered(n), (n in others) == _is_numbered(n)))
    return name, found[name]


def _is_numbered(name: str) -> bool:
    return _NUMBERED.fullmatch(name) is not None


def _without_common_names(extent: Extent) -> Extent:
    """Divides an extent by the names in all its terms; it keeps its zeros, as names are >= 1."""
    terms = dict(terms_of(extent))
    common = [atom for atom in next(iter(terms), ()) if isinstance(atom, str)]
    for name in common:
        if all(name in product for product in terms):
            terms = {_without(product, name): factor for product, factor in terms.items()}
    return of_terms(terms, None)


def _without(product: Product, name: str) -> Product:
    at = product.index(name)
    return product[:at] + product[at + 1 :]


# Rules ------------------------------------------------------------------------------------------


def _alike(op: ir.Operation, shapes: Shapes) -> Pairs:
    """Yields pairs of extents of operands with one shape; operands of rank 0 do not count."""
    if len({len(shape) for shape in shapes}) == 1:
        for shape in shapes[1:]:
            yield from zip(shapes[0], shape, strict=True)


def _concatenate(op: ir.Operation, shapes: Shapes) -> Pairs:
    joined = integer(op, "dimension")
    for shape in shapes[1:]:
        pairs = zip(shapes[0], shape, strict=True)
        yield from (pair for axis, pair in enumerate(pairs) if axis != joined)


def _dot_general(op: ir.Operation, shapes: Shapes) -> Pairs:
    if len(shapes) == 2:
        numbers = dimension_numbers(op.attributes["dot_dimension_numbers"])
        for kind in ("batching_dimensions", "contracting_dimensions"):
            lhs, rhs = (numbers[f"{side}_{kind}"] for side in ("lhs", "rhs"))
            yield from ((shapes[0][a], shapes[1][b]) for a, b in zip(lhs, rhs, strict=True))


def _triangular_solve(op: ir.Operation, shapes: Shapes) -> Pairs:
    yield from zip(shapes[0][:-2], shapes[1][:-2], strict=True)
    yield shapes[0][-1], shapes[1][-2 if flag(op, "left_side") else -1]


def _select_and_scatter(op: ir.Operation, shapes: Shapes) -> Pairs:
    ones = (1,) * len(shapes[0])
    sizes = integers(op, "window_dimensions", ones), integers(op, "window_strides", ones)
    pairs = zip(shapes[0], shapes[1], strict=True)
    for pair, window in zip(pairs, zip(*sizes, strict=True), strict=True):
        if window == (1, 1):
            yield pair


def _broadcast(op: ir.Operation, shapes: Shapes) -> Pairs:
    """Yields the open extents of an operand with the equal extents of the result."""
    shape, made = shapes
    for extent, dimension in zip(shape, integers(op, "broadcast_dimensions"), strict=True):
        if is_symbolic_dim(extent):
            yield extent, made[dimension]


def _reshaped(op: ir.Operation, shapes: Shapes) -> Pairs:
    """Yields the number of elements before and after."""
    yield math.prod(shapes[0]), math.prod(shapes[1])


def _updated(op: ir.Operation, shapes: Shapes) -> Pairs:
    yield from zip(shapes[1], shapes[0], strict=True)


def _scattered(op: ir.Operation, shapes: Shapes) -> Pairs:
    numbers = dimension_numbers(op.attributes["scatter_dimension_numbers"])
    windows = [shapes[-1][d] for d in numbers["update_window_dims"]]
    left_out = {*numbers["inserted_window_dims"], *numbers.get("input_batching_dims", ())}
    wholes = [extent for d, extent in enumerate(shapes[0]) if d not in left_out]
    yield from zip(windows, wholes, strict=True)


def _known(extents: HostArray | None) -> Sequence[Extent | None]:
    return [] if extents is None else extents.reshape(-1).tolist()


def _real_slice(op: ir.Operation, shape: Sequence[Extent], operands: Bounds) -> BoundPairs:
    _, starts, limits, _ = operands
    if starts and limits and None not in starts:
        yield from zip(starts, limits, strict=True)
        yield from zip(limits, shape, strict=True)
    else:  # as large as its type says, from wherever it begins
        for size, whole in zip(op.results[0].type.shape, shape, strict=True):
            yield (size if size >= 0 else None), whole


def _dynamic_slice(op: ir.Operation, shape: Sequence[Extent], operands: Bounds) -> BoundPairs:
    yield from zip(integers(op, "slice_sizes"), shape, strict=True)


def _dynamic_gather(op: ir.Operation, shape: Sequence[Extent], operands: Bounds) -> BoundPairs:
    if operands[2]:
        yield from zip(operands[2], shape, strict=True)


_Rule: TypeAlias = Callable[[ir.Operation, Shapes], Pairs]
_BoundRule: TypeAlias = Callable[[ir.Operation, Sequence[Extent], Bounds], BoundPairs]
_ALIKE = (
    "add and atan2 clamp compare complex divide map maximum minimum multiply or power reduce "
    "reduce_window remainder select shift_left shift_right_arithmetic shift_right_logical sort "
    "subtract xor"
)
_PAIRS: Mapping[str, _Rule] = {
    **{f"stablehlo.{name}": _alike for name in _ALIKE.split()},
    "stablehlo.concatenate": _concatenate,
    "stablehlo.dot_general": _dot_general,
    "stablehlo.select_and_scatter": _select_and_scatter,
    "stablehlo.triangular_solve": _triangular_solve,
}
"""Extents that must be equal, of the shapes of operands that are no numbers."""

_MADE: Mapping[str, _Rule] = {
    "stablehlo.dynamic_broadcast_in_dim": _broadcast,
    "stablehlo.dynamic_reshape": _reshaped,
}
"""Extents that must be equal, of the shape of an operand and the one that another operand holds."""

_PARTS: Mapping[str, _Rule] = {
    "stablehlo.dynamic_update_slice": _updated,
    "stablehlo.scatter": _scattered,
}
"""Extents of a part, and of what it must fit into."""

_BOUNDED: Mapping[str, _BoundRule] = {
    "stablehlo.dynamic_gather": _dynamic_gather,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.gather": _dynamic_slice,
    "stablehlo.real_dynamic_slice": _real_slice,
}
"""The same, of the shape of the first operand and of the extents that the operands hold."""
